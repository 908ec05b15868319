// Command modern-go is a server that speaks 2026-07-28 and nothing else, on
// go-sdk v1.8.0, for proofs of what happens between it and mcpbridge. A request
// without that revision in its _meta, initialize above all, is an error that
// names the revision. It serves stdio, or with -http ADDR Streamable HTTP at
// every path.
//
// It has what the official conformance suite names for servers of 2025-11-25 and
// of 2026-07-28. Whoever asks does so by a result: no tool, prompt or resource
// here sends its client a request.
//
// Beside that it has resources res://item/000 … (-items N of them), two
// resources that ask or are missing, and the tools that tools.go lists. It writes
// down what it was asked and what it sent, in memory and, with -ledger FILE, as a
// line of JSON each that survives kill -9. A server started anew goes on with the
// versions of its resources that FILE tells of.
//
// Beside MCP, with -admin ADDR, it listens to the test itself:
//
//	POST /admin/cut?how=graceful|abrupt&hold=500ms  end all listen streams; refuse new ones for so long
//	POST /admin/touch?uri=URI&uri=URI&times=N       what the tool touch does
//	POST /admin/change?kind=tools                   what the tool change_lists does
//	GET  /admin/subscriptions                       what the tool subscriptions returns
//	GET  /admin/ledger?after=SEQ                    what the tool ledger returns
//
// With -tool NAME it has one more tool, so that a server started anew has other ones.
//
// With -refuse FILE the URIs in FILE, one on a line, are left out of the
// acknowledgments of listen streams. The file is read for each stream and may be
// absent, so that a server started anew with the same command refuses what the
// former one granted.
//
// On SIGTERM it ends its listen streams gracefully before it goes.
package main
