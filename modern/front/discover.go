package front

import (
	"context"
	"encoding/json"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// discover answers server/discover with the server's description.
//
// Spec: 2026-07-28, server/discover.
func (f *Front) discover(ctx context.Context, req *mcp.Request, p *reply) error {
	d, err := f.opts.Describer.Describe(ctx, req)
	if err != nil {
		return err
	}
	body, err := json.Marshal(struct {
		Versions     []spec.Revision `json:"supportedVersions"`
		Capabilities json.RawMessage `json:"capabilities"`
		Instructions json.RawMessage `json:"instructions,omitempty"`
	}{f.opts.Revisions, d.Capabilities, d.Instructions})
	if err != nil {
		return err
	}
	res := mcp.NewResult(body, nil)
	res.ServerInfo, res.Cache = d.ServerInfo, d.Cache
	return p.result(req, res)
}

// serverInfo returns the serverInfo in the server's description, if it is known.
func (f *Front) serverInfo(req *mcp.Request) json.RawMessage {
	if d, err := f.opts.Describer.Describe(mcp.Known, req); err == nil {
		return d.ServerInfo
	}
	return nil
}
