//go:build modern

package main

import (
	"context"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const revision = "2026-07-28"

func options(kind string) *mcp.ServerOptions {
	o := optionsOf(kind)
	o.SupportedProtocolVersions = []string{revision}
	return o
}

// restrict has the server refuse initialize, which the SDK goes on answering.
func restrict(s *mcp.Server) {
	s.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			p, ok := req.GetParams().(*mcp.InitializeParams)
			if !ok {
				return next(ctx, method, req)
			}
			data, err := json.Marshal(mcp.UnsupportedProtocolVersionData{Supported: []string{revision}, Requested: p.ProtocolVersion})
			if err != nil {
				return nil, err
			}
			return nil, &jsonrpc.Error{Code: mcp.CodeUnsupportedProtocolVersion, Message: "this server speaks " + revision + " only", Data: data}
		}
	})
}
