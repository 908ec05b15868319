package watch

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/subscribe"
)

func TestM2L31RefusedURINarrows(t *testing.T) {
	onStage(t, Options{}, func(t *testing.T, st *stage) {
		st.server.answer = refuse("b")
		s := st.listen(append([]fanout.Topic{listTopic(fanout.ToolsListChanged)}, uriTopics("c", "b", "a")...)...)
		s.wantHonored("toolsListChanged c a")
		st.wantSubscribed("a", "c")
		time.Sleep(time.Minute)
		if got := st.server.callsOf("subscribe b"); len(got) != 1 {
			t.Errorf("%d tries for a refused URI, want 1", len(got))
		}
		st.wantLog("subscribe c", "subscribe a")

		st.server.set(func(s *script) { s.answer = nil })
		later := st.listen(uriTopic("b"))
		later.wantHonored("b")
	})
}

func TestM2L31OnlyWhatTheServerDeclared(t *testing.T) {
	all := []fanout.Topic{
		listTopic(fanout.ToolsListChanged), listTopic(fanout.PromptsListChanged),
		listTopic(fanout.ResourcesListChanged), uriTopic("a"),
	}
	for _, tt := range []struct {
		name   string
		offers Offers
		want   string
	}{
		{"nothing", Offers{Channel: true}, ""},
		{"tools", Offers{Channel: true, Tools: true}, "toolsListChanged"},
		{"prompts", Offers{Channel: true, Prompts: true}, "promptsListChanged"},
		{"resources", Offers{Channel: true, Resources: true}, "resourcesListChanged"},
		{"subscribe", Offers{Channel: true, Subscribe: true}, "a"},
		{"all", allOffers, "toolsListChanged promptsListChanged resourcesListChanged a"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			onStage(t, Options{}, func(t *testing.T, st *stage) {
				st.server.offers = tt.offers
				st.listen(all...).wantHonored(tt.want)
				if n := len(st.server.callsOf("")); n > 0 && !tt.offers.Subscribe {
					t.Errorf("%d calls to a server without resources.subscribe, want none", n)
				}
			})
		})
	}
}

func TestM2L31LateSubscribeIsUndone(t *testing.T) {
	onStage(t, Options{}, func(t *testing.T, st *stage) {
		st.server.answer = delay("slow", 15*time.Second)
		begun := time.Now()
		s := st.listen(uriTopics("a", "slow", "z")...)
		if took := time.Since(begun); took != subscribe.Patience {
			t.Errorf("Watch took %v, want %v", took, subscribe.Patience)
		}
		s.wantHonored("a z")
		st.wantSubscribed("a", "slow", "z") // acted on, not answered
		time.Sleep(5 * time.Second)
		st.wantSubscribed("a", "z")
		st.watch().Changed(fanout.ResourceUpdated, "slow", nil)
		st.wantLog("subscribe a", "subscribe z", "subscribe slow", "unsubscribe slow", "dropped: unsubscribed update")
	})
}

func TestM2L31LateSubscribeIsKeptForAnother(t *testing.T) {
	onStage(t, Options{}, func(t *testing.T, st *stage) {
		st.server.answer = delay("slow", 15*time.Second)
		first := st.goListen(uriTopic("slow"))
		time.Sleep(7 * time.Second)
		second := st.goListen(uriTopic("slow"))
		(<-first).wantHonored("")
		(<-second).wantHonored("slow")
		time.Sleep(time.Minute)
		st.wantCalls("subscribe slow")
	})
}

func TestM2L31SubscribesArePipelined(t *testing.T) {
	onStage(t, Options{}, func(t *testing.T, st *stage) {
		st.server.answer = func(string, string) (time.Duration, error) { return 500 * time.Millisecond, nil }
		var want []fanout.Topic
		for i := range 4 * defaultParallel {
			want = append(want, uriTopic(fmt.Sprint("u", i)))
		}
		begun := time.Now()
		st.listen(want...).wantHonored(bridgetest.TopicNames(want))
		if took := time.Since(begun); took != 2*time.Second {
			t.Errorf("Watch took %v, want 4 rounds of 500ms", took)
		}
	})
}

