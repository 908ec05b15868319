// Package sessions asks what many clients of the legacy era cost a server that
// speaks 2026-07-28 alone, and what they see when it goes away, ends their
// streams or refuses them.
//
// Each test runs mcpbridge and interop/modern-go as processes, and is itself the
// clients: sessions in plain HTTP, so that nothing but what was written to them
// is believed. The server's ledger survives kill -9; a proof holds the sessions'
// records against it. SESSIONS and URIS_EACH set the numbers of the largest
// proof, SEED what is random.
package sessions
