module github.com/mcpbridge/mcpbridge/interop/events

go 1.26.0
