// Package sweep asks of published clients that no test steers, programs that people start: do they work
// through `mcpbridge serve` and `mcpbridge wrap` as they do directly, and does mcpbridge count exactly
// the quirks that they and the servers show on the wire?
//
// Each goes to a server of either era. What is expected to be counted stands in the tables of
// clients_test.go and servers_test.go; what deviates, package record reads from the bytes.
package sweep
