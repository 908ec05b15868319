//go:build !login

package main

import (
	"errors"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpbridge/mcpbridge/interop/remote"
)

func streamable(to *remote.Target) (mcp.Transport, error) {
	if to.Login != nil {
		return nil, errors.New("this client is not built to log in")
	}
	return &mcp.StreamableClientTransport{Endpoint: to.URL}, nil
}
