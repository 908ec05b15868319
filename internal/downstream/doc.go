// Package downstream answers one question for the fronts of both eras: how does an
// answer reach a client over HTTP, and what of one client is under way?
//
// A [Response] is the answer to one HTTP request: a JSON body, or a stream of events,
// each of which goes out in bounded time. [Streams] has a stream written without its
// handler, on a connection that is taken over from net/http. [InFlight] knows the
// requests of one client that are being served, [Places] bounds how many there are of
// something, in all and for each share.
//
// The package refuses to know what messages say, and of which era they are.
package downstream
