package watch

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/watchtest"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/subscribe"
)

func TestM2L31RefusedURINarrows(t *testing.T) {
	withRig(t, options{}, func(t *testing.T, st *rig) {
		st.server.answer = refuse("b")
		s := st.Listen(append([]fanout.Topic{listTopic(fanout.ToolsListChanged)}, uriTopics("c", "b", "a")...)...)
		s.WantHonored("toolsListChanged c a")
		st.wantSubscribed("a", "c")
		time.Sleep(time.Minute)
		if got := st.server.callsOf("subscribe b"); len(got) != 1 {
			t.Errorf("%d tries for a refused URI, want 1", len(got))
		}
		st.WantLog("subscribe c", "subscribe a")

		st.server.set(func(s *script) { s.answer = nil })
		later := st.Listen(uriTopic("b"))
		later.WantHonored("b")
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
		{"tools", Offers{Channel: true, Lists: mcp.Lists{Tools: true}}, "toolsListChanged"},
		{"prompts", Offers{Channel: true, Lists: mcp.Lists{Prompts: true}}, "promptsListChanged"},
		{"resources", Offers{Channel: true, Lists: mcp.Lists{Resources: true}}, "resourcesListChanged"},
		{"subscribe", Offers{Channel: true, Subscribe: true}, "a"},
		{"all", allOffers, "toolsListChanged promptsListChanged resourcesListChanged a"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			withRig(t, options{}, func(t *testing.T, st *rig) {
				st.server.offers = tt.offers
				st.Listen(all...).WantHonored(tt.want)
				if n := len(st.server.callsOf("")); n > 0 && !tt.offers.Subscribe {
					t.Errorf("%d calls to a server without resources.subscribe, want none", n)
				}
			})
		})
	}
}

func TestM2L31LateSubscribeIsUndone(t *testing.T) {
	withRig(t, options{}, func(t *testing.T, st *rig) {
		st.server.answer = delay("slow", 15*time.Second)
		begun := time.Now()
		s := st.Listen(uriTopics("a", "slow", "z")...)
		if took := time.Since(begun); took != subscribe.Patience {
			t.Errorf("Watch took %v, want %v", took, subscribe.Patience)
		}
		s.WantHonored("a z")
		st.wantSubscribed("a", "slow", "z") // acted on, not answered
		time.Sleep(5 * time.Second)
		st.wantSubscribed("a", "z")
		st.current().Changed(fanout.ResourceUpdated, "slow", nil)
		st.WantLog("subscribe a", "subscribe z", "subscribe slow", "unsubscribe slow", "dropped: unsubscribed update")
	})
}

func TestM2L31LateSubscribeIsKeptForAnother(t *testing.T) {
	withRig(t, options{}, func(t *testing.T, st *rig) {
		st.server.answer = delay("slow", 15*time.Second)
		first := st.GoListen(uriTopic("slow"))
		time.Sleep(7 * time.Second)
		second := st.GoListen(uriTopic("slow"))
		(<-first).WantNotNow()
		(<-second).WantHonored("slow")
		time.Sleep(time.Minute)
		st.wantCalls("subscribe slow")
	})
}

func TestM2L31SubscribesArePipelined(t *testing.T) {
	withRig(t, options{}, func(t *testing.T, st *rig) {
		st.server.answer = func(string, string) (time.Duration, error) { return 500 * time.Millisecond, nil }
		var want []fanout.Topic
		for i := range 4 * usual.parallel {
			want = append(want, uriTopic(fmt.Sprint("u", i)))
		}
		begun := time.Now()
		st.Listen(want...).WantHonored(watchtest.TopicNames(want))
		if took := time.Since(begun); took != 2*time.Second {
			t.Errorf("Watch took %v, want 4 rounds of 500ms", took)
		}
	})
}

