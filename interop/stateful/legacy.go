//go:build !modern

package main

import "github.com/modelcontextprotocol/go-sdk/mcp"

func options(kind string) *mcp.ServerOptions { return optionsOf(kind) }

func restrict(*mcp.Server) {}
