package watch

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
)

// overlapping makes two streams and waits for the merge of both: all three are open.
func overlapping(st *rig) (former *scriptedListen) {
	st.t.Helper()
	st.merging(uriTopics("a", "c"), uriTopics("b"))
	return st.server.open[0]
}

// merging makes a stream for each of some topics, and waits for the merge of all: it is the last
// that is open.
func (st *rig) merging(streams ...[]fanout.Topic) {
	st.t.Helper()
	for _, topics := range streams {
		st.Listen(topics...)
	}
	before := len(st.server.carried())
	for begin := time.Now(); len(st.server.carried()) == before; time.Sleep(time.Millisecond) {
		if time.Since(begin) > 10*time.Second {
			st.t.Fatal("no merge within 10 s")
		}
		synctest.Wait()
	}
}

// send puts n changes of a on a stream, numbered.
func (s *scriptedListen) send(n int) {
	for i := range n {
		s.events <- fanout.Event{Topic: uriTopic("a"), Meta: fmt.Appendf(nil, "%d", i)}
	}
}

// What had arrived on a replaced stream is told, however long that takes its reader.
func TestL2M21WhatHasArrivedIsToldBeforeAStreamIsClosed(t *testing.T) {
	for _, n := range []int{1, 100, 400} { // 10 ms each
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			withRig(t, options{}, func(t *testing.T, st *rig) {
				former := overlapping(st)
				st.takes.Store(int64(10 * time.Millisecond))
				former.send(n)
				time.Sleep(time.Duration(n)*10*time.Millisecond + time.Second)
				st.wantCarried("a b c")
				var want []string
				for i := range n {
					want = append(want, fmt.Sprint("a", i))
				}
				st.wantTold(want...)
			})
		})
	}
}

// The pace of earlier messages says nothing about a reader that is held up now.
func TestL2M21AHeldUpReaderHasNotCaughtUp(t *testing.T) {
	withRig(t, options{}, func(t *testing.T, st *rig) {
		st.server.says(func(want mcp.Filter) scripted {
			if len(want.URIs) == 3 {
				return scripted{takes: time.Second} // the merge
			}
			return scripted{}
		})
		st.Listen(uriTopic("a"), uriTopic("c"))
		st.Listen(uriTopic("b"))
		for len(st.server.carried()) < 3 {
			st.server.tell(uriTopic("a"), "")
			time.Sleep(20 * time.Millisecond)
			synctest.Wait()
		}
		st.told()
		st.takes.Store(int64(time.Second))
		st.server.open[0].send(3)
		time.Sleep(5 * time.Second)
		st.wantTold("a0", "a1", "a2")
		st.wantCarried("a b c")
	})
}

// The stream that replaces others ends before they are closed: they go on.
func TestL2M21AMergeThatEndsSoon(t *testing.T) {
	withRig(t, options{}, func(t *testing.T, st *rig) {
		former := overlapping(st)
		st.takes.Store(int64(10 * time.Millisecond))
		former.send(400)
		st.server.mu.Lock()
		st.server.endLocked(st.server.open[2], ErrEnded)
		st.server.mu.Unlock()
		time.Sleep(4500 * time.Millisecond)
		if n := len(st.told()); n != 400 {
			t.Errorf("%d changes told, want 400", n)
		}
		time.Sleep(20 * time.Second)
		st.wantCarried("a b c")
		st.takes.Store(0)
		st.server.tell(uriTopic("a"), "")
		st.wantTold(`a{"v":1}`)
	})
}

// A reader that never catches up does not keep a replaced stream open for ever: what is
// unread is lost, and said.
func TestL2M21AStreamThatIsNeverReadToItsEndIsCutOff(t *testing.T) {
	withRig(t, options{}, func(t *testing.T, st *rig) {
		former := overlapping(st)
		st.takes.Store(int64(10 * time.Millisecond))
		former.send(1000)
		time.Sleep(maxOverlap - 100*time.Millisecond)
		st.wantCarried("a c", "a b c") // b's was quiet
		time.Sleep(200 * time.Millisecond)
		st.wantCarried("a b c")
		time.Sleep(time.Second)
		told := st.told()
		if n := len(told); n < 400 || n > 600 {
			t.Errorf("%d changes told in 5 s of 10 ms each, want 400 to 600", n)
		}
		// Without a number, so after those that were read.
		if tail := told[len(told)-4:]; !slices.Contains(tail, "a") || !slices.Contains(tail, "c") || slices.Contains(told, "b") {
			t.Errorf("told %q at last, want a and c, which may have changed, and not b", tail)
		}
		if !strings.Contains(st.log.String(), "closed before all of its changes were read") {
			t.Errorf("log %q, want a word about the stream", st.log)
		}
	})
}

// While a replaced stream is open, what replaced it is not merged: no topic is on three.
func TestL2M21NoTopicIsOnThreeStreams(t *testing.T) {
	withRig(t, options{}, func(t *testing.T, st *rig) {
		former := overlapping(st)
		st.takes.Store(int64(10 * time.Millisecond))
		former.send(1000)
		for i := range 40 { // too many for small streams
			st.Listen(uriTopic(fmt.Sprint(i)))
			time.Sleep(100 * time.Millisecond)
			on := 0
			for _, names := range st.server.carried() {
				if slices.Contains(strings.Fields(names), "a") {
					on++
				}
			}
			if on > 2 {
				t.Fatalf("a is on %d streams, want 2 at most", on)
			}
		}
	})
}

// A stream on which changes arrive all the time is never quiet, and closed when its reader
// keeps pace.
func TestL2M21AReaderThatKeepsPaceHasCaughtUp(t *testing.T) {
	for _, pause := range []time.Duration{2 * time.Millisecond, 20 * time.Millisecond, 150 * time.Millisecond} {
		t.Run(pause.String(), func(t *testing.T) {
			withRig(t, options{}, func(t *testing.T, st *rig) {
				overlapping(st)
				begun := time.Now()
				for len(st.server.carried()) > 1 && time.Since(begun) < time.Minute {
					st.server.tell(uriTopic("a"), "")
					time.Sleep(pause)
				}
				if took, most := time.Since(begun), max(time.Second, 20*pause); took > most || took < overlap {
					t.Errorf("the overlap took %v, want %v to %v", took, overlap, most)
				}
				if told := st.told(); slices.Contains(told, "a") || slices.Contains(told, "c") {
					t.Errorf("a change without a number was told, want none: nothing was lost")
				}
			})
		})
	}
}
