package group

import (
	"context"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// What stands here is not built yet: who builds it takes it out.

var errNotBuilt = mcp.RefuseForNow("groups do not serve this yet")

// Serve implements [mcp.Handler].
func (b *Back) Serve(context.Context, *mcp.Request, mcp.Caller) (*mcp.Result, error) {
	return nil, errNotBuilt
}

// Describe implements [mcp.Describer].
func (b *Back) Describe(context.Context, *mcp.Request) (*mcp.Description, error) {
	return nil, errNotBuilt
}

// Era returns spec.Unknown.
func (b *Back) Era() spec.Era { return spec.Unknown }

// Err returns nil.
func (b *Back) Err() error { return nil }
