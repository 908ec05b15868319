package watch

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/watchtest"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/settings"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wake"
)

var errAway = errors.New("connection refused")

func TestM2L37RebuiltSessionSubscribesThenTells(t *testing.T) {
	withRig(t, options{}, func(t *testing.T, st *rig) {
		tools := listTopic(fanout.ToolsListChanged)
		st.Listen(tools, uriTopic("a"), uriTopic("b")).WantHonored("toolsListChanged a b")
		st.Listen(uriTopic("b")).WantHonored("b")
		st.Log.Take()

		st.server.answer = delay("b", 3*time.Second)
		st.server.lose(errAway)
		time.Sleep(30 * time.Second)
		st.WantLog()
		st.server.set(func(s *script) { s.away = nil })
		time.Sleep(time.Minute)
		st.WantLog("subscribe a", "subscribe b", "event toolsListChanged", "event a", "event b")
		st.wantSubscribed("a", "b")
		if n := st.server.count(func(s *script) int { return s.opened }); n != 2 {
			t.Errorf("%d sessions opened, want 2", n)
		}
		if n, _ := st.Ended(fanout.Topic{}); n > 0 {
			t.Errorf("%d topics ended over a restart, want none", n)
		}
	})
}

// That the session was lost is told after all that may have changed with it, for as many servers
// as there are; not that its stream had a gap.
func TestG14LostSessionIsTold(t *testing.T) {
	withRig(t, options{}, func(t *testing.T, st *rig) {
		loss := listTopic(fanout.StateLost)
		s := st.Listen(listTopic(fanout.ToolsListChanged), uriTopic("a"), loss).WantHonored("toolsListChanged a stateLost")
		st.Log.Take()
		st.server.answer = delay("a", 3*time.Second)
		for range 3 {
			st.server.lose(nil)
			time.Sleep(time.Minute)
			st.WantLog("subscribe a", "event toolsListChanged", "event a", "event stateLost")
		}
		if lines := st.Events(); lines[len(lines)-1].Topic != loss {
			t.Errorf("the last event is %v, want the loss", lines[len(lines)-1])
		}
		st.current().ListenChanged(true)
		st.WantLog("event toolsListChanged", "event a")
		s.Close()
		time.Sleep(time.Minute)
		st.wantEnded()
	})
}

// The loss of a session needs nothing of the server, and keeps the session.
func TestG14LossOfAServerWithoutNotices(t *testing.T) {
	withRig(t, options{}, func(t *testing.T, st *rig) {
		st.server.offers = Offers{}
		s := st.Listen(listTopic(fanout.ToolsListChanged), listTopic(fanout.StateLost)).WantHonored("stateLost")
		time.Sleep(time.Hour)
		st.WantLog()
		st.server.lose(nil)
		time.Sleep(time.Minute)
		st.WantLog("event stateLost")
		s.Close()
		time.Sleep(time.Minute)
		st.wantEnded()
	})
}

// A URI for which there is no answer must not keep the rest from being told.
func TestM2L37SilentURIDoesNotHoldUpOthers(t *testing.T) {
	withRig(t, options{}, func(t *testing.T, st *rig) {
		st.Listen(uriTopics("a", "slow")...).WantHonored("a slow")
		st.Log.Take()
		st.server.answer = delay("slow", 30*time.Second)
		st.server.lose(nil)
		time.Sleep(11 * time.Second)
		st.WantLog("subscribe a", "event a")
		time.Sleep(time.Minute)
		st.WantLog("subscribe slow", "event slow")
	})
}

func TestM2L37SessionLostWhileBeingRestored(t *testing.T) {
	withRig(t, options{}, func(t *testing.T, st *rig) {
		st.Listen(uriTopics("a", "b")...).WantHonored("a b")
		st.Log.Take()
		st.server.answer = delay("b", 2*time.Second)
		st.server.lose(nil)
		time.Sleep(time.Second) // a is subscribed, b is being
		st.server.lose(nil)
		time.Sleep(time.Minute)
		st.WantLog("subscribe a", "subscribe a", "subscribe b", "event a", "event b")
		st.wantSubscribed("a", "b")
	})
}

