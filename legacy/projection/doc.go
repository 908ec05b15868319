// Package projection converts messages of modern servers for strict clients of legacy
// revisions.
//
// It converts modern results, errors, input requests, capabilities and notifications to
// those of a legacy revision, and input responses to modern ones. The file since….go of a
// revision has what earlier revisions lack; a table lists these boundaries.
//
// A member that no boundary names keeps its bytes, even if the revision does not have it:
// no published schema forbids additional members, and SDKs ignore them. Strict clients
// only refuse known members of unknown types.
//
// The functions depend only on their arguments, except for [Tools], which keeps
// information from a list of tools for calls of the tools. The package does not know
// sessions, transports or callers.
package projection
