// Package quirks answers one question: what do clients and servers do that the protocol does not
// allow, and what does mcpbridge do about it?
//
// Each such deviation has a name and stands once in the table of this package, which
// docs/quirks.md repeats for people. Whoever tolerates one asks the [Recorder] of the server
// whether that is wanted, and tells it that it has happened: the Recorder counts it, logs it once
// for each client, and remembers it for the admin page. Nothing is tolerated that is not told.
package quirks
