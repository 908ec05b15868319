package watch

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
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
		for i := range 4 * DefaultParallel {
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
		for i := range 3 * DefaultParallel {
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

func TestM2L32ListsNeedAChannel(t *testing.T) {
	onStage(t, Options{}, func(t *testing.T, st *stage) {
		st.server.offers.Channel = false
		tools := listTopic(fanout.ToolsListChanged)
		s := st.listen(tools, uriTopic("a"))
		s.wantHonored("a")
		st.watch().Changed(fanout.ToolsListChanged, "", nil)
		st.wantLog("subscribe a")

		st.server.set(func(s *script) { s.offers.Channel = true })
		st.watch().ListenChanged(false)
		st.wantLog("event a") // what came before the channel was open is lost
		st.listen(tools).wantHonored("toolsListChanged")

		st.server.set(func(s *script) { s.offers.Channel = false })
		st.watch().ListenChanged(false)
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
		st.watch().ListenChanged(false)
		st.wantLog("event a", "subscribe b")
	})
}

func TestM2L38ListsEndWithoutAChannel(t *testing.T) {
	onStage(t, Options{Unreachable: time.Minute}, func(t *testing.T, st *stage) {
		tools := listTopic(fanout.ToolsListChanged)
		st.listen(tools, uriTopic("a")).wantHonored("toolsListChanged a")
		st.server.set(func(s *script) { s.offers.Channel = false })
		st.watch().ListenChanged(false)
		time.Sleep(59 * time.Second)
		st.wantLog("subscribe a")
		time.Sleep(time.Second)
		st.wantLog("end toolsListChanged")
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
