// Package extensions asks whether extensions of the protocol pass through mcpbridge
// whole: tasks, skills and Apps of published servers to published clients, and a server
// of the events draft, directly and through mcpbridge, as serve and as wrap, with the
// same values asserted of both.
//
// The clients and servers are what interop/build fetched and built; mcpbridge is that of
// the tree as it is, unless MCPBRIDGE names another.
package extensions
