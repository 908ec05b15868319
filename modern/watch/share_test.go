package watch

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/watchtest"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/subscribe"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
)

func TestL2M21NewTopicsOpenASmallStreamAtOnceAndMergeLater(t *testing.T) {
	withRig(t, options{}, func(t *testing.T, st *rig) {
		start := time.Now()
		st.Listen(uriTopics("a", "b")...).WantHonored("a b")
		st.Listen(uriTopic("c"), listTopic(fanout.ToolsListChanged)).WantHonored("c toolsListChanged")
		if took := time.Since(start); took > 50*time.Millisecond {
			t.Errorf("Watch took %v, want it at once", took)
		}
		st.wantCarried("a b", "c toolsListChanged")
		time.Sleep(5 * time.Second)
		st.wantCarried("a b c toolsListChanged")
		st.wantRequests(3)
	})
}

// There are no sessions that could be lost: the server is not asked.
func TestG14NoSessionToLose(t *testing.T) {
	withRig(t, options{}, func(t *testing.T, st *rig) {
		st.Listen(listTopic(fanout.StateLost)).WantHonored("")
		st.wantRequests(0)
		st.Listen(listTopic(fanout.StateLost), listTopic(fanout.ToolsListChanged)).WantHonored("toolsListChanged")
		st.wantCarried("toolsListChanged")
	})
}

func TestS01WatchersOfOneProfileShareStreams(t *testing.T) {
	withRig(t, options{}, func(t *testing.T, st *rig) {
		one := st.Listen(uriTopic("a")).WantHonored("a")
		st.wantRequests(1)
		two := st.Listen(uriTopic("a")).WantHonored("a")
		st.wantRequests(0) // live already: no traffic
		st.server.tell(uriTopic("a"), "")
		st.wantTold(`a{"v":1}`) // once for all
		one.Close()
		time.Sleep(time.Hour)
		st.server.tell(uriTopic("a"), "")
		st.wantTold(`a{"v":1}`)
		two.Close()
		synctest.Wait()
		st.wantCarried("a") // it lingers
		time.Sleep(upstream.DefaultLinger + time.Second)
		st.wantEnded()

		other := mcp.Profile{Scope: "scripted/2"}
		topic := fanout.Topic{Scope: "scripted/2", Kind: fanout.ResourceUpdated, URI: "a"}
		st.Listen(uriTopic("a")).WantHonored("a")
		_, release, err := st.ws.Watch(t.Context(), other, []fanout.Topic{topic})
		if err != nil || len(st.server.carried()) != 2 {
			t.Fatalf("Watch of another profile: %v, %d streams, want one of its own", err, len(st.server.carried()))
		}
		release()
	})
}

// The new stream is acknowledged before a former one is closed, and for a while both
// are read: what the server had sent on the former one alone is not lost. Once the new one
// has brought a change, what the former one brings is known from it.
func TestL2M21MergesMakeBeforeBreak(t *testing.T) {
	withRig(t, options{}, func(t *testing.T, st *rig) {
		st.Listen(uriTopic("a"))
		st.Listen(uriTopic("b"))
		st.server.says(func(mcp.Filter) scripted { return scripted{takes: time.Second} })
		st.server.requests()
		for begin := time.Now(); len(st.server.requests()) == 0; time.Sleep(10 * time.Millisecond) {
			if time.Since(begin) > 10*time.Second {
				t.Fatal("no merge within 10 s")
			}
		}
		st.wantCarried("a", "b") // the merge has been asked for
		st.server.tell(uriTopic("a"), "")
		st.wantTold(`a{"v":1}`)
		time.Sleep(time.Second + 100*time.Millisecond)
		st.wantCarried("a", "b", "a b")
		former, heir := st.server.open[0], st.server.open[2]
		former.events <- fanout.Event{Topic: uriTopic("a"), Meta: []byte(`"late"`)}
		st.wantTold(`a"late"`)
		heir.events <- fanout.Event{Topic: uriTopic("a"), Meta: []byte(`"next"`)}
		st.wantTold(`a"next"`)
		former.events <- fanout.Event{Topic: uriTopic("a"), Meta: []byte(`"next"`)}
		st.wantTold()
		for range 10 {
			st.server.tell(uriTopic("a"), "")
			st.wantTold(`a{"v":1}`)
		}
		time.Sleep(2 * time.Second)
		st.wantCarried("a b")
		st.server.tell(uriTopic("a"), "")
		st.wantTold(`a{"v":1}`)
	})
}

