// Package watch subscribes to changes at modern servers.
//
// The filter of a listen stream is fixed when the stream opens, but topics are added and
// removed. For each profile there is one loop that keeps the listen streams open that its
// topics need. It opens small streams at once and merges them later (docs/decisions/0004),
// finds out which topic a server refuses, and reports changes that may have been missed.
// The package knows nothing of links and messages: it gets [Stream]s.
package watch
