// Package forward answers one question: is a request answered here, or by another replica? If
// it is another's, the package has it answered there.
//
// [Server.Elsewhere] asks it once for each request, in this order:
//
//   - whose session the request names, and where that session is if its replica gives it up
//     or is gone,
//   - which replica holds the call that a requestState continues,
//   - which one serves the principal, where a server has one process for each: calls,
//     initialize, and the openings of HTTP+SSE streams and WebSockets.
//
// A request to a server that this replica does not have is passed as it is to a living one that
// has it, by [Group.Absent]: that one asks who the client is, and the question above.
//
// A request to a group may be for several servers, each with a replica of its own that serves the
// principal: [Server.Serve] has such a one serve what is for its server, when the request has passed
// all that is before that server here.
//
// It also says what a client is told when the other replica is gone, or does not answer, and
// gives up this replica's own sessions before that ends. What was forwarded once is answered
// where it arrives; only a session that has just moved is forwarded again, and what [Group.Absent]
// has passed on, once.
//
// The package does not know how a request is answered here, nor who may send it.
package forward
