package console

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/output"
	"github.com/mcpbridge/mcpbridge/internal/status"
)

const (
	// mostClients and mostTopics are how many lines there are of each.
	mostClients = 12
	mostTopics  = 12
)

// Top prints what the gateway holds over a cleared screen, every so often until ctx ends.
// Rates are those since the time before. With whole, lines are as long as they are.
func (a *Admin) Top(ctx context.Context, w io.Writer, every time.Duration, whole bool) error {
	var before *sample
	for {
		s, err := a.State(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		now, _ := a.sample(ctx) // without it there are no rates
		if err := output.Page(w, Text(s, now.since(before)), whole); err != nil {
			return err
		}
		before = now
		select {
		case <-time.After(every):
		case <-ctx.Done():
			return nil
		}
	}
}

// sampleTime is the time between two samples for rates that are printed once.
const sampleTime = time.Second

// Once prints what the gateway holds, with the rates of one second.
func (a *Admin) Once(ctx context.Context, w io.Writer, whole bool) error {
	var now *sample
	before, err := a.sample(ctx)
	if err == nil {
		select {
		case <-time.After(sampleTime):
		case <-ctx.Done():
			return nil
		}
		now, _ = a.sample(ctx)
	}
	s, err := a.State(ctx)
	if err != nil {
		return err
	}
	t := output.NewTable(w, whole)
	_, _ = output.Printf(t, "%s", output.Block(Text(s, now.since(before)))) // its error comes with Flush
	return t.Flush()
}

// Text returns tables of what a gateway holds, with tabs between their cells.
func Text(s *State, rates Rates) string {
	var text bytes.Buffer
	text.WriteString(summary(s, rates))
	table(&text, "SERVER\tSTATE\tERA\tCALLS/S\tSESSIONS\tTOPICS\tFOLLOWERS\tQUESTIONS\tPROCESSES\tERROR", len(s.Servers), func(i int) []any {
		v := &s.Servers[i]
		return []any{v.Name, v.State, v.Era, rates.text(v.Name), v.Sessions, v.Topics, v.Followers, v.Questions, processes(v.Processes, v.ProcessesLeft), v.Error}
	})
	clients := s.Clients.List[:min(len(s.Clients.List), mostClients)]
	table(&text, "CLIENT\tERA\tSERVER\tPRINCIPAL\tSESSION\tSTREAMS\tTOPICS\tIN FLIGHT", len(clients), func(i int) []any {
		v := &clients[i]
		return []any{v.Name, v.Era, v.Server, v.Principal, v.Session, v.Streams, v.Topics, v.InFlight}
	})
	more(&text, len(s.Clients.List)-len(clients)+s.Clients.Left, "clients")
	topics := s.Follows.Topics[:min(len(s.Follows.Topics), mostTopics)]
	table(&text, "TOPIC\tSERVER\tFOLLOWERS", len(topics), func(i int) []any {
		v := &topics[i]
		if v.URI == "" {
			return []any{v.Kind, v.Server, v.Followers}
		}
		return []any{v.URI, v.Server, v.Followers}
	})
	more(&text, len(s.Follows.Topics)-len(topics)+s.Follows.TopicsLeft, "topics")
	table(&text, "QUESTION\tSERVER\tDURING\tCLIENT\tWAITS", len(s.Questions.List), func(i int) []any {
		v := &s.Questions.List[i]
		return []any{v.Method, v.Server, v.During + " " + v.Name, v.Client, s.Time.Sub(v.Since).Round(time.Second)}
	})
	return text.String()
}

// summary returns the lines before the tables.
func summary(s *State, rates Rates) string {
	c, calls := s.Counts, ""
	if rates != nil {
		calls = rates.sum() + " calls/s, "
	}
	text := output.Sprintf("mcpbridge %s, up %s; %s%d requests in flight, %d streams, %d sessions, %d WebSockets, %d subscriptions to %d topics, %d questions\n",
		s.Version, s.Time.Sub(s.Started).Round(time.Second), calls, c.Requests, c.Streams, c.Sessions, c.Sockets, c.Pairs, c.Topics, c.Questions)
	if s.Draining {
		text += "It is ending.\n"
	}
	return text
}

// table prints a table, unless it has no rows. No text of a client or server can steer the
// terminal, or make a row of its own.
func table(w io.Writer, head string, rows int, row func(i int) []any) {
	if rows == 0 {
		return
	}
	_, _ = output.Printf(w, "\n%s\n", output.Block(head)) // into memory
	for i := range rows {
		var cells []string
		for _, v := range row(i) {
			cell := output.Sprintf("%v", v)
			if cell == "" {
				cell = "-"
			}
			cells = append(cells, cell)
		}
		_, _ = output.Printf(w, "%s\n", output.Block(strings.Join(cells, "\t")))
	}
}

func more(w io.Writer, n int, what string) {
	if n > 0 {
		_, _ = output.Printf(w, "and %d more %s\n", n, what)
	}
}

// processes returns how many there are, and their memory.
func processes(all []status.Process, left int) string {
	if len(all) == 0 {
		return ""
	}
	size := int64(0)
	for i := range all {
		size += all[i].Memory
	}
	return fmt.Sprintf("%d, %.1f MiB", len(all)+left, float64(size)/(1<<20))
}
