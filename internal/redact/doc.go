// Package redact answers one question: which parts of a text must nobody read who only
// reads logs, errors or reports?
//
// A [Redactor] knows the values that are secret, letter by letter, and hides them
// wherever they stand, also as they are written in URLs, in JSON, in quotes, and in
// Authorization headers. [Looks] hides what looks like a credential, for texts of
// servers, whose own secrets nobody here knows.
//
// The package knows nothing of the configuration, of logs and of the protocol.
package redact
