package watch

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
)

// streams returns the first of the streams that are merged, and their heir.
func (st *rig) streams() (former, heir *scriptedListen) {
	st.merging(uriTopics("a", "c"), uriTopics("b"))
	return st.server.open[0], st.server.open[2]
}

// asSent are options by which subscribers are told of each sub-resource.
func asSent() options {
	o := new(upstream.Options)
	o.Settings.Subresources = fanout.SubresourcesAsSent
	return options{Options: o}
}

// is sends the change of a URI with a number.
func (s *scriptedListen) is(uri string, number uint64) {
	s.events <- fanout.Event{Topic: uriTopic(uri), Number: number, Meta: fmt.Append(nil, number)}
}

// Changes that another replica has numbered are told once, whichever of two streams they come on
// first, and how many of them have become one there.
func TestL2M21NumberedChangesAreToldOnce(t *testing.T) {
	withRig(t, options{}, func(t *testing.T, st *rig) {
		former, heir := st.streams()
		former.is("a", 5)
		st.wantTold("a5")
		heir.is("a", 5)
		st.wantTold()
		heir.is("a", 6)
		heir.is("a", 8) // and 7
		st.wantTold("a6", "a8")
		for n := range uint64(8) {
			former.is("a", n+1)
		}
		st.wantTold()
		former.is("a", 9)
		heir.is("c", 3) // another topic
		st.wantTold("a9", "c3")
		heir.is("a", 9)
		former.is("c", 3)
		st.wantTold()
	})
}

// Changes of sub-resources may have changed places: each of them has its own numbers.
func TestL2M21NumbersAreOfEachSubresource(t *testing.T) {
	withRig(t, asSent(), func(t *testing.T, st *rig) {
		former, heir := st.streams()
		former.is("a/x", 7)
		former.is("a/y", 6)
		former.is("a", 5)
		st.wantTold("a as a/x7", "a as a/y6", "a5")
		heir.is("a/x", 7)
		heir.is("a", 5)
		heir.is("a/y", 6)
		st.wantTold()
	})
}

// Nothing says of a change of a sub-resource that another one was before it.
func TestL2M21SubresourcesWithoutNumbersAreAllTold(t *testing.T) {
	withRig(t, asSent(), func(t *testing.T, st *rig) {
		former, heir := st.streams()
		heir.is("a", 0)
		heir.is("a/x", 0)
		st.wantTold("a as a/x0", "a0")
		former.is("a/y", 0)
		st.wantTold("a as a/y0")
		former.is("a", 0)
		st.wantTold()
	})
}

// A change that was told under one topic, since nobody subscribed to another, has its number still for that.
func TestL2M21ANumberIsNotUsedUpByATopicWithoutSubscribers(t *testing.T) {
	withRig(t, options{}, func(t *testing.T, st *rig) {
		child := st.Listen(uriTopic("a/x"))
		st.merging(uriTopics("a", "c"), uriTopics("b"))
		former, heir := st.server.open[1], st.server.open[3]
		child.Close()
		synctest.Wait()
		heir.is("a/x", 2)
		st.wantTold("a2")
		former.is("a/x", 2)
		st.wantTold()
		st.Listen(uriTopic("a/x"))
		heir.is("a/x", 2)
		st.wantTold("a/x2")
	})
}

// Numbers are kept as long as streams are merged: another time they are of other changes.
func TestL2M21NumbersAreForgottenAfterAMerge(t *testing.T) {
	withRig(t, options{}, func(t *testing.T, st *rig) {
		former, heir := st.streams()
		former.is("a", 5)
		st.wantTold("a5")
		time.Sleep(2 * time.Second)
		st.wantCarried("a b c")
		heir.is("a", 5)
		st.wantTold("a5")
		if w := st.ws.Of(watchScope); w.told != nil {
			t.Errorf("%d numbers are kept after the merge, want none", len(w.told))
		}
	})
}

// The stream that was heard instead of another ends: what came on the other alone meanwhile may
// have been dropped. Numbers tell that nothing was.
func TestL2M21AnHeirThatEnds(t *testing.T) {
	for name, tt := range map[string]struct {
		number uint64
		want   []string
	}{"without numbers": {0, []string{"a", "a0"}}, "numbered": {9, []string{"a9"}}} {
		t.Run(name, func(t *testing.T) {
			withRig(t, options{}, func(t *testing.T, st *rig) {
				former, heir := st.streams()
				if tt.number > 0 {
					heir.is("a", 8)
				} else {
					heir.is("a", 0)
				}
				st.told()
				st.server.mu.Lock()
				st.server.endLocked(heir, ErrEnded)
				st.server.mu.Unlock()
				former.is("a", tt.number)
				time.Sleep(100 * time.Millisecond)
				got := st.told()
				slices.Sort(got)
				if got = slices.Compact(got); !slices.Equal(got, tt.want) && !(tt.number == 0 && slices.Equal(got, tt.want[:1])) {
					t.Errorf("told %q, want %q", got, tt.want)
				}
			})
		})
	}
}

// What is unread on a stream that is cut off is known, if its heir has brought a change since.
func TestL2M21WhatItsHeirHasToldIsNotLostWithAStream(t *testing.T) {
	for _, number := range []uint64{0, 5000} {
		t.Run(fmt.Sprint(number), func(t *testing.T) {
			withRig(t, options{}, func(t *testing.T, st *rig) {
				former, heir := st.streams()
				st.takes.Store(int64(10 * time.Millisecond))
				heir.is("a", number)
				for n := range 1000 {
					former.events <- fanout.Event{Topic: uriTopic("c"), Meta: fmt.Appendf(nil, "%d", n)}
				}
				time.Sleep(maxOverlap + time.Second)
				st.wantCarried("a b c")
				if told := st.told(); slices.Contains(told, "a") || !slices.Contains(told, "c") {
					t.Errorf("told of a: %v, of c: %v, want of c alone", slices.Contains(told, "a"), slices.Contains(told, "c"))
				}
				if !strings.Contains(st.log.String(), `topics=1`) {
					t.Errorf("log %q, want one topic that may have changed", st.log)
				}
			})
		})
	}
}
