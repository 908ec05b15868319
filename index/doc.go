// Package index answers one question fast: which subscribers asked to hear
// about this topic? And its inverse, which topics does this subscriber hold?
//
// The model is a set of (key, subscriber) pairs that can be entered from both
// ends. Whoever adds the first pair of a key is told so, and so is whoever
// removes the last one: that is where an upstream subscription begins and ends.
// Concurrent calls may act on those answers in another order than they got
// them, so a caller that keeps something equal to the index takes them as a
// cue to compare, and asks [Index.Has].
//
// Keys are compared with ==, so URIs match byte for byte: the specification
// defines no normalization, and a bridge that invents one would deliver
// updates nobody asked for. The package does no I/O, starts no goroutines, and
// knows nothing of eras, sessions or servers.
package index
