package subscribe_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mcpbridge/mcpbridge/internal/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/subscribe"
)

func TestMain(m *testing.M) { os.Exit(bridgetest.Main(m)) }

var profile = mcp.Profile{Scope: "files"}

func topics(uris ...string) []fanout.Topic {
	out := make([]fanout.Topic, len(uris))
	for i, u := range uris {
		out[i] = fanout.Topic{Scope: profile.Scope, Kind: fanout.ResourceUpdated, URI: u}
	}
	return out
}

// A counter is a loop that honors every URI but "bad", leaves those that wait for
// "never" without an answer, and ends when all have lost interest.
type counter struct{ drops chan *subscribe.Query }

func newCounter(mcp.Profile) *counter { return &counter{make(chan *subscribe.Query, 8)} }

func (c *counter) Drop(q *subscribe.Query) { c.drops <- q }

func (c *counter) Run(ctx context.Context, first *subscribe.Query, more <-chan *subscribe.Query) {
	interested := map[*subscribe.Query]bool{first: true}
	answer(first)
	for len(interested) > 0 {
		select {
		case q := <-more:
			interested[q] = true
			answer(q)
		case q := <-c.drops:
			delete(interested, q)
		case <-ctx.Done():
			for q := range interested {
				q.Finish(context.Cause(ctx))
			}
			return
		}
	}
}

func answer(q *subscribe.Query) {
	for i, t := range q.Want {
		if t.URI != "never" {
			subscribe.Waiter{Query: q, At: i}.Settle(t.URI != "bad")
		}
	}
}

func TestTableKeepsALoopWhileSomebodyIsInterested(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := subscribe.NewTable("files", newCounter)
		honored, release, err := table.Watch(t.Context(), profile, topics("a", "bad", "b"))
		if err != nil || !slices.Equal(honored, topics("a", "b")) {
			t.Fatalf("Watch = %v, %v, want a and b", honored, err)
		}
		loop := table.Of("files")
		_, again, err := table.Watch(t.Context(), profile, topics("c"))
		if err != nil || table.Of("files") != loop || len(table.Loops()) != 1 {
			t.Fatalf("second Watch = %v with %d loops, want the same loop", err, len(table.Loops()))
		}
		done := table.Loops()[0].Done
		release()
		release() // the second does nothing, or the loop would end twice
		synctest.Wait()
		if table.Of("files") != loop {
			t.Fatal("the loop has ended, and one is interested still")
		}
		again()
		<-done
		if l := table.Of("files"); l != nil {
			t.Errorf("Of = %v after the last lost interest, want nil", l)
		}
		if _, release, err := table.Watch(t.Context(), profile, topics("a")); err != nil {
			t.Errorf("Watch after that = %v, want a new loop", err)
		} else {
			release()
		}
		table.Close()
	})
}

func TestTableWatchOfNothing(t *testing.T) {
	table := subscribe.NewTable("files", newCounter)
	honored, release, err := table.Watch(t.Context(), profile, nil)
	if len(honored) != 0 || err != nil || len(table.Loops()) != 0 {
		t.Errorf("Watch of nothing = %v, %v with %d loops, want nothing", honored, err, len(table.Loops()))
	}
	release()
}

func TestTableCallerLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := subscribe.NewTable("files", newCounter)
		ctx, leave := context.WithCancelCause(t.Context())
		gone := errors.New("gone")
		failed := make(chan error)
		go func() {
			_, _, err := table.Watch(ctx, profile, topics("never"))
			failed <- err
		}()
		synctest.Wait()
		leave(gone)
		if err := <-failed; err != gone {
			t.Errorf("Watch = %v, want why its caller left", err)
		}
		synctest.Wait()
		if n := len(table.Loops()); n != 0 {
			t.Errorf("%d loops, want none: nobody is interested", n)
		}
	})
}

func TestTableClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := subscribe.NewTable("files", newCounter)
		failed := make(chan error)
		go func() {
			_, _, err := table.Watch(t.Context(), profile, topics("never"))
			failed <- err
		}()
		synctest.Wait()
		go table.Close()
		if err := <-failed; !errors.Is(err, mcp.ErrShutdown) || !strings.Contains(err.Error(), "files") {
			t.Errorf("Watch under way = %v, want that it is closed, and the server's name", err)
		}
		table.Close()
		if _, _, err := table.Watch(t.Context(), profile, topics("a")); !errors.Is(err, mcp.ErrShutdown) {
			t.Errorf("Watch after Close = %v, want that it is closed", err)
		}
	})
}

func TestWithout(t *testing.T) {
	a, b := subscribe.NewQuery(topics("a", "b")), subscribe.NewQuery(topics("c"))
	ws := []subscribe.Waiter{{Query: a, At: 0}, {Query: b, At: 0}, {Query: a, At: 1}}
	left := subscribe.Without(ws, a)
	if len(left) != 1 || left[0].Query != b {
		t.Errorf("Without = %v, want b's alone", left)
	}
	if ws[1].Query != nil || ws[2].Query != nil {
		t.Error("what was taken out is still held")
	}
}
