// Package index answers two questions fast: which subscribers does
// a topic have, and to which topics does a subscriber subscribe?
//
// The model is a set of (key, subscriber) pairs with a look-up from either side. A call
// that adds the first pair of a key, or removes its last one, reports that: an upstream
// subscription begins or ends there. Concurrent callers may act on these reports in
// another order than the index made them. A caller that keeps other state in step with
// the index therefore treats a report as a reason to call [Index.Has] and compare.
//
// Keys are compared with ==, so URIs match byte for byte. The specification defines no
// normalization, and a bridge that invents one would deliver updates that no client
// subscribed to. The package does no I/O, starts no goroutines, and does not know eras,
// sessions or servers.
package index
