package overview

import (
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/quirks"
	"github.com/mcpbridge/mcpbridge/internal/redact"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/status"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// maxInstructions bounds what is shown of a server's instructions, in bytes, and maxDescribed
// the other parts of its description.
const (
	maxInstructions = 4 << 10
	maxDescribed    = 16 << 10
)

// ServerRoom fills in what is known of a server. assign sets the profile of a request. It asks
// the server nothing, and starts none.
func ServerRoom(room *status.ServerRoom, told status.Server, back mcp.Back, met []quirks.Meeting, assign func(*mcp.Request) error, secrets *redact.Redactor) {
	out := status.Snapshot{Servers: []status.Server{Server(told, back)}}
	Quirks(&out.Quirks, told.Name, met)
	Finish(&out, secrets, false)
	room.Server, room.Quirks = out.Servers[0], append([]status.Quirk{}, out.Quirks.List...)
	room.Reached, room.Dir, room.Credentials = secrets.String(room.Reached), secrets.String(room.Dir), secrets.String(room.Credentials)
	if told.State == "ready" {
		describe(room, back, assign, secrets)
	}
}

// describe fills in what a server has said of itself last, to the admin address or to the
// gateway itself.
func describe(room *status.ServerRoom, back mcp.Back, assign func(*mcp.Request) error, secrets *redact.Redactor) {
	own := &mcp.Request{Method: spec.MethodDiscover, Era: spec.Modern, Revision: spec.Revisions(spec.Modern)[0], Capabilities: []byte("{}"), ClientInfo: client, Principal: Principal}
	if assign(own) != nil {
		return
	}
	probe := *own
	probe.Profile = mcp.Profile{Scope: room.Name + "/probe"}
	for _, req := range []*mcp.Request{own, &probe} {
		d, err := back.Describe(mcp.Known, req)
		if err != nil {
			continue
		}
		hidden := func(v []byte) []byte {
			if len(v) > maxDescribed {
				return nil
			}
			return secrets.Bytes(v)
		}
		room.Info, room.Capabilities = hidden(d.ServerInfo), hidden(d.Capabilities)
		room.Instructions = redact.Cut(secrets.String(wire.Unquote(d.Instructions)), maxInstructions)
		return
	}
}
