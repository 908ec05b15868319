// Package modern holds no code: it is the map of the packages that speak revision
// 2026-07-28 and later, the era without sessions, in which every request carries what its
// server must know.
//
//   - front serves modern clients of one server: their requests, the calls that wait for
//     input, and their listen streams.
//   - back sends requests to a modern server: discovery, probes, rounds of input requests,
//     listen streams.
//   - watch keeps the listen streams open that changes arrive on, and merges them.
//   - protocol is what both spell alike: header values, the parameters of tools that
//     headers mirror, the filter of a listen request, the shapes of input responses.
//
// front and back don't import each other. Both speak package mcp: a request and its result
// name the era that they come from, so that what both sides have passes unchanged. Who the
// client is, what it may do, and who observes it, is decided before: a request has its
// principal, its profile and its trace.
package modern