func TestL2M21ABurstOpensFewStreams(t *testing.T) {
	for _, gap := range []time.Duration{0, time.Millisecond, 20 * time.Millisecond, 300 * time.Millisecond} {
		t.Run(gap.String(), func(t *testing.T) {
			withRig(t, options{}, func(t *testing.T, st *rig) {
				st.server.says(func(mcp.Filter) scripted { return scripted{takes: 30 * time.Millisecond} })
				var pending []<-chan *watchtest.Stream
				for i := range 200 {
					pending = append(pending, st.GoListen(uriTopic(fmt.Sprint(i))))
					time.Sleep(gap)
				}
				for i, c := range pending {
					(<-c).WantHonored(fmt.Sprint(i))
				}
				if most := st.server.peak(); most > maxOpen {
					t.Errorf("%d streams were open at a time, want %d at most", most, maxOpen)
				}
				time.Sleep(30 * time.Second)
				if got := st.server.carried(); len(got) != 1 || len(strings.Fields(got[0])) != 200 {
					t.Errorf("%d streams once settled, want one with 200 topics", len(got))
				}
			})
		})
	}
}

// Whoever subscribes to one URI after the other waits for each, but not for merges.
func TestL2M21OneAfterTheOther(t *testing.T) {
	withRig(t, options{}, func(t *testing.T, st *rig) {
		st.server.says(func(mcp.Filter) scripted { return scripted{takes: 2 * time.Millisecond} })
		start := time.Now()
		var longest time.Duration
		for i := range 200 {
			begin := time.Now()
			st.Listen(uriTopic(fmt.Sprint(i))).WantHonored(fmt.Sprint(i))
			longest = max(longest, time.Since(begin))
		}
		if took := time.Since(start); took > 5*time.Second || longest > time.Second {
			t.Errorf("200 Watches took %v, the longest %v, want 5s and 1s at most", took, longest)
		}
		if most := st.server.peak(); most > maxOpen {
			t.Errorf("%d streams were open at a time, want %d at most", most, maxOpen)
		}
		time.Sleep(10 * time.Second)
		if got := st.server.carried(); len(got) != 1 {
			t.Errorf("%d streams once settled, want one", len(got))
		}
	})
}

// Hundreds of sessions that come and go in any order, and a server that tells of
// changes all the time: each is told once or twice to those who were promised it.
func TestL2M21ManySessionsShareStreamsAndMissNothing(t *testing.T) {
	withRig(t, options{}, func(t *testing.T, st *rig) {
		sessions, uris := bridgetest.Numbers(300, 1000), bridgetest.Numbers(60, 200)
		st.server.says(func(mcp.Filter) scripted { return scripted{takes: rand.N(200 * time.Millisecond)} })
		live := make(map[string]bool)
		var mu sync.Mutex
		var wg sync.WaitGroup
		for range sessions {
			wg.Go(func() {
				for _, i := range rand.Perm(uris) {
					time.Sleep(rand.N(50 * time.Millisecond))
					uri := fmt.Sprint(i)
					if s := st.Listen(uriTopic(uri)); len(s.Honored) != 1 {
						t.Errorf("Watch(%s) = %v, %v", uri, s.Honored, s.Err)
					}
					mu.Lock()
					live[uri] = true
					mu.Unlock()
				}
			})
		}
		done := make(chan struct{})
		go func() { wg.Wait(); close(done) }()
		told := func() map[string]int {
			n := make(map[string]int)
			for _, line := range st.told() {
				name, _, _ := strings.Cut(line, "{")
				n[name]++
			}
			return n
		}
		for settled := 0; settled < 20; time.Sleep(500 * time.Millisecond) {
			select {
			case <-done:
				settled++
			default:
			}
			mu.Lock()
			var now []string
			for uri := range live {
				now = append(now, uri)
			}
			mu.Unlock()
			told()
			for _, uri := range now {
				st.server.tell(uriTopic(uri), "")
			}
			counts := told()
			for _, uri := range now {
				if n := counts[uri]; n < 1 || n > 2 {
					t.Fatalf("a change of %s was told %d times, want once or twice", uri, n)
				}
			}
		}
		if got := st.server.carried(); len(got) > 4 {
			t.Errorf("%d upstream streams once settled, want 4 at most", len(got))
		}
	})
}

