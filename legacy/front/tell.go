package front

import (
	"maps"
	"slices"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/status"
)

// TellClients adds the clients with a session, and the input requests that wait for their
// answers.
func (f *Front) TellClients(clients *status.Clients, questions *status.Questions) {
	sessions, uses, left := f.sessions.some(status.MaxClients)
	for i, s := range sessions {
		f.tellSession(s, uses[i], clients, questions)
	}
	f.mu.Lock()
	conns := slices.Collect(maps.Keys(f.conns))
	f.mu.Unlock()
	for _, c := range conns {
		if s, _ := c.current(); s != nil {
			f.tellSession(s, 0, clients, questions)
		}
	}
	clients.Left += left
}

// some returns at most most of the sessions over HTTP, how often each is in use, and how
// many more there are.
func (ss *sessions) some(most int) (some []*session, uses []int, left int) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	for _, s := range ss.byID {
		if len(some) == most {
			break
		}
		some, uses = append(some, s), append(uses, int(s.usage.uses))
	}
	return some, uses, len(ss.byID) - len(some)
}

func (f *Front) tellSession(s *session, uses int, clients *status.Clients, questions *status.Questions) {
	c := status.Client{
		Server: f.opts.Name, Era: spec.Legacy.String(), Revision: string(s.revision), Name: mcp.ClientName(s.info),
		Principal: string(s.opener.Principal), Session: s.name, Transport: "http", Since: time.Unix(s.opened, 0), Topics: s.subscriptions.count(), InFlight: uses,
	}
	if s.conn != nil {
		c.Transport, c.InFlight = "connection", len(s.calls.All())
	}
	clients.Add(c)
	s.inputs.tell(questions, status.Question{Server: c.Server, Client: c.Name, Era: c.Era, Principal: c.Principal, Session: c.Session}, f.opts.AskTimeout)
}

// count returns the number of topics that are followed.
func (s *subscriptions) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.uris)
	for _, on := range []bool{s.lists.Tools, s.lists.Prompts, s.lists.Resources} {
		if on {
			n++
		}
	}
	return n
}

// tell adds the input requests that wait, each like its client.
func (in *inputs) tell(questions *status.Questions, like status.Question, timeout time.Duration) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(in.pending)) {
		q := in.pending[id]
		like.Method, like.During, like.Name, like.Since, like.Until = q.method, q.during, q.name, q.since, q.since.Add(timeout)
		like.Text = q.text
		questions.Add(like)
	}
}