// A server that never answers for some URIs must not keep us from asking for
// the others.
func TestM2L31SilenceDoesNotHoldUpOthers(t *testing.T) {
	onStage(t, Options{}, func(t *testing.T, st *stage) {
		st.server.answer = func(_, uri string) (time.Duration, error) {
			if strings.HasPrefix(uri, "silent") {
				return time.Hour, nil
			}
			return 0, nil
		}
		var want []fanout.Topic
		for i := range 3 * defaultParallel {
			want = append(want, uriTopic(fmt.Sprint("silent", i)))
		}
		st.listen(append(want, uriTopics("a", "b")...)...).wantHonored("a b")
		begun := time.Now()
		st.listen(uriTopic("c")).wantHonored("c")
		if took := time.Since(begun); took > time.Second {
			t.Errorf("another Watch took %v, want under 1s", took)
		}
		time.Sleep(2 * time.Minute) // each is told once that it is not wanted
		if n := len(st.server.callsOf("unsubscribe silent")); n < len(want) {
			t.Errorf("%d unsubscribes for URIs whose subscribe may have worked, want at least %d", n, len(want))
		}
	})
}

func TestM2L31OtherScopesAreNotHonored(t *testing.T) {
	onStage(t, Options{}, func(t *testing.T, st *stage) {
		foreign := fanout.Topic{Scope: "files/2", Kind: fanout.ResourceUpdated, URI: "a"}
		st.listen(uriTopic("b"), foreign).wantHonored("b")
		st.wantSubscribed("b")
	})
}

func TestM2L31EmptyFilterAsksNobody(t *testing.T) {
	onStage(t, Options{}, func(t *testing.T, st *stage) {
		st.server.away = errors.New("down")
		s := st.listen()
		s.wantHonored("")
		s.close()
	})
}

func TestM2L32ListsNeedAChannel(t *testing.T) {
	onStage(t, Options{}, func(t *testing.T, st *stage) {
		st.server.offers.Channel = false
		tools := listTopic(fanout.ToolsListChanged)
		s := st.listen(tools, uriTopic("a"))
		s.wantHonored("a")
		st.watch().Changed(fanout.ToolsListChanged, "", nil)
		st.wantLog("subscribe a")

		st.server.set(func(s *script) { s.offers.Channel = true })
		st.watch().Channel(true)
		st.wantLog("event a") // what came before the channel was open is lost
		st.listen(tools).wantHonored("toolsListChanged")

		st.server.set(func(s *script) { s.offers.Channel = false })
		st.watch().Channel(false)
		st.listen(tools).wantHonored("")
		st.watch().Changed(fanout.ToolsListChanged, "", nil) // on a call's stream, say
		st.wantLog("event toolsListChanged")
	})
}

// A Watch that sees the channel open before the watch is told must not hide
// that messages were missed.
func TestM2L32ChannelSeenByAWatchFirst(t *testing.T) {
	onStage(t, Options{}, func(t *testing.T, st *stage) {
		st.server.offers.Channel = false
		st.listen(uriTopic("a")).wantHonored("a")
		st.wantLog("subscribe a")
		st.server.set(func(s *script) { s.offers.Channel = true })
		st.listen(uriTopic("b")).wantHonored("b")
		st.watch().Channel(true)
		st.wantLog("event a", "subscribe b")
	})
}

func TestM2L38ListsEndWithoutAChannel(t *testing.T) {
	onStage(t, Options{Unreachable: time.Minute}, func(t *testing.T, st *stage) {
		tools := listTopic(fanout.ToolsListChanged)
		st.listen(tools, uriTopic("a")).wantHonored("toolsListChanged a")
		st.server.set(func(s *script) { s.offers.Channel = false })
		st.watch().Channel(false)
		time.Sleep(59 * time.Second)
		st.wantLog("subscribe a")
		time.Sleep(time.Second)
		st.wantLog("end toolsListChanged")
	})
}

func TestWatchFirstContactFails(t *testing.T) {
	onStage(t, Options{}, func(t *testing.T, st *stage) {
		st.server.away = errors.New("connection refused")
		begun := time.Now()
		s := st.listen(uriTopic("a"))
		if s.err == nil || !strings.Contains(s.err.Error(), "files") || !errors.Is(s.err, st.server.away) {
			t.Errorf("Watch error = %v, want the cause and the server's name", s.err)
		}
		if took := time.Since(begun); took != 0 {
			t.Errorf("Watch took %v, want 0: nobody ever reached the server", took)
		}
		st.wantEnded()
	})
}

