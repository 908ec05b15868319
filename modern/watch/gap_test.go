package watch

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/watchtest"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/subscribe"
)

func TestL2M27AStreamThatEndsIsReopenedAndEveryTopicCuedOnce(t *testing.T) {
	for _, tt := range []struct {
		name  string
		end   error
		least time.Duration // before the server is asked again
	}{
		{"gracefully", ErrEnded, time.Second},
		{"abruptly", errScriptBroken, 100 * time.Millisecond},
	} {
		t.Run(tt.name, func(t *testing.T) {
			withRig(t, options{}, func(t *testing.T, st *rig) {
				st.Listen(uriTopic("a"), uriTopic("b"), listTopic(fanout.ToolsListChanged))
				time.Sleep(time.Minute)
				st.server.requests()
				st.server.end(tt.end)
				time.Sleep(tt.least)
				st.wantRequests(0)
				st.wantTold() // a cue before the stream is back would be one too early
				time.Sleep(2 * time.Second)
				st.wantRequests(1)
				st.wantCarried("a b toolsListChanged")
				st.wantTold("a", "b", "toolsListChanged")
			})
		})
	}
}

func TestL2M27AServerThatEndsEveryStreamIsNotHammered(t *testing.T) {
	for _, end := range []error{ErrEnded, errScriptBroken} {
		t.Run(end.Error(), func(t *testing.T) {
			withRig(t, options{}, func(t *testing.T, st *rig) {
				st.Listen(uriTopic("a"))
				st.server.says(func(mcp.Filter) scripted { return scripted{ends: true} })
				st.server.end(end)
				time.Sleep(time.Minute)
				if n := len(st.server.requests()); n < 4 || n > 15 {
					t.Errorf("%d listen requests within a minute, want some", n)
				}
				st.server.says(nil)
				time.Sleep(20 * time.Second)
				st.wantCarried("a")
			})
		})
	}
}

// Several streams that end together are opened again as one.
func TestL2M27StreamsThatEndTogetherComeBackAsFew(t *testing.T) {
	withRig(t, options{}, func(t *testing.T, st *rig) {
		for i := range 4 {
			st.Listen(uriTopic(fmt.Sprint(i)))
		}
		st.wantCarried("0", "1", "2", "3")
		st.server.end(errScriptBroken)
		time.Sleep(30 * time.Second)
		st.wantCarried("0 1 2 3")
		st.wantTold("0", "1", "2", "3")
	})
}

func TestL2M27WatchersLiveOnWhileTheServerIsAway(t *testing.T) {
	for _, single := range []bool{false, true} {
		t.Run(fmt.Sprintf("single=%v", single), func(t *testing.T) {
			withRig(t, options{single: single}, func(t *testing.T, st *rig) {
				st.Listen(uriTopic("a")).WantHonored("a")
				st.server.says(unreachable)
				st.server.end(errScriptBroken)
				time.Sleep(time.Hour)
				if n := len(st.server.requests()); n < 200 || n > 500 {
					t.Errorf("%d listen requests within an hour, want one in about 10 s", n)
				}
				st.wantTold()
				start := time.Now()
				if s := st.Listen(uriTopic("b")); !errors.Is(s.Err, errScriptBroken) || time.Since(start) != subscribe.Patience {
					t.Errorf("Watch = %v after %v, want why the server is away after %v", s.Err, time.Since(start), subscribe.Patience)
				}
				late := st.GoListen(uriTopic("c"))
				time.Sleep(5 * time.Second)
				st.server.says(nil) // it is up again
				(<-late).WantHonored("c")
				time.Sleep(20 * time.Second)
				st.wantCarried("a c")
				st.wantTold("a")
			})
		})
	}
}

// A server that is back is asked at once, not after the pause that has grown while it was away.
func TestL2M27AServerThatRespondsAgainIsAskedAtOnce(t *testing.T) {
	for _, single := range []bool{false, true} {
		t.Run(fmt.Sprintf("single=%v", single), func(t *testing.T) {
			withRig(t, options{single: single}, func(t *testing.T, st *rig) {
				st.ws.Respond(watchScope) // nobody watches
				st.Listen(uriTopics("a", "b")...)
				st.server.says(unreachable)
				st.server.end(errScriptBroken)
				time.Sleep(time.Minute)
				st.server.requests()
				st.server.says(nil)
				st.wantTold()
				st.ws.Respond(watchScope)
				time.Sleep(gather)
				st.wantRequests(1)
				st.wantCarried("a b")
				time.Sleep(gapsAfter)
				st.wantTold("a", "b")
				st.ws.Respond(watchScope)
				time.Sleep(time.Minute)
				st.wantRequests(0)
			})
		})
	}
}

