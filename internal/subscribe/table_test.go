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
)

func TestTableKeepsABookWhileSomebodyIsInterested(t *testing.T) {
	onStage(t, Options{}, func(t *testing.T, st *stage) {
		one := st.listen(uris("a", "bad", "b")...).wantHonored("a b")
		driver := st.Of(scope)
		two := st.listen(uris("c")...).wantHonored("c")
		if st.Of(scope) != driver {
			t.Fatal("the second Watch has another book")
		}
		one.close()
		one.release() // the second does nothing
		time.Sleep(time.Minute)
		if st.Of(scope) != driver {
			t.Fatal("the book has ended, and one is interested still")
		}
		two.close()
		time.Sleep(time.Minute)
		st.wantEnded()
		st.listen(uris("a")...).wantHonored("a")
	})
}

func TestTableWatchOfNothing(t *testing.T) {
	onStage(t, Options{}, func(t *testing.T, st *stage) {
		st.away = errors.New("down")
		st.listen().wantHonored("").close()
		st.wantEnded()
	})
}

func TestTableCallerLeaves(t *testing.T) {
	onStage(t, Options{}, func(t *testing.T, st *stage) {
		ctx, leave := context.WithCancelCause(t.Context())
		gone := errors.New("gone")
		time.AfterFunc(time.Second, func() { leave(gone) })
		if s := st.listenCtx(ctx, uris("never")...); s.err != gone {
			t.Errorf("Watch = %v, want why its caller left", s.err)
		}
		st.wantEnded()
	})
}

func TestTableClose(t *testing.T) {
	onStage(t, Options{}, func(t *testing.T, st *stage) {
		failed := make(chan error)
		go func() { failed <- st.listen(uris("never")...).err }()
		synctest.Wait()
		go st.Close()
		if err := <-failed; !errors.Is(err, mcp.ErrShutdown) || !strings.Contains(err.Error(), "files") {
			t.Errorf("Watch under way = %v, want that it is closed, and the server's name", err)
		}
		st.Close()
		if s := st.listen(uris("a")...); !errors.Is(s.err, mcp.ErrShutdown) {
			t.Errorf("Watch after Close = %v, want that it is closed", s.err)
		}
	})
}

func TestTableKeepsProfilesApart(t *testing.T) {
	onStage(t, Options{}, func(t *testing.T, st *stage) {
		other := fanout.Topic{Scope: "files/2", Kind: fanout.ResourceUpdated, URI: "a"}
		st.listen(append(uris("a"), other)...).wantHonored("a")
		st.aud.Want(1, other)
		honored, release, err := st.Watch(t.Context(), mcp.Profile{Scope: "files/2"}, []fanout.Topic{other})
		if err != nil || !slices.Equal(honored, []fanout.Topic{other}) {
			t.Fatalf("Watch = %v, %v, want one topic", honored, err)
		}
		defer release()
		st.Of("files/2").book.Hear(fanout.Event{Topic: other}, nil)
		if events := st.aud.Events(); len(events) != 1 || events[0].Topic != other {
			t.Errorf("events = %v, want one in scope files/2", events)
		}
	})
}

func TestWatchOfAServerThatIsAway(t *testing.T) {
	onStage(t, Options{}, func(t *testing.T, st *stage) {
		away := errors.New("connection refused")
		for _, tt := range []struct {
			name string
			took time.Duration
		}{{"never reached", 0}, {"reached before", Patience}} {
			st.away = away
			begun := time.Now()
			s := st.listen(uris("a")...)
			if s.err == nil || !strings.Contains(s.err.Error(), "files") || !errors.Is(s.err, away) {
				t.Errorf("%s: Watch = %v, want the cause and the server's name", tt.name, s.err)
			}
			if took := time.Since(begun); took != tt.took {
				t.Errorf("%s: Watch took %v, want %v", tt.name, took, tt.took)
			}
			st.wantEnded()
			st.away = nil
			st.listen(uris("a")...).wantHonored("a").close()
			time.Sleep(time.Minute)
			st.wantEnded()
		}
	})
}

func TestWhatIsNotAnsweredIn10sIsNotHonored(t *testing.T) {
	onStage(t, Options{}, func(t *testing.T, st *stage) {
		begun := time.Now()
		s := st.listen(uris("a", "never")...).wantHonored("a")
		if took := time.Since(begun); took != Patience {
			t.Errorf("Watch took %v, want %v", took, Patience)
		}
		st.wantLog("begin a")
		s.close()
		time.Sleep(DefaultLinger)
		st.wantLog("finish a")
		st.wantEnded()
	})
}
