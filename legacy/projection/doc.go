// Package projection answers one question: what does a strict client of this
// legacy revision accept of what a modern server said?
//
// It turns modern results, errors, questions, capabilities and notifications into
// those of a legacy revision, and answers back into modern ones. What a boundary
// between two revisions takes away is in the file named after the newer one; a table
// lists the boundaries.
//
// A member that no boundary names keeps its bytes, also where the revision does not
// know it: no published schema forbids additional members, and SDKs pass over them.
// What strict clients refuse is a member they know, of a type they don't.
//
// All of it are functions of their arguments, but for [Tools], which remembers what
// a list of tools said until the tools are called. The package refuses to know
// sessions, transports and who asks.
package projection
