// Package access stands between the fronts and the back of one server, and has what is
// configured about it done: its policy, its rates, its pinned tools and the audit log.
//
// A [Control] is an [mcp.Handler] before the back, and a link before the upstream session
// of a legacy client that is passed on: whatever reaches the server passes one of them, in
// both eras and over every transport. It decides, takes out of lists what their reader may
// not use, and records. Of results that pass it decodes nothing but lists.
package access
