// Package trace observes requests: what a client sent, what was sent to servers for it, what
// happened meanwhile, and how it ended. Whoever serves a request tells its [Request], and
// the observers are told: a tracer, the access log, the admin page. It knows no protocol and
// keeps nothing.
//
// While nobody observes there is no Request: the methods of a nil one do nothing, and
// allocate nothing.
package trace
