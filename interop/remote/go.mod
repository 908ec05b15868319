module github.com/mcpbridge/mcpbridge/interop/remote

go 1.26.0