func TestWatchWaitsForAServerThatWasReached(t *testing.T) {
	onStage(t, Options{}, func(t *testing.T, st *stage) {
		st.listen(uriTopic("a")).wantHonored("a")
		st.server.lose(errors.New("connection refused"))
		begun := time.Now()
		s := st.listen(uriTopic("b"))
		if took := time.Since(begun); s.err == nil || !strings.Contains(s.err.Error(), "files") || took != subscribe.Patience {
			t.Errorf("Watch error = %v after %v, want one that names the server after %v", s.err, took, subscribe.Patience)
		}
		again := st.goListen(uriTopic("b"))
		time.Sleep(3 * time.Second)
		st.server.set(func(s *script) { s.away = nil })
		(<-again).wantHonored("b")
		st.wantSubscribed("a", "b")
	})
}

func TestWatchCallerLeaves(t *testing.T) {
	onStage(t, Options{}, func(t *testing.T, st *stage) {
		st.server.answer = delay("a", 5*time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if s := st.listenCtx(ctx, uriTopic("a")); !errors.Is(s.err, context.DeadlineExceeded) {
			t.Errorf("Watch error = %v, want the context's", s.err)
		}
		time.Sleep(time.Minute)
		st.wantCalls("subscribe a", "unsubscribe a")
		st.wantEnded()
	})
}

func TestWatchAfterClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, Options{})
		st.server.answer = delay("slow", time.Minute)
		waiting := st.goListen(uriTopic("slow"))
		synctest.Wait()
		st.ws.Close()
		if s := <-waiting; !errors.Is(s.err, mcp.ErrShutdown) {
			t.Errorf("Watch that waited = %v, want %v", s.err, mcp.ErrShutdown)
		}
		if s := st.listen(uriTopic("a")); !errors.Is(s.err, mcp.ErrShutdown) {
			t.Errorf("Watch after close = %v, want %v", s.err, mcp.ErrShutdown)
		}
		st.wantEnded()
	})
}

func TestWatchSnapshot(t *testing.T) {
	onStage(t, Options{}, func(t *testing.T, st *stage) {
		st.server.answer = func(method, uri string) (time.Duration, error) {
			if method == "unsubscribe" || uri == "slow" {
				return time.Minute, nil
			}
			return 0, nil
		}
		want := func(session bool, calls int, want string) {
			t.Helper()
			synctest.Wait()
			snaps := st.ws.snapshot()
			if len(snaps) != 1 {
				t.Fatalf("%d snapshots, want 1", len(snaps))
			}
			var got []string
			for _, topic := range snaps[0].Topics {
				got = append(got, bridgetest.TopicName(topic.Topic)+" "+topic.State)
			}
			if s := snaps[0]; strings.Join(got, ", ") != want || s.Scope != testScope || s.Session != session || s.Calls != calls {
				t.Errorf("snapshot = %+v, want session %v, %d calls, %s", s, session, calls, want)
			}
		}
		a := st.listen(listTopic(fanout.ToolsListChanged), uriTopic("a"), uriTopic("b"))
		st.listen(uriTopic("b"))
		st.goListen(uriTopic("slow"))
		want(true, 1, "toolsListChanged subscribed, a subscribed, b subscribed, slow asking")
		a.close()
		want(true, 1, "toolsListChanged lingering, a lingering, b lingering, slow asking")
		time.Sleep(3 * time.Second)
		want(true, 2, "a ending, b subscribed, slow asking")
		st.server.lose(errors.New("away"))
		want(false, 0, "b lost, slow waiting")
	})
}

func TestWatchesAreApartByProfile(t *testing.T) {
	onStage(t, Options{}, func(t *testing.T, st *stage) {
		other := fanout.Topic{Scope: "files/2", Kind: fanout.ResourceUpdated, URI: "a"}
		st.aud.Want(1, other)
		honored, release, err := st.ws.Watch(t.Context(), mcp.Profile{Scope: "files/2"}, []fanout.Topic{other})
		if err != nil || len(honored) != 1 {
			t.Fatalf("Watch = %v, %v, want one topic", honored, err)
		}
		st.listen(uriTopic("a")).wantHonored("a")
		st.log.Take()
		st.ws.Of("files/2").Changed(fanout.ResourceUpdated, "a", nil)
		if events := st.aud.Events(); len(events) != 1 || events[0].Topic != other {
			t.Errorf("events = %v, want one in scope files/2", events)
		}
		release()
	})
}