func TestL2M21TopicsNobodyWantsLeaveAtAMerge(t *testing.T) {
	withRig(t, options{}, func(t *testing.T, st *rig) {
		one := st.Listen(uriTopics("a", "b")...)
		two := st.Listen(uriTopic("c"))
		time.Sleep(5 * time.Second)
		st.wantCarried("a b c")
		two.Close()
		time.Sleep(upstream.DefaultLinger)
		st.server.tell(uriTopic("c"), "")
		st.wantTold("dropped: unsubscribed update")
		st.server.requests()
		st.Listen(uriTopic("c")).WantHonored("c") // back before the merge
		st.wantRequests(0)
		one.Close()
		time.Sleep(15 * time.Second)
		st.wantCarried("c")
		st.wantRequests(1)
		st.wantTold()
	})
}

// A merge that the server refuses, narrows or does not answer leaves the streams as
// they are, and is tried seldom.
func TestL2M21AFailedMergeLosesNothing(t *testing.T) {
	for _, tt := range []struct {
		name   string
		merges func(want mcp.Filter) scripted // what becomes of them
	}{
		{"refused", func(want mcp.Filter) scripted { return refusing(-32603, "a")(want) }},
		{"unreachable", unreachable},
		{"narrowed", func(want mcp.Filter) scripted { return scripted{omit: want.URIs[1:]} }},
		{"granted nothing", func(want mcp.Filter) scripted { return scripted{omit: want.URIs, ends: true} }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			withRig(t, options{}, func(t *testing.T, st *rig) {
				st.server.says(func(want mcp.Filter) scripted {
					if len(want.URIs) == 1 {
						return scripted{}
					}
					return tt.merges(want)
				})
				for _, uri := range []string{"a", "b", "c"} {
					st.Listen(uriTopic(uri)).WantHonored(uri)
				}
				time.Sleep(30 * time.Minute)
				if n := len(st.server.requests()); n < 5 || n > 30 {
					t.Errorf("%d listen requests within half an hour, want few", n)
				}
				st.told()
				for _, uri := range []string{"a", "b", "c"} {
					st.server.tell(uriTopic(uri), "")
				}
				st.wantTold(`a{"v":1}`, `b{"v":1}`, `c{"v":1}`)
			})
		})
	}
}

func TestL2M20WhatIsNotAcknowledgedIn10sIsNotHonored(t *testing.T) {
	withRig(t, options{}, func(t *testing.T, st *rig) {
		st.Listen(uriTopic("a")).WantHonored("a")
		st.server.says(func(mcp.Filter) scripted { return scripted{takes: time.Hour} })
		start := time.Now()
		s := st.Listen(uriTopics("a", "b")...).WantHonored("a")
		if took := time.Since(start); took != subscribe.Patience {
			t.Errorf("Watch took %v, want %v", took, subscribe.Patience)
		}
		s.Close()
	})
}

func TestL2M23AnAcknowledgmentNarrows(t *testing.T) {
	withRig(t, options{}, func(t *testing.T, st *rig) {
		st.server.says(omitting("b", "promptsListChanged"))
		st.Listen(uriTopic("c"), uriTopic("b"), listTopic(fanout.PromptsListChanged), uriTopic("a")).WantHonored("c a")
		st.server.tell(uriTopic("b"), "a") // though it had not agreed to
		st.wantTold("dropped: unsubscribed update")
		time.Sleep(time.Hour)
		st.wantRequests(1) // the caller was told: it is not asked for again
	})
}

