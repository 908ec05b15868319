package watch

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/backoff"
	"github.com/mcpbridge/mcpbridge/internal/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/subscribe"
)

var errAway = errors.New("connection refused")

func TestM2L37RebuiltSessionSubscribesThenTells(t *testing.T) {
	onStage(t, Options{}, func(t *testing.T, st *stage) {
		tools := listTopic(fanout.ToolsListChanged)
		st.listen(tools, uriTopic("a"), uriTopic("b")).wantHonored("toolsListChanged a b")
		st.listen(uriTopic("b")).wantHonored("b")
		st.log.Take()

		st.server.answer = delay("b", 3*time.Second)
		st.server.lose(errAway)
		time.Sleep(30 * time.Second)
		st.wantLog()
		st.server.set(func(s *script) { s.away = nil })
		time.Sleep(time.Minute)
		st.wantLog("subscribe a", "subscribe b", "event toolsListChanged", "event a", "event b")
		st.wantSubscribed("a", "b")
		if n := st.server.count(func(s *script) int { return s.opened }); n != 2 {
			t.Errorf("%d sessions opened, want 2", n)
		}
		if n, _ := st.aud.Ended(fanout.Topic{}); n > 0 {
			t.Errorf("%d topics ended over a restart, want none", n)
		}
	})
}

// A URI for which there is no answer must not keep the rest from being told.
func TestM2L37SilentURIDoesNotHoldUpOthers(t *testing.T) {
	onStage(t, Options{}, func(t *testing.T, st *stage) {
		st.listen(uriTopics("a", "slow")...).wantHonored("a slow")
		st.log.Take()
		st.server.answer = delay("slow", 30*time.Second)
		st.server.lose(nil)
		time.Sleep(11 * time.Second)
		st.wantLog("subscribe a", "event a")
		time.Sleep(time.Minute)
		st.wantLog("subscribe slow", "event slow")
	})
}

func TestM2L37SessionLostWhileBeingRestored(t *testing.T) {
	onStage(t, Options{}, func(t *testing.T, st *stage) {
		st.listen(uriTopics("a", "b")...).wantHonored("a b")
		st.log.Take()
		st.server.answer = delay("b", 2*time.Second)
		st.server.lose(nil)
		time.Sleep(time.Second) // a is subscribed, b is being
		st.server.lose(nil)
		time.Sleep(time.Minute)
		st.wantLog("subscribe a", "subscribe a", "subscribe b", "event a", "event b")
		st.wantSubscribed("a", "b")
	})
}

// The report of a call on a lost session must not touch what a later session
// knows of the same URI.
func TestM2L37LateReportOfALostSession(t *testing.T) {
	onStage(t, Options{}, func(t *testing.T, st *stage) {
		first := st.listen(uriTopic("a"))
		st.server.stuck = true
		st.server.answer = delay("a", 50*time.Second)
		st.server.lose(nil)
		time.Sleep(5 * time.Second) // the call that will be late is on its way
		st.server.set(func(s *script) { s.offers.Subscribe = false })
		st.server.lose(nil)
		time.Sleep(5 * time.Second)
		st.wantLog("subscribe a", "end a")
		first.close()
		time.Sleep(5 * time.Second)

		st.server.set(func(s *script) { s.offers.Subscribe, s.answer = true, nil })
		st.server.lose(nil)
		st.listen(uriTopic("a")).wantHonored("a")
		time.Sleep(time.Minute)
		st.log.Take()
		st.watch().Changed(fanout.ResourceUpdated, "a", nil)
		st.wantLog("event a")
		st.wantSubscribed("a")
	})
}

