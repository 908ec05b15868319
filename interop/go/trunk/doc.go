// Package trunk asks whether mcpbridge keeps its promises to listen streams
// under numbers and faults: servers that are killed, streams upstream that are
// cut, thousands of clients, clients that do not read.
//
// Each test runs mcpbridge and interop/legacy-go as processes, and is itself the
// clients: sockets that are read by hand, so that nothing but what was written
// to them is believed. The server's ledger survives kill -9; a proof holds the
// clients' records against it. Whatever is random comes from SEED, which is
// logged; STREAMS sets how many streams the largest proof opens.
package trunk