// Some servers refuse a stream for one resource that they don't like.
func TestL2M23OneRefusedURINarrows(t *testing.T) {
	for _, single := range []bool{false, true} {
		t.Run(fmt.Sprintf("single=%v", single), func(t *testing.T) {
			withRig(t, options{single: single}, func(t *testing.T, st *rig) {
				st.Listen(uriTopic("live")).WantHonored("live")
				st.server.says(refusing(-32602, "3", "7"))
				var want []fanout.Topic
				for i := range 16 {
					want = append(want, uriTopic(fmt.Sprint(i)))
				}
				good := slices.DeleteFunc(slices.Clone(want), func(t fanout.Topic) bool { return t.URI == "3" || t.URI == "7" })
				st.Listen(want...).WantHonored(watchtest.TopicNames(good))
				time.Sleep(time.Minute)
				st.wantCarried("live " + watchtest.TopicNames(good))
				if n := len(st.server.requests()); n > 25 {
					t.Errorf("%d listen requests, want few", n)
				}
			})
		})
	}
	t.Run("all", func(t *testing.T) {
		withRig(t, options{}, func(t *testing.T, st *rig) {
			st.server.says(func(mcp.Filter) scripted { return refusing(-32603, "0")(mcp.Filter{URIs: []string{"0"}}) })
			var want []fanout.Topic
			for i := range 1000 {
				want = append(want, uriTopic(fmt.Sprint(i)))
			}
			st.Listen(want...).WantHonored("")
			if n := len(st.server.requests()); n > maxRefusals+16 { // what was begun is tried to its end
				t.Errorf("%d listen requests, want %d at most", n, maxRefusals+16)
			}
			st.wantEnded()
		})
	})
}

// Who asks for ever new topics does not have the server asked as often.
func TestListensOfOneShareAreBoundedInRate(t *testing.T) {
	withRig(t, options{Options: &upstream.Options{Subscribes: 10}}, func(t *testing.T, st *rig) {
		var acked sync.WaitGroup
		begun := time.Now()
		for i := range 500 {
			c := st.GoListen(uriTopic(fmt.Sprint("u", i)))
			acked.Go(func() { <-c })
			time.Sleep(20 * time.Millisecond)
		}
		acked.Wait()
		// Each may have one merge follow.
		most := 2 * int(100+10*time.Since(begun).Seconds())
		if n := len(st.server.requests()); n > most {
			t.Errorf("%d listen requests within %v, want %d at most", n, time.Since(begun), most)
		}
	})
}

// BenchmarkWatch is a session's subscriptions, beside a thousand others of its
// profile: what the loop does, with a server that answers at once.
func BenchmarkWatch(b *testing.B) {
	const uris = 200
	for _, sessions := range []int{1, 100, 1000} {
		b.Run(fmt.Sprintf("sessions=%d", sessions), func(b *testing.B) {
			sc := &listenScript{}
			b.ReportAllocs()
			for b.Loop() {
				o := &upstream.Options{Name: "scripted", URL: "http://x", Changes: wantsAll{}}
				o.Fill(spec.Modern)
				ws := New(o, sc.listen, func() bool { return false }, false)
				var wg sync.WaitGroup
				for range sessions {
					wg.Go(func() {
						for _, i := range rand.Perm(uris) {
							honored, release, err := ws.Watch(b.Context(), mcp.Profile{Scope: watchScope}, uriTopics(strconv.Itoa(i)))
							if err != nil || len(honored) != 1 {
								b.Errorf("Watch = %v, %v", honored, err)
								return
							}
							defer release()
						}
					})
				}
				wg.Wait()
				b.StopTimer()
				ws.Close()
				b.StartTimer()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*sessions*uris), "ns/sub")
		})
	}
}

// wantsAll is an audience that wants everything, and does nothing with it.
type wantsAll struct{}

func (wantsAll) Publish(fanout.Event)     {}
func (wantsAll) Wanted(fanout.Topic) bool { return true }
func (wantsAll) End(fanout.Topic, error)  {}
