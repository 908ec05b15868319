// Package watch answers one question: how does a modern server come to tell of the
// changes that somebody wants to hear of?
//
// A listen stream's filter is fixed when it opens, and topics come and go. For each profile
// there is one loop that keeps open what listen streams are needed to carry what is wanted:
// it opens small ones at once and merges them later (docs/decisions/0004), finds out which
// topic a server refuses a stream for, and tells afterwards what may have been missed. The
// package knows nothing of links and messages: it is given [Stream]s.
package watch
