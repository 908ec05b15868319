package overview

import (
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/redact"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/status"
)

// Server adds to what is told of a server what its back knows.
func Server(told status.Server, back mcp.Back) status.Server {
	told.Era = back.Era().String()
	if t, ok := back.(status.Teller); ok {
		t.Tell(&told.Upstream)
	}
	if told.Holding != nil {
		told.Tasks = told.Holding.Live()
	}
	return told
}

// Finish sorts what was collected, counts what all servers have, and hides secrets. texts
// says that it has what servers ask, too.
func Finish(out *status.Snapshot, secrets *redact.Redactor, texts bool) {
	out.Clients.Sort()
	out.Counts.Questions = len(out.Questions.List) + out.Questions.Left
	counts := make(map[string]int)
	for i := range out.Questions.List {
		q := &out.Questions.List[i]
		counts[q.Server]++
		q.Text = secrets.String(q.Text)
		if !texts {
			q.Text = ""
		}
	}
	for i := range out.Servers {
		s := &out.Servers[i]
		s.Questions = counts[s.Name]
		out.Counts.Topics += s.Topics
		out.Counts.Pairs += s.Followers
		if s.Era != spec.Unknown.String() && s.EraReason == "" {
			s.EraReason = "the configuration says so"
		}
		s.LastError, s.EraReason = secrets.String(s.LastError), secrets.String(s.EraReason)
	}
}
