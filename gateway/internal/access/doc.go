// Package access controls what clients may do with one server: it applies the server's
// policy, rates and pinned tools, and writes the audit log.
//
// A [Control] is an [mcp.Handler] in front of the back, and a wrapper of the relayed
// sessions of legacy clients: every message for the server passes one of them, in both eras
// and over every transport. It allows or refuses requests, removes elements of lists that
// the client may not use, and records requests. Of the results it decodes only lists.
package access
