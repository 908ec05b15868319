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

// A ClientFollower is a back, or a member of a group, that is told what becomes of legacy clients.
// Each request has the client's profile. No method waits for the server.
type ClientFollower interface {
	// RootsChanged says that the client's roots have changed: it has sent
	// [spec.NotifyRootsListChanged].
	RootsChanged(req *Request)
	// LevelChanged says that the client has set its log level, which the request has.
	LevelChanged(req *Request)
	// ClientLeft says that the client's session has ended: what is its alone is not needed
	// any more.
	ClientLeft(req *Request)
}
