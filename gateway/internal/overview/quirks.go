package overview

import (
	"github.com/mcpbridge/mcpbridge/internal/quirks"
	"github.com/mcpbridge/mcpbridge/internal/status"
)

// Quirks adds what was met of a server and its clients.
func Quirks(out *status.Quirks, server string, met []quirks.Meeting) {
	for _, m := range met {
		d := m.Quirk.Describe()
		out.Add(status.Quirk{Server: server, Name: d.Name, Rule: d.ID, Side: string(d.Side), Client: m.Client, Seen: d.Seen, Count: m.Count})
	}
}
