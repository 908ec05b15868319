// Package console asks a running mcpbridge at its admin address, for a terminal: how it is,
// and what the admin page shows of what passes and of what a gateway holds at the moment.
package console
