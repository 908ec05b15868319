// Package traces proves what traces mcpbridge exports: to a real collector, which prints
// them, of real calls of clients of both eras to servers of the other one.
package traces
