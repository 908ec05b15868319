// Command legacy-2026 is a server of the legacy era that has what the official
// conformance suite asks of servers of both revisions: the tools, prompts and
// resources of its 2025-11-25 scenarios, and under the names of its 2026-07-28
// scenarios what an author of 2025 would have written. Where those scenarios
// expect an input_required result, a handler here asks the client with a
// request of its own and waits for the answer.
//
// It serves stdio, or with -http ADDR stateful Streamable HTTP at every path.
//
// It knows nothing of 2026-07-28: no requestState, no input keys. So one
// scenario, which wants a key of its own choice, can't be passed through any
// bridge: input-required-result-basic-elicitation.
package main