// The report of a call on a lost session must not touch what a later session
// knows of the same URI.
func TestM2L37LateReportOfALostSession(t *testing.T) {
	withRig(t, options{}, func(t *testing.T, st *rig) {
		first := st.Listen(uriTopic("a"))
		st.server.stuck = true
		st.server.answer = delay("a", 50*time.Second)
		st.server.lose(nil)
		time.Sleep(5 * time.Second) // the call that will be late is on its way
		st.server.set(func(s *script) { s.offers.Subscribe = false })
		st.server.lose(nil)
		time.Sleep(5 * time.Second)
		st.WantLog("subscribe a", "end a")
		first.Close()
		time.Sleep(5 * time.Second)

		st.server.set(func(s *script) { s.offers.Subscribe, s.answer = true, nil })
		st.server.lose(nil)
		st.Listen(uriTopic("a")).WantHonored("a")
		time.Sleep(time.Minute)
		st.Log.Take()
		st.current().Changed(fanout.ResourceUpdated, "a", nil)
		st.WantLog("event a")
		st.wantSubscribed("a")
	})
}

// What a failing session has put off is tried at once on the next.
func TestM2L37NewSessionForgetsFailures(t *testing.T) {
	seldom := wake.Backoff{Min: time.Second, Max: 16 * time.Second}
	withRig(t, options{pace: pace{seldom, Unreachable, usual.parallel}}, func(t *testing.T, st *rig) {
		st.Listen(uriTopic("a")).WantHonored("a")
		time.Sleep(20 * time.Second)
		st.server.set(func(s *script) {
			s.answer = func(string, string) (time.Duration, error) { return 0, errors.New("status 502") }
		})
		st.server.lose(nil)
		for len(st.server.callsOf("subscribe")) < 5 { // the next try is in 8s at least
			time.Sleep(100 * time.Millisecond)
			synctest.Wait()
		}
		st.server.set(func(s *script) { s.answer = nil })
		st.server.lose(nil)
		time.Sleep(3 * time.Second) // the dial's pause
		st.wantSubscribed("a")
	})
}

// A stream that lost its server while it waited leaves nothing behind, neither
// of what it waited for nor of what it kept from lingering out.
func TestM2L37WaitingInVainLeavesNothing(t *testing.T) {
	withRig(t, options{}, func(t *testing.T, st *rig) {
		st.server.answer = delay("slow", 8*time.Second)
		some := st.GoListen(uriTopics("a", "slow")...)
		time.Sleep(5 * time.Second)
		st.server.lose(errAway)
		partly := <-some
		partly.WantHonored("a")
		var tracked []fanout.Topic
		st.current().book.Do(t.Context(), func() {
			for topic := range st.current().book.All() {
				tracked = append(tracked, topic.Topic)
			}
		})
		synctest.Wait()
		if watchtest.TopicNames(tracked) != "a" {
			t.Errorf("tracked: %v, want a alone", tracked)
		}
		partly.Close()
		time.Sleep(time.Second)
		if s := st.Listen(uriTopic("a")); s.Err == nil {
			t.Error("Watch without a server = nil, want an error")
		}
		time.Sleep(upstream.DefaultLinger)
		st.wantEnded()
	})
}

// A stream that waits for its acknowledgment goes before those that are being
// restored.
func TestM2L37NewStreamsGoFirst(t *testing.T) {
	withRig(t, options{pace: pace{usual.retry, Unreachable, 1}}, func(t *testing.T, st *rig) {
		var many []fanout.Topic
		for i := range 20 {
			many = append(many, uriTopic(fmt.Sprintf("u%02d", i)))
		}
		st.Listen(many...).WantHonored(watchtest.TopicNames(many))
		st.server.answer = func(string, string) (time.Duration, error) { return 900 * time.Millisecond, nil }
		st.server.lose(nil)
		time.Sleep(time.Second)
		begun := time.Now()
		st.Listen(uriTopic("new"), many[19]).WantHonored("new u19")
		if took := time.Since(begun); took > 3*time.Second {
			t.Errorf("Watch took %v, want at most 3s", took)
		}
		time.Sleep(time.Minute)
		if n := len(st.server.callsOf("subscribe u")); n != 40 {
			t.Errorf("%d subscribes, want each URI twice", n)
		}
	})
}

// Among streams that come and go while the session is away, what is still
// wanted is subscribed at once, and what is not, never.
func TestM2L37LingeringTopicsAreRestoredIfWanted(t *testing.T) {
	withRig(t, options{Options: &upstream.Options{Settings: settings.Server{Linger: time.Hour}}}, func(t *testing.T, st *rig) {
		st.Listen(uriTopic("a"))
		st.Listen(uriTopics("a", "b")...).Close()
		synctest.Wait()
		st.server.lose(nil)
		time.Sleep(time.Second)
		st.wantSubscribed("a")
		st.WantLog("subscribe a", "subscribe b", "subscribe a", "event a")
		time.Sleep(2 * time.Hour)
		st.wantSubscribed("a")
	})
}

