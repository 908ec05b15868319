// Package downstream sends responses to clients over HTTP, and keeps the requests in
// flight, for the fronts of both eras.
//
// A [Response] is the response to one HTTP request: a JSON body, or an event stream, each
// write of which has a deadline. [Streams] serves an event stream without its handler, on
// a connection that is hijacked from net/http. [InFlight] contains the requests in flight
// of one client. [Places] bounds a number of objects, in total and for each share. An
// [ErrorFilter] removes from errors what clients must not see. A [Page] is what a person
// reads who opens an endpoint in a browser.
//
// The package does not know what messages mean, nor their era.
package downstream