// Closing while the server is asked and streams are open leaves nothing.
func TestWatchesClose(t *testing.T) {
	withRig(t, options{}, func(t *testing.T, st *rig) {
		st.Listen(uriTopic("a"))
		st.server.says(func(mcp.Filter) scripted { return scripted{takes: time.Hour} })
		waits := st.GoListen(uriTopic("b"))
		time.Sleep(time.Second)
		st.ws.Close()
		if s := <-waits; !errors.Is(s.Err, mcp.ErrShutdown) {
			t.Errorf("Watch under way = %v, want %v", s.Err, mcp.ErrShutdown)
		}
		if s := st.Listen(uriTopic("c")); !errors.Is(s.Err, mcp.ErrShutdown) {
			t.Errorf("Watch after close = %v, want %v", s.Err, mcp.ErrShutdown)
		}
		st.wantEnded()
	})
}

func TestL2M23AnEmptyAcknowledgmentThatEndsAtOnceMeansUnsupported(t *testing.T) {
	for _, single := range []bool{false, true} {
		t.Run(fmt.Sprintf("single=%v", single), func(t *testing.T) {
			withRig(t, options{single: single}, func(t *testing.T, st *rig) {
				st.server.says(func(want mcp.Filter) scripted {
					return scripted{omit: append(want.URIs, "toolsListChanged"), ends: true}
				})
				st.Listen(listTopic(fanout.ToolsListChanged), uriTopic("a")).WantHonored("")
				time.Sleep(time.Hour)
				st.wantRequests(1)
				st.wantEnded()
			})
		})
	}
}

func TestL2M23ATopicThatANewAcknowledgmentOmitsIsCuedWarnedOfAndTriedAgain(t *testing.T) {
	for _, single := range []bool{false, true} {
		t.Run(fmt.Sprintf("single=%v", single), func(t *testing.T) {
			withRig(t, options{single: single}, func(t *testing.T, st *rig) {
				st.Listen(uriTopics("a", "b")...)
				st.server.says(omitting("b"))
				st.server.end(errScriptBroken)
				time.Sleep(time.Hour)
				carries := "a"
				st.wantCarried(carries)
				cues := slices.DeleteFunc(st.told(), func(line string) bool { return line != "b" })
				if len(cues) != 1 {
					t.Errorf("%d cues of what was left out, want its last one", len(cues))
				}
				if n := strings.Count(st.log.String(), "level=WARN"); n != 1 || !strings.Contains(st.log.String(), "left out topics") {
					t.Errorf("%d warnings, want one:\n%s", n, st.log)
				}
				if n := len(st.server.requests()); n < 10 || n > 40 {
					t.Errorf("%d listen requests within an hour, want few", n)
				}
				if s := st.Listen(uriTopic("b")); s.Err != nil || len(s.Honored) != 0 {
					t.Errorf("Watch of what is left out = %v, %v, want it not honored", s.Honored, s.Err)
				}
				time.Sleep(10 * time.Second)
				st.told()
				st.server.says(nil)
				time.Sleep(10 * time.Minute)
				if told := st.told(); !slices.Contains(told, "b") {
					t.Errorf("told %q, want a cue of what is back", told)
				}
				st.wantCarried("a b")
			})
		})
	}
}

// A list that another replica leaves out may be reported later; what a server leaves out is refused.
func TestListsLeftOutByAPeerArePutOff(t *testing.T) {
	for _, peer := range []bool{false, true} {
		withRig(t, options{peer: peer}, func(t *testing.T, st *rig) {
			st.server.says(omitting("toolsListChanged", "a"))
			st.Listen(uriTopic("a")).WantHonored("")
			if tools := st.Listen(listTopic(fanout.ToolsListChanged)); peer {
				tools.WantNotNow()
			} else {
				tools.WantHonored("")
			}
		})
	}
}

