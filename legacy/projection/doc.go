// Package projection answers one question: what does a strict client of this
// legacy revision accept of what a modern server said?
//
// It turns modern results, errors, questions, capabilities and notifications into
// those of a legacy revision, and answers back into modern ones. A value goes down
// one revision boundary after another, newest first: what a boundary takes away is
// in the file named after the revision above it, and nowhere else. Everything that
// no boundary names keeps its bytes.
//
// All of it are functions of their arguments, but for [Tools], which remembers
// what a list of tools said until the tools are called. The package refuses to know
// sessions, transports and who asks.
package projection
