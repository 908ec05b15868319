// Package live lets somebody look at a gateway as it runs: its requests and changes as they
// pass, and what it holds.
//
// A [Feed] observes only while somebody looks, keeps a bounded number of requests, and
// takes only so many per second: the others are counted. So looking never slows a request,
// and has a cost that does not grow with the traffic. A [State] is computed less often the
// longer that takes. A [Socket] sends both to a page or a program.
package live
