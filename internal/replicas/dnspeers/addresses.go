package dnspeers

import "context"

// Addresses looks the names up. It fails if none of them can be. An Engine that does not join
// can be asked.
func (e *Engine) Addresses(ctx context.Context) ([]string, error) { return e.addresses(ctx) }
