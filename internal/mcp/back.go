package mcp

import (
	"context"

	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// A Back is one server with its connections.
type Back interface {
	Upstream
	// Start connects in the background and retries, so that the state of the server is
	// known before the first request.
	Start()
	// Era returns the server's era, or spec.Unknown before it is known.
	Era() spec.Era
	// Err returns nil if the server could be reached, or else why not: [ErrStarting]
	// until the first attempt has ended.
	Err() error
	// Close closes all upstream connections and waits for running calls. ctx bounds the
	// time for an orderly end.
	Close(ctx context.Context) error
}

// A RootsFollower is a back, or a member of a group, that is told when the roots of a client have
// changed: the client has sent [spec.NotifyRootsListChanged], as req, in the profile of req.
// RootsChanged does not wait for the server.
type RootsFollower interface {
	RootsChanged(req *Request)
}