func TestM2L37RestartedServerRefuses(t *testing.T) {
	withRig(t, options{}, func(t *testing.T, st *rig) {
		tools := listTopic(fanout.ToolsListChanged)
		s := st.Listen(tools, listTopic(fanout.PromptsListChanged), uriTopic("a"), uriTopic("b"))
		s.WantHonored("toolsListChanged promptsListChanged a b")
		st.Log.Take()

		st.server.answer = func(method, uri string) (time.Duration, error) {
			if uri == "b" {
				return time.Second, nil
			}
			return refuse("a")(method, uri)
		}
		st.server.set(func(s *script) { s.offers.Lists.Tools = false })
		st.server.lose(nil)
		time.Sleep(time.Minute)
		st.WantLog("end toolsListChanged", "end a", "subscribe b", "event promptsListChanged", "event b")
		if _, err := st.Ended(uriTopic("a")); err == nil || !strings.Contains(err.Error(), "files") ||
			!strings.Contains(err.Error(), "no such resource") {
			t.Errorf("reason for the end = %v, want the server's name and its words", err)
		}
		s.Close()
		time.Sleep(time.Minute)
		st.wantSubscribed()
		st.wantEnded()
	})
}

func TestM2L37RestartedServerHasNoSubscriptions(t *testing.T) {
	withRig(t, options{}, func(t *testing.T, st *rig) {
		st.Listen(uriTopic("a")).WantHonored("a")
		st.Log.Take()
		st.server.set(func(s *script) { s.offers.Subscribe = false })
		st.server.lose(nil)
		time.Sleep(time.Minute)
		st.WantLog("end a")
	})
}

func TestM2L37GapOfTheChannel(t *testing.T) {
	withRig(t, options{}, func(t *testing.T, st *rig) {
		st.Listen(listTopic(fanout.PromptsListChanged), uriTopic("a")).WantHonored("promptsListChanged a")
		st.Listen(uriTopic("a")).WantHonored("a")
		st.server.answer = delay("b", 2*time.Second)
		asking := st.GoListen(uriTopic("b"))
		synctest.Wait()
		st.Log.Take()
		st.current().ListenChanged(false)
		st.current().ListenChanged(false)
		st.WantLog() // what was replayed in full leaves no gap
		st.current().ListenChanged(true)
		st.WantLog("event promptsListChanged", "event a")
		(<-asking).WantHonored("b")
		st.WantLog("subscribe b", "event b")
	})
}

func TestM2L37KindReofferedIsPromisedAgain(t *testing.T) {
	withRig(t, options{}, func(t *testing.T, st *rig) {
		tools := listTopic(fanout.ToolsListChanged)
		st.Listen(tools).WantHonored("toolsListChanged")
		st.server.lose(errAway)
		time.Sleep(time.Second)
		waiting := st.GoListen(tools)
		time.Sleep(time.Second)
		st.server.set(func(s *script) { s.away = nil })
		(<-waiting).WantHonored("toolsListChanged")
		st.WantLog("event toolsListChanged")
	})
}

func TestM2L38UnreachableServerEndsStreams(t *testing.T) {
	withRig(t, options{}, func(t *testing.T, st *rig) {
		s := st.Listen(listTopic(fanout.ToolsListChanged), uriTopic("a"))
		st.Log.Take()
		st.server.lose(errAway)
		time.Sleep(Unreachable - time.Second)
		waiting := st.GoListen(uriTopic("a"))
		st.WantLog()
		time.Sleep(time.Second)
		st.WantLog("end toolsListChanged", "end a")
		if _, err := st.Ended(uriTopic("a")); err == nil || !strings.Contains(err.Error(), "unreachable for 2m0s: connection refused") {
			t.Errorf("reason for the end = %v, want how long and why", err)
		}
		if w := <-waiting; !errors.Is(w.Err, errAway) {
			t.Errorf("Watch that waited = %q, %v, want %v", watchtest.TopicNames(w.Honored), w.Err, errAway)
		}
		s.Close()
		st.wantEnded()
	})
}
