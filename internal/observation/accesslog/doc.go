// Package accesslog writes one line for each request of a client when it has ended: who
// asked for what, where it went, how it ended and how large it was. Lines are text for
// people, or JSON.
package accesslog
