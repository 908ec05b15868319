// Package tap answers one question: is every message that mcpbridge's legacy
// front sends one that the session's revision allows?
//
// A [Tap] is a reverse proxy that a test puts between a client and mcpbridge. It
// changes nothing. It reads along and holds each message against the published
// schema of the revision that the session agreed on: a result against the
// definition for the method that was called. Beside that it looks for what only
// modern results have, and which the schemas, open to unknown members, let pass.
//
// It can cut connections too, as a network does: the client's SDK has to see to
// the rest. It knows nothing of what should be sent, or when.
package tap