// A server that never answers for some URIs must not keep us from asking for
// the others.
func TestM2L31SilenceDoesNotHoldUpOthers(t *testing.T) {
	withRig(t, options{}, func(t *testing.T, st *rig) {
		st.server.answer = func(_, uri string) (time.Duration, error) {
			if strings.HasPrefix(uri, "silent") {
				return time.Hour, nil
			}
			return 0, nil
		}
		var want []fanout.Topic
		for i := range 3 * usual.parallel {
			want = append(want, uriTopic(fmt.Sprint("silent", i)))
		}
		st.Listen(append(want, uriTopics("a", "b")...)...).WantHonored("a b")
		begun := time.Now()
		st.Listen(uriTopic("c")).WantHonored("c")
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
	withRig(t, options{}, func(t *testing.T, st *rig) {
		st.server.offers.Channel = false
		tools := listTopic(fanout.ToolsListChanged)
		s := st.Listen(tools, uriTopic("a"))
		s.WantHonored("a")
		st.current().Changed(fanout.ToolsListChanged, "", nil)
		st.WantLog("subscribe a")

		st.server.set(func(s *script) { s.offers.Channel = true })
		st.current().ListenChanged(false)
		st.WantLog("event a") // what came before the channel was open is lost
		st.Listen(tools).WantHonored("toolsListChanged")

		st.server.set(func(s *script) { s.offers.Channel = false })
		st.current().ListenChanged(false)
		st.Listen(tools).WantNotNow()
		st.current().Changed(fanout.ToolsListChanged, "", nil) // on a call's stream, say
		st.WantLog("event toolsListChanged")
	})
}

// A list without a channel is put off while the server may open one, and refused if it offers none.
func TestM2L32ListsAwaitTheirChannel(t *testing.T) {
	withRig(t, options{}, func(t *testing.T, st *rig) {
		tools := listTopic(fanout.ToolsListChanged)
		st.server.offers.Channel = false
		st.Listen(tools).WantHonored("").Close()
		st.server.set(func(s *script) { s.offers.Reopening = true })
		st.Listen(tools).WantNotNow()
		st.Listen(tools, uriTopic("a")).WantHonored("a").Close()
		time.Sleep(time.Minute)
		st.wantEnded()
		st.server.set(func(s *script) { s.offers.Channel, s.offers.Reopening = true, false })
		st.Listen(tools).WantHonored("toolsListChanged")
	})
}

// A Watch that sees the channel open before the watch is told must not hide
// that messages were missed.
func TestM2L32ChannelSeenByAWatchFirst(t *testing.T) {
	withRig(t, options{}, func(t *testing.T, st *rig) {
		st.server.offers.Channel = false
		st.Listen(uriTopic("a")).WantHonored("a")
		st.WantLog("subscribe a")
		st.server.set(func(s *script) { s.offers.Channel = true })
		st.Listen(uriTopic("b")).WantHonored("b")
		st.current().ListenChanged(false)
		st.WantLog("event a", "subscribe b")
	})
}

func TestM2L38ListsEndWithoutAChannel(t *testing.T) {
	withRig(t, options{pace: pace{usual.retry, time.Minute, usual.parallel}}, func(t *testing.T, st *rig) {
		tools := listTopic(fanout.ToolsListChanged)
		st.Listen(tools, uriTopic("a")).WantHonored("toolsListChanged a")
		st.server.set(func(s *script) { s.offers.Channel = false })
		st.current().ListenChanged(false)
		time.Sleep(59 * time.Second)
		st.WantLog("subscribe a")
		time.Sleep(time.Second)
		st.WantLog("end toolsListChanged")
	})
}

func TestWatchWaitsForAServerThatWasReached(t *testing.T) {
	withRig(t, options{}, func(t *testing.T, st *rig) {
		st.Listen(uriTopic("a")).WantHonored("a")
		st.server.lose(errors.New("connection refused"))
		begun := time.Now()
		s := st.Listen(uriTopic("b"))
		if took := time.Since(begun); s.Err == nil || !strings.Contains(s.Err.Error(), "files") || took != subscribe.Patience {
			t.Errorf("Watch error = %v after %v, want one that names the server after %v", s.Err, took, subscribe.Patience)
		}
		again := st.GoListen(uriTopic("b"))
		time.Sleep(3 * time.Second)
		st.server.set(func(s *script) { s.away = nil })
		(<-again).WantHonored("b")
		st.wantSubscribed("a", "b")
	})
}

func TestWatchCallerLeaves(t *testing.T) {
	withRig(t, options{}, func(t *testing.T, st *rig) {
		st.server.answer = delay("a", 5*time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if s := st.ListenCtx(ctx, uriTopic("a")); !errors.Is(s.Err, context.DeadlineExceeded) {
			t.Errorf("Watch error = %v, want the context's", s.Err)
		}
		time.Sleep(time.Minute)
		st.wantCalls("subscribe a", "unsubscribe a")
		st.wantEnded()
	})
}
