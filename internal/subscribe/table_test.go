package subscribe

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
)

func TestTableKeepsABookWhileSomebodyIsInterested(t *testing.T) {
	onStage(t, upstream.Options{}, func(t *testing.T, st *stage) {
		one := st.Listen(uris("a", "bad", "b")...).WantHonored("a b")
		driver := st.table.Of(scope)
		two := st.Listen(uris("c")...).WantHonored("c")
		if st.table.Of(scope) != driver {
			t.Fatal("the second Watch has another book")
		}
		one.Close()
		one.Release() // the second does nothing
		time.Sleep(time.Minute)
		if st.table.Of(scope) != driver {
			t.Fatal("the book has ended, and one is interested still")
		}
		two.Close()
		time.Sleep(time.Minute)
		st.wantEnded()
		st.Listen(uris("a")...).WantHonored("a")
	})
}

func TestTableWatchOfNothing(t *testing.T) {
	onStage(t, upstream.Options{}, func(t *testing.T, st *stage) {
		st.away = errors.New("down")
		st.Listen().WantHonored("").Close()
		st.wantEnded()
	})
}

// What is not answered in time is no refusal: it may be accepted later.
func TestM2L31UnansweredIsNotRefused(t *testing.T) {
	onStage(t, upstream.Options{}, func(t *testing.T, st *stage) {
		st.Listen(uris("bad")...).WantHonored("").Close()
		began := time.Now()
		st.Listen(uris("never")...).WantNotNow()
		if took := time.Since(began); took != Patience {
			t.Errorf("Watch took %v, want %v", took, Patience)
		}
		st.wantEnded()
		st.Listen(uris("bad", "never")...).WantHonored("").Close()
		st.Listen(uris("a", "never")...).WantHonored("a")
	})
}

// A topic whose last subscriber has left lingers no longer for one who is put off.
func TestM2L34PutOffDoesNotKeepATopic(t *testing.T) {
	onStage(t, upstream.Options{}, func(t *testing.T, st *stage) {
		a := st.Listen(uris("a")...).WantHonored("a")
		a.Close()
		st.later = true
		st.Listen(uris("a")...).WantNotNow()
		time.Sleep(time.Minute)
		st.wantEnded()
	})
}

func TestTableCallerLeaves(t *testing.T) {
	onStage(t, upstream.Options{}, func(t *testing.T, st *stage) {
		ctx, leave := context.WithCancelCause(t.Context())
		gone := errors.New("gone")
		time.AfterFunc(time.Second, func() { leave(gone) })
		if s := st.ListenCtx(ctx, uris("never")...); s.Err != gone {
			t.Errorf("Watch = %v, want why its caller left", s.Err)
		}
		st.wantEnded()
	})
}

func TestTableClose(t *testing.T) {
	onStage(t, upstream.Options{}, func(t *testing.T, st *stage) {
		failed := make(chan error)
		go func() { failed <- st.Listen(uris("never")...).Err }()
		synctest.Wait()
		go st.table.Close()
		if err := <-failed; !errors.Is(err, mcp.ErrShutdown) || !strings.Contains(err.Error(), "files") {
			t.Errorf("Watch under way = %v, want that it is closed, and the server's name", err)
		}
		st.table.Close()
		if s := st.Listen(uris("a")...); !errors.Is(s.Err, mcp.ErrShutdown) {
			t.Errorf("Watch after Close = %v, want that it is closed", s.Err)
		}
	})
}

func TestTableKeepsProfilesApart(t *testing.T) {
	onStage(t, upstream.Options{}, func(t *testing.T, st *stage) {
		other := fanout.Topic{Scope: "files/2", Kind: fanout.ResourceUpdated, URI: "a"}
		st.Listen(append(uris("a"), other)...).WantHonored("a")
		st.Want(1, other)
		honored, release, err := st.Watch(t.Context(), mcp.Profile{Scope: "files/2"}, []fanout.Topic{other})
		if err != nil || !slices.Equal(honored, []fanout.Topic{other}) {
			t.Fatalf("Watch = %v, %v, want one topic", honored, err)
		}
		defer release()
		st.table.Of("files/2").book.Hear(fanout.Event{Topic: other}, nil)
		if events := st.Events(); len(events) != 1 || events[0].Topic != other {
			t.Errorf("events = %v, want one in scope files/2", events)
		}
	})
}

func TestWatchOfAServerThatIsAway(t *testing.T) {
	onStage(t, upstream.Options{}, func(t *testing.T, st *stage) {
		away := errors.New("connection refused")
		for _, tt := range []struct {
			name string
			took time.Duration
		}{{"never reached", 0}, {"reached before", Patience}} {
			st.away = away
			begun := time.Now()
			s := st.Listen(uris("a")...)
			if s.Err == nil || !strings.Contains(s.Err.Error(), "files") || !errors.Is(s.Err, away) {
				t.Errorf("%s: Watch = %v, want the cause and the server's name", tt.name, s.Err)
			}
			if took := time.Since(begun); took != tt.took {
				t.Errorf("%s: Watch took %v, want %v", tt.name, took, tt.took)
			}
			st.wantEnded()
			st.away = nil
			st.Listen(uris("a")...).WantHonored("a").Close()
			time.Sleep(time.Minute)
			st.wantEnded()
		}
	})
}

func TestWhatIsNotAnsweredIn10sIsNotHonored(t *testing.T) {
	onStage(t, upstream.Options{}, func(t *testing.T, st *stage) {
		begun := time.Now()
		s := st.Listen(uris("a", "never")...).WantHonored("a")
		if took := time.Since(begun); took != Patience {
			t.Errorf("Watch took %v, want %v", took, Patience)
		}
		st.WantLog("begin a")
		s.Close()
		time.Sleep(upstream.DefaultLinger)
		st.WantLog("finish a")
		st.wantEnded()
	})
}
