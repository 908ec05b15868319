// Package owner answers one question: is a task, or a requestState, that a client names its
// principal's own?
//
// A server can tell its clients apart by their credentials; behind a gateway all of them are
// one to it, and whoever knows the name of what it has handed out may use it. So the gateway
// remembers for whom tasks were made, and puts a tag on requestStates. What is another
// principal's is answered as what does not exist.
//
// The package refuses to know who a principal is, and what a server keeps under the names.
package owner
