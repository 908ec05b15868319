// Package reload answers one question: what became of the last attempt to read the
// configuration again?
//
// A [Reloader] makes one attempt at a time, whoever asks for it, and keeps the [Outcome]; a
// [Watcher] asks when files have changed. The package refuses to know what is in them.
package reload