// What a failing session has put off is tried at once on the next.
func TestM2L37NewSessionForgetsFailures(t *testing.T) {
	onStage(t, Options{Options: subscribe.Options{Retry: backoff.Backoff{Min: time.Second, Max: 16 * time.Second}}}, func(t *testing.T, st *stage) {
		st.listen(uriTopic("a")).wantHonored("a")
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
	onStage(t, Options{}, func(t *testing.T, st *stage) {
		st.server.answer = delay("slow", 8*time.Second)
		some := st.goListen(uriTopics("a", "slow")...)
		time.Sleep(5 * time.Second)
		st.server.lose(errAway)
		partly := <-some
		partly.wantHonored("a")
		var tracked []fanout.Topic
		st.watch().book.Do(t.Context(), func() {
			for topic := range st.watch().book.All() {
				tracked = append(tracked, topic.Topic)
			}
		})
		synctest.Wait()
		if bridgetest.TopicNames(tracked) != "a" {
			t.Errorf("tracked: %v, want a alone", tracked)
		}
		partly.close()
		time.Sleep(time.Second)
		if s := st.listen(uriTopic("a")); s.err == nil {
			t.Error("Watch without a server = nil, want an error")
		}
		time.Sleep(subscribe.DefaultLinger)
		st.wantEnded()
	})
}

// A stream that waits for its acknowledgment goes before those that are being
// restored.
func TestM2L37NewStreamsGoFirst(t *testing.T) {
	onStage(t, Options{Parallel: 1}, func(t *testing.T, st *stage) {
		var many []fanout.Topic
		for i := range 20 {
			many = append(many, uriTopic(fmt.Sprintf("u%02d", i)))
		}
		st.listen(many...).wantHonored(bridgetest.TopicNames(many))
		st.server.answer = func(string, string) (time.Duration, error) { return 900 * time.Millisecond, nil }
		st.server.lose(nil)
		time.Sleep(time.Second)
		begun := time.Now()
		st.listen(uriTopic("new"), many[19]).wantHonored("new u19")
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
	onStage(t, Options{Options: subscribe.Options{Linger: time.Hour}}, func(t *testing.T, st *stage) {
		st.listen(uriTopic("a"))
		st.listen(uriTopics("a", "b")...).close()
		synctest.Wait()
		st.server.lose(nil)
		time.Sleep(time.Second)
		st.wantSubscribed("a")
		st.wantLog("subscribe a", "subscribe b", "subscribe a", "event a")
		time.Sleep(2 * time.Hour)
		st.wantSubscribed("a")
	})
}

func TestM2L37RestartedServerRefuses(t *testing.T) {
	onStage(t, Options{}, func(t *testing.T, st *stage) {
		tools := listTopic(fanout.ToolsListChanged)
		s := st.listen(tools, listTopic(fanout.PromptsListChanged), uriTopic("a"), uriTopic("b"))
		s.wantHonored("toolsListChanged promptsListChanged a b")
		st.log.Take()

		st.server.answer = func(method, uri string) (time.Duration, error) {
			if uri == "b" {
				return time.Second, nil
			}
			return refuse("a")(method, uri)
		}
		st.server.set(func(s *script) { s.offers.Tools = false })
		st.server.lose(nil)
		time.Sleep(time.Minute)
		st.wantLog("end toolsListChanged", "end a", "subscribe b", "event promptsListChanged", "event b")
		if _, err := st.aud.Ended(uriTopic("a")); err == nil || !strings.Contains(err.Error(), "files") ||
			!strings.Contains(err.Error(), "no such resource") {
			t.Errorf("reason for the end = %v, want the server's name and its words", err)
		}
		s.close()
		time.Sleep(time.Minute)
		st.wantSubscribed()
		st.wantEnded()
	})
}

func TestM2L37RestartedServerHasNoSubscriptions(t *testing.T) {
	onStage(t, Options{}, func(t *testing.T, st *stage) {
		st.listen(uriTopic("a")).wantHonored("a")
		st.log.Take()
		st.server.set(func(s *script) { s.offers.Subscribe = false })
		st.server.lose(nil)
		time.Sleep(time.Minute)
		st.wantLog("end a")
	})
}

func TestM2L37GapOfTheChannel(t *testing.T) {
	onStage(t, Options{}, func(t *testing.T, st *stage) {
		st.listen(listTopic(fanout.PromptsListChanged), uriTopic("a")).wantHonored("promptsListChanged a")
		st.listen(uriTopic("a")).wantHonored("a")
		st.server.answer = delay("b", 2*time.Second)
		asking := st.goListen(uriTopic("b"))
		synctest.Wait()
		st.log.Take()
		st.watch().ListenChanged(false)
		st.watch().ListenChanged(false)
		st.wantLog() // what was replayed in full leaves no gap
		st.watch().ListenChanged(true)
		st.wantLog("event promptsListChanged", "event a")
		(<-asking).wantHonored("b")
		st.wantLog("subscribe b", "event b")
	})
}

// An update may overtake the answer to the subscribe that it is due to.
func TestM2L37UpdateBeforeTheAnswer(t *testing.T) {
	onStage(t, Options{}, func(t *testing.T, st *stage) {
		st.server.answer = delay("a", 2*time.Second)
		asking := st.goListen(uriTopic("a"))
		time.Sleep(time.Second)
		st.watch().Changed(fanout.ResourceUpdated, "a", []byte(`{"x":1}`))
		st.watch().Changed(fanout.ResourceUpdated, "a", []byte(`{"x":2}`))
		synctest.Wait()
		if events := st.aud.Events(); len(events) > 0 {
			t.Errorf("published before the answer: %v", events)
		}
		st.log.Take() // the gateway counts what it can't tell yet
		(<-asking).wantHonored("a")
		st.wantLog("subscribe a", `event a{"x":2}`)
	})
}

func TestM2L37KindReofferedIsPromisedAgain(t *testing.T) {
	onStage(t, Options{}, func(t *testing.T, st *stage) {
		tools := listTopic(fanout.ToolsListChanged)
		st.listen(tools).wantHonored("toolsListChanged")
		st.server.lose(errAway)
		time.Sleep(time.Second)
		waiting := st.goListen(tools)
		time.Sleep(time.Second)
		st.server.set(func(s *script) { s.away = nil })
		(<-waiting).wantHonored("toolsListChanged")
		st.wantLog("event toolsListChanged")
	})
}

func TestM2L38UnreachableServerEndsStreams(t *testing.T) {
	onStage(t, Options{}, func(t *testing.T, st *stage) {
		s := st.listen(listTopic(fanout.ToolsListChanged), uriTopic("a"))
		st.log.Take()
		st.server.lose(errAway)
		time.Sleep(DefaultUnreachable - time.Second)
		waiting := st.goListen(uriTopic("a"))
		st.wantLog()
		time.Sleep(time.Second)
		st.wantLog("end toolsListChanged", "end a")
		if _, err := st.aud.Ended(uriTopic("a")); err == nil || !strings.Contains(err.Error(), "unreachable for 2m0s: connection refused") {
			t.Errorf("reason for the end = %v, want how long and why", err)
		}
		if w := <-waiting; !errors.Is(w.err, errAway) {
			t.Errorf("Watch that waited = %q, %v, want %v", bridgetest.TopicNames(w.honored), w.err, errAway)
		}
		s.close()
		st.wantEnded()
	})
}