func TestL2M22OneListenAtATime(t *testing.T) {
	withRig(t, options{single: true}, func(t *testing.T, st *rig) {
		st.server.says(func(mcp.Filter) scripted { return scripted{takes: 200 * time.Millisecond} })
		st.Listen(uriTopics("a", "b")...).WantHonored("a b")
		one := st.GoListen(uriTopic("c"))
		time.Sleep(100 * time.Millisecond) // while the server is asked anew
		st.wantCarried()
		two, three := st.GoListen(uriTopic("d")), st.GoListen(uriTopics("e", "a")...)
		(<-one).WantHonored("c")
		(<-two).WantHonored("d")
		(<-three).WantHonored("e a")
		st.wantCarried("a b c d e")
		if got := st.server.requests(); len(got) != 3 || st.server.peak() != 1 {
			t.Errorf("requests %q, %d streams at a time, want 3, one at a time", got, st.server.peak())
		}
		st.wantTold()
		time.Sleep(gapsAfter)
		st.wantTold("a", "b", "c") // d and e were not live before
		time.Sleep(time.Hour)
		st.wantTold()
		st.wantRequests(0)
	})
}

func TestL2M22CuesArePutOff10sAtMost(t *testing.T) {
	withRig(t, options{single: true}, func(t *testing.T, st *rig) {
		st.Listen(uriTopic("a"))
		for i := range 18 {
			st.Listen(uriTopic(fmt.Sprint(i)))
			time.Sleep(500 * time.Millisecond)
			st.wantTold()
		}
		time.Sleep(gapsWithin)
		cues := 0
		for _, line := range st.told() {
			if line == "a" {
				cues++
			}
		}
		if cues != 1 {
			t.Errorf("%d cues after many listens, want one for all", cues)
		}
		for i := range 40 { // for longer than a cue may wait
			st.Listen(uriTopic(fmt.Sprint("more", i)))
			time.Sleep(500 * time.Millisecond)
		}
		if !slices.Contains(st.told(), "a") {
			t.Error("no cue after 20 s of listens, want one 10 s late at most")
		}
	})
}

// Leaving a topic out costs all others a gap: it is done when half are not wanted.
func TestL2M22TopicsLeaveWhenItIsWorthAGap(t *testing.T) {
	withRig(t, options{single: true}, func(t *testing.T, st *rig) {
		stay := st.Listen(uriTopic("a"))
		two, three := st.Listen(uriTopic("b")), st.Listen(uriTopic("c"))
		time.Sleep(time.Minute)
		two.Close()
		time.Sleep(time.Hour)
		st.wantCarried("a b c")
		three.Close()
		time.Sleep(time.Minute)
		st.wantCarried("a")
		stay.Close()
		time.Sleep(time.Minute)
		st.wantEnded()
	})
}

// What the server refuses may be what another profile has followed: what the one that asks wants is asked
// for alone then, and the other asks for what it follows still.
func TestL2M22AnothersResourceIsNoRefusal(t *testing.T) {
	withRig(t, options{single: true}, func(t *testing.T, st *rig) {
		const other = "scripted/2"
		follow := func(uris ...string) (leave func()) {
			topics := watchtest.URITopics(other, uris...)
			st.Want(1, topics...)
			honored, release, err := st.ws.Watch(t.Context(), mcp.Profile{Scope: other}, topics)
			if err != nil || len(honored) != len(topics) {
				t.Fatalf("Watch(%q) = %v, %v", uris, honored, err)
			}
			return func() { st.Want(-1, topics...); release() }
		}
		leave := follow("gone")
		defer follow("b", "c")()
		leave()
		time.Sleep(time.Minute)
		st.wantCarried("gone b c") // still: to leave it out is not worth a gap
		st.server.says(refusing(spec.CodeInvalidParams, "gone"))
		st.Listen(uriTopic("a")).WantHonored("a")
		time.Sleep(time.Minute)
		st.wantCarried("a b c")
		st.told()
		st.server.tell(uriTopic("a"), "")
		st.server.tell(uriTopic("b"), "")
		st.wantTold(`a{"v":1}`, `b{"v":1}`)
	})
}

// Where the exact URI and an ancestor are on two streams the change comes on both.
func TestM2L33UpdatesBelowASubscribedURI(t *testing.T) {
	withRig(t, options{}, func(t *testing.T, st *rig) {
		st.Listen(uriTopic("a"))
		st.server.tell(uriTopic("a/x"), "a")
		st.wantTold(`a{"v":1}`)
		st.Listen(uriTopic("a/x"))
		time.Sleep(time.Millisecond)
		st.server.tell(uriTopic("a/x"), "a")
		st.wantTold(`a/x{"v":1}`) // the exact one alone hears
		st.server.tell(uriTopic("b"), "a")
		st.wantTold("dropped: unsubscribed update")
	})
}
