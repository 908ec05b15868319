// Package reload answers one question: what became of the last attempt to read the
// configuration again?
//
// A [Reloader] makes one attempt at a time, whoever asks for it, and keeps the [Outcome]; a
// [Watcher] asks when files have changed, and [Hangups] tell a SIGHUP that asks from one that
// ends the process. The package refuses to know what is in the files.
package reload
