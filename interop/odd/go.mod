module github.com/mcpbridge/mcpbridge/interop/odd

go 1.26.0
