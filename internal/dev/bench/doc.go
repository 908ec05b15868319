//go:build linux

// Command bench answers what mcpbridge costs beside the programs a user would
// pick instead: httputil.ReverseProxy for calls, a bare hub of net/http handlers
// for listen streams.
//
// Every party is a process of its own, this binary with another -role, so that
// CPU and memory are those of one party: the proxy, the gateway, the hub, the
// upstream, the readers of streams. Calls come from the parent. Rounds take turns
// between the parties, and what counts is the median of the rounds' ratios:
// the machine's mood hits both sides of a ratio alike.
//
// The gateway is the public package's, as `mcpbridge serve` has it, counters and a
// log line per request included, which neither competitor has.
//
// It knows Linux only, where CPU and memory of a process are told exactly. It
// fails if a ratio is over its budget.
package main
