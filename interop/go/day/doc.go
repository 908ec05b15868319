// Package day answers one question: does a client lose anything over a day because
// mcpbridge stands between it and a server that keeps something?
//
// Clients of both eras use servers of both (interop/stateful): directly, through wrap and
// through serve. What they do is random: calls, pauses longer than idle, new sessions,
// clients that vanish, processes that die, are stopped and go on. After each step the answer
// must be what a model says, which the direct clients prove; where a process was lost, the
// client must have been told. No client has two processes at a time, and none is left.
//
//	SEED=7 go test -run 'TestDay/7/wrap' ./day     the same steps again
//	DAY=full go test -timeout 60m ./day            1,000 steps each, pauses of 6 minutes, stops of 150 s
package day
