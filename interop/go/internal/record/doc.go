// Package record answers one question: which quirks do the bytes on the wire show?
//
// A [Recorder] is a reverse proxy that changes nothing and keeps what it passed on. [ByClients] and
// [ByServers] read that and name what deviates from the protocol, by the names of
// docs/quirks.md, without anything of mcpbridge: what it counts is held against them.
package record
