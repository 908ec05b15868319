package mcp

import (
	"context"

	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// A Back is one server with its connections.
type Back interface {
	Upstream
	// Start connects in the background and keeps trying, so that the state of the server
	// is known before the first request.
	Start()
	// Era returns the server's era; spec.Unknown as long as it is not known.
	Era() spec.Era
	// Err returns nil once the server was reached, and otherwise why it was not:
	// [ErrStarting] until the first attempt has ended.
	Err() error
	// Close ends everything upstream and waits for what runs. ctx bounds how long the
	// server has to end in order.
	Close(ctx context.Context) error
}
