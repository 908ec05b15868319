// Package eventstream answers one question: which messages of a session has its client not
// read yet? [Streams] store the events of a session over Streamable HTTP, within bounds, and
// a [Writer] writes one [Stream] to an HTTP response. A client that comes back with the [ID]
// of an event gets what followed it.
//
// It does not know what the messages mean, but for the errors that it writes in the place of
// responses that it has lost.
package eventstream
