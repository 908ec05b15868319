package front

import (
	"maps"
	"slices"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/status"
)

// TellQuestions adds the input requests of calls that are parked, or about to be.
func (f *Front) TellQuestions(questions *status.Questions) {
	f.parked.mu.Lock()
	calls := slices.Collect(maps.Values(f.parked.byID))
	f.parked.mu.Unlock()
	for _, c := range calls {
		c.tell(questions)
	}
}

func (c *parkedCall) tell(questions *status.Questions) {
	req := c.req
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, q := range c.pending {
		questions.Add(status.Question{
			Server: c.calls.front.opts.Name, Method: q.request.Method, Text: mcp.QuestionText(q.request.Params),
			During: req.Method, Name: req.Subject(), Client: mcp.ClientName(req.ClientInfo),
			Era: spec.Modern.String(), Principal: string(req.Principal), Since: q.since, Until: q.since.Add(c.calls.front.opts.Settings.ParkedTTL),
		})
	}
}
