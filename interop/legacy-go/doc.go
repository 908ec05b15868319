// Command legacy-go is a server of the legacy era, on a go-sdk that knows no
// other, for proofs of what happens between it and mcpbridge. It serves stdio,
// or with -http ADDR stateful Streamable HTTP at /mcp.
//
// It has 60 resources res://item/00 … res://item/59 (-items N of them), two items to a page, and
// the tools touch, change_lists, subscriptions, ledger, text, mark, wait and ask. It
// writes down what it sent and what it was asked, in memory and, with -ledger
// FILE, as a line of JSON each that survives kill -9. A server started anew goes
// on with the versions of its resources that FILE tells of.
//
// mark and ask write down that they run, and for which nonce. ask then puts an
// elicitation to the client that repeats the nonce, and returns the answer. wait
// reports progress, and writes down when it is cancelled.
//
// Beside MCP, on the HTTP address and with -admin ADDR on one of its own, it
// listens to the test itself:
//
//	POST /admin/cut?how=abrupt|clean&hold=500ms   end all GET streams; answer 503 to new ones for so long
//	POST /admin/touch?uri=URI&uri=URI&times=N     what the tool touch does
//	POST /admin/change?kind=tools                 what the tool change_lists does
//	POST /admin/log?level=LEVEL&text=TEXT         log in all sessions whose client has set a level
//	GET  /admin/subscriptions                     what the tool subscriptions returns
//	GET  /admin/ledger?after=SEQ                  what the tool ledger returns
//
// With -tool NAME it has one more tool, so that a server started anew has other ones.
//
// With -refuse FILE the URIs in FILE, one on a line, can't be subscribed to. The
// file is read at each attempt, and may be absent, so that a server started anew
// with the same command refuses what the former one granted.
package main
