package console

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/output"
	"github.com/mcpbridge/mcpbridge/internal/status"
)

const (
	// mostClients and mostTopics are how many lines there are of each.
	mostClients = 12
	mostTopics  = 12
	// wholeScreen moves the cursor to the beginning of a screen, and clears what follows.
	wholeScreen = "\x1b[H\x1b[J"
)

// Top prints what the gateway holds: once, or every so often over a cleared screen, until
// ctx ends.
func (a *Admin) Top(ctx context.Context, w io.Writer, every time.Duration) error {
	for {
		s, err := a.State(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		if every == 0 {
			return Print(w, s)
		}
		var screen bytes.Buffer
		screen.WriteString(wholeScreen)
		if err := Print(&screen, s); err != nil {
			return err
		}
		if _, err := w.Write(screen.Bytes()); err != nil {
			return err
		}
		select {
		case <-time.After(every):
		case <-ctx.Done():
			return nil
		}
	}
}

// Print prints tables of what a gateway holds.
func Print(w io.Writer, s *State) error {
	var text bytes.Buffer
	c := s.Counts
	fmt.Fprintf(&text, "mcpbridge %s, up %s; %d requests in flight, %d streams, %d sessions, %d WebSockets, %d subscriptions to %d topics, %d questions\n",
		s.Version, s.Time.Sub(s.Started).Round(time.Second), c.Requests, c.Streams, c.Sessions, c.Sockets, c.Pairs, c.Topics, c.Questions)
	if s.Draining {
		text.WriteString("It is ending.\n")
	}
	table(&text, "SERVER\tSTATE\tERA\tSESSIONS\tTOPICS\tFOLLOWERS\tQUESTIONS\tPROCESSES\tERROR", len(s.Servers), func(i int) []any {
		v := &s.Servers[i]
		return []any{v.Name, v.State, v.Era, v.Sessions, v.Topics, v.Followers, v.Questions, processes(v.Processes, v.ProcessesLeft), v.Error}
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
	_, err := io.WriteString(w, text.String())
	return err
}

// table prints a table, unless it has no rows. No text of a client or server can steer the
// terminal, or make a row of its own.
func table(w io.Writer, head string, rows int, row func(i int) []any) {
	if rows == 0 {
		return
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w)
	fmt.Fprintln(t, head)
	for i := range rows {
		var cells []string
		for _, v := range row(i) {
			cell := output.Printable(output.OneLine(fmt.Sprint(v)))
			if cell == "" {
				cell = "-"
			}
			cells = append(cells, cell)
		}
		fmt.Fprintln(t, strings.Join(cells, "\t"))
	}
	_ = t.Flush() // w is a buffer
}

func more(w io.Writer, n int, what string) {
	if n > 0 {
		fmt.Fprintf(w, "and %d more %s\n", n, what)
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
