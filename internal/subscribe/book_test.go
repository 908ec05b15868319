package subscribe

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/watchtest"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/settings"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
)

func TestM2L34LingerIsCutShortByAnotherStream(t *testing.T) {
	onStage(t, upstream.Options{}, func(t *testing.T, st *stage) {
		for range 5 {
			st.Listen(uris("a")...).WantHonored("a").Close()
			time.Sleep(upstream.DefaultLinger - 1)
		}
		s := st.Listen(uris("a")...).WantHonored("a")
		time.Sleep(time.Minute)
		st.WantLog("begin a")
		s.Close()
	})
}

// The linger time counts from the last stream to leave, not from the first.
func TestM2L34LingerCountsFromTheLast(t *testing.T) {
	onStage(t, upstream.Options{}, func(t *testing.T, st *stage) {
		a, b := st.Listen(uris("a")...), st.Listen(uris("a")...)
		a.Close()
		time.Sleep(upstream.DefaultLinger / 2)
		b.Close()
		time.Sleep(upstream.DefaultLinger - 1)
		st.WantLog("begin a")
		time.Sleep(time.Nanosecond)
		st.WantLog("finish a")
	})
}

// Whether the caller leaves the index before or after it calls release must not matter.
func TestM2L34ReleaseBeforeTheIndexKnows(t *testing.T) {
	onStage(t, upstream.Options{}, func(t *testing.T, st *stage) {
		s := st.Listen(append(uris("a"), tools())...)
		s.Release()
		synctest.Wait()
		time.Sleep(time.Millisecond)
		st.Want(-1, s.Honored...)
		time.Sleep(upstream.DefaultLinger)
		st.WantLog("begin a", "begin toolsListChanged", "finish a", "finish toolsListChanged")
		st.wantEnded()
	})
}

func TestM2L33UpdateGoesToTheNearestAncestor(t *testing.T) {
	const dropped = "dropped: unsubscribed update"
	for _, tt := range []struct {
		name, subscribed, sent, want string
	}{
		{"exact", "file:///a file:///a/b", "file:///a/b", "event file:///a/b"},
		{"parent", "file:///a file:///a/b", "file:///a/b/c", "event file:///a/b"},
		{"grandparent", "file:///a", "file:///a/b/c", "event file:///a"},
		{"authority", "note://todo", "note://todo/draft", "event note://todo"},
		{"slash at the end", "file:///dir/", "file:///dir/x", "event file:///dir/"},
		{"slash is nearer", "file:///dir file:///dir/", "file:///dir/x", "event file:///dir/"},
		{"root", "file:///", "file:///a/b", "event file:///"},
		{"query of a child", "file:///a", "file:///a/b?of=/x/y", "event file:///a"},
		{"no slash, no segment", "mem:a", "mem:a/b", "event mem:a"},
		{"bounded search", "file:///a", "file:///a" + strings.Repeat("/x", 100), "event file:///a"},
		{"beyond the bound", "file:///a", "file:///a" + strings.Repeat("/x", 200), dropped},
		{"part of a segment", "file:///a", "file:///ab", dropped},
		{"descendant", "file:///a/b", "file:///a", dropped},
		{"sibling", "file:///a/b", "file:///a/c", dropped},
		{"case", "file:///A", "file:///a", dropped},
		{"escape", "file:///a%20b", "file:///a b", dropped},
		{"slash added", "file:///dir/", "file:///dir", dropped},
		{"own query", "file:///a", "file:///a?x=1", dropped},
		{"other authority", "note://todo", "note://todos/x", dropped},
		{"empty", "file:///a", "", dropped},
	} {
		t.Run(tt.name, func(t *testing.T) {
			onStage(t, upstream.Options{}, func(t *testing.T, st *stage) {
				st.Listen(fields(tt.subscribed)...).WantHonored(tt.subscribed)
				st.Log.Take()
				st.hear(uris(tt.sent)[0])
				st.WantLog(tt.want)
			})
		})
	}
}

func TestM2L33SubresourceModes(t *testing.T) {
	for _, tt := range []struct {
		mode  fanout.Subresources
		child string
	}{
		{"", "event file:///a"},
		{fanout.SubresourcesParent, "event file:///a"},
		{fanout.SubresourcesAsSent, "event file:///a as file:///a/b"},
		{fanout.SubresourcesOff, "dropped: unsubscribed update"},
	} {
		t.Run("mode="+string(tt.mode), func(t *testing.T) {
			onStage(t, upstream.Options{Settings: settings.Server{Subresources: tt.mode}}, func(t *testing.T, st *stage) {
				st.Listen(uris("file:///a")...).WantHonored("file:///a")
				st.Log.Take()
				st.hear(uris("file:///a")[0])
				st.WantLog("event file:///a")
				st.hear(uris("file:///a/b")[0])
				st.WantLog(tt.child)
			})
		})
	}
}

func TestM2L33NothingUnacknowledgedIsPublished(t *testing.T) {
	onStage(t, upstream.Options{}, func(t *testing.T, st *stage) {
		st.Listen(uris("a", "bad")...).WantHonored("a")
		st.Log.Take()
		if st.hear(tools()) {
			t.Error("Hear of a list that nobody asked for = true")
		}
		st.WantLog()
		for _, uri := range []string{"bad", "never asked for", "a2"} {
			st.hear(uris(uri)[0])
			st.WantLog("dropped: unsubscribed update")
		}
	})
}

// While a subscription lingers, the streams of its ancestor are told again: to them it has
// ended.
func TestM2L33LingeringURIDoesNotHideItsAncestor(t *testing.T) {
	onStage(t, upstream.Options{}, func(t *testing.T, st *stage) {
		st.Listen(uris("note://todo")...)
		child := st.Listen(uris("note://todo/draft")...)
		st.Log.Take()
		draft := uris("note://todo/draft")[0]
		st.hear(draft)
		st.WantLog("event note://todo/draft")
		child.Close()
		st.WantLog()
		st.hear(draft)
		st.WantLog("event note://todo")
	})
}

// An update may come before the answer to the request that it is due to. An ancestor that
// is being asked for is told as well; what came under several URIs is told under its own.
func TestM2L37UpdateBeforeTheAnswer(t *testing.T) {
	onStage(t, upstream.Options{Settings: settings.Server{Subresources: fanout.SubresourcesAsSent}}, func(t *testing.T, st *stage) {
		st.Listen(uris("file:///a")...)
		st.slow = true
		for _, uri := range []string{"file:///a/b", "file:///a/c", "file:///a/d"} {
			go st.Listen(uris(uri)...)
		}
		synctest.Wait()
		st.Log.Take()
		for _, sent := range []string{"b/1", "c/1", "c/2"} {
			st.hear(uris("file:///a/" + sent)[0])
		}
		st.WantLog("event file:///a as file:///a/b/1", "event file:///a as file:///a/c/1", "event file:///a as file:///a/c/2")
		st.on(func(b *Book[bool]) {
			for topic := range b.All() {
				b.Grant(topic, false)
			}
		})
		st.WantLog("event file:///a/b as file:///a/b/1", "event file:///a/c")
		st.hear(uris("file:///a/d")[0])
		st.WantLog("event file:///a/d")
	})
}

// What another book has told of a topic stays with it, and keeps what was sent.
func TestG13HeardOfATopic(t *testing.T) {
	onStage(t, upstream.Options{Settings: settings.Server{Subresources: fanout.SubresourcesAsSent}}, func(t *testing.T, st *stage) {
		st.Listen(uris("file:///a", "file:///a/b")...)
		st.Log.Take()
		book := st.table.Of(scope).book
		book.HearOf(fanout.Event{Topic: uris("file:///a")[0], URI: "file:///a/b/1"})
		st.WantLog("event file:///a as file:///a/b/1")
		book.HearOf(fanout.Event{Topic: uris("file:///a/b")[0]})
		st.WantLog("event file:///a/b")
		book.HearOf(fanout.Event{Topic: uris("file:///a/c")[0]})
		st.WantLog()
	})
}

// A topic is its first share's that needs it, and losses are told of after all else.
func TestG14LossesComeLast(t *testing.T) {
	onStage(t, upstream.Options{}, func(t *testing.T, st *stage) {
		st.Share.Principal = "ada"
		st.Listen(fanout.Topic{Scope: scope, Kind: fanout.StateLost}, uris("a")[0], tools())
		st.Share.Principal = "bob"
		st.Listen(tools())
		var all []string
		st.on(func(b *Book[bool]) {
			for topic := range b.All() {
				all = append(all, watchtest.TopicName(topic.Topic))
				if topic.Share() != (mcp.Share{Principal: "ada"}) {
					t.Errorf("%v is of %v", topic.Topic, topic.Share())
				}
			}
		})
		if got := strings.Join(all, " "); got != "toolsListChanged a stateLost" {
			t.Errorf("all topics are %s", got)
		}
	})
}

func TestM2L37UpdateBeforeARefusal(t *testing.T) {
	onStage(t, upstream.Options{}, func(t *testing.T, st *stage) {
		acked := make(chan *watchtest.Stream, 1)
		go func() { acked <- st.Listen(uris("never")...) }()
		synctest.Wait()
		st.hear(uris("never")[0])
		st.Log.Take()
		st.on(func(b *Book[bool]) {
			for topic := range b.All() {
				b.Deny(topic, errors.New("no such resource"))
			}
		})
		(<-acked).WantHonored("")
		st.WantLog()
	})
}

// What may have been missed is told once, to whoever was promised it.
func TestMissedChangesAreToldOnce(t *testing.T) {
	onStage(t, upstream.Options{}, func(t *testing.T, st *stage) {
		st.Listen(append(uris("a"), tools())...)
		go st.Listen(uris("never")...)
		synctest.Wait()
		st.Log.Take()
		tell := func(b *Book[bool]) {
			for topic := range b.All() {
				b.TellMissed(topic)
			}
		}
		st.on(func(b *Book[bool]) {
			for topic := range b.All() {
				b.Miss(topic)
			}
			tell(b)
		})
		st.WantLog("event a", "event toolsListChanged")
		st.on(tell)
		st.WantLog()
		st.on(func(b *Book[bool]) {
			for topic := range b.All() {
				b.Grant(topic, true)
			}
		})
		st.WantLog("event never")
	})
}

// That the server responds to requests of a profile is for its book alone: another does not take it away.
func TestResponsesAreOfOneProfile(t *testing.T) {
	onStage(t, upstream.Options{}, func(t *testing.T, st *stage) {
		const other = "files/2"
		st.Listen(uris("a")...)
		topics := watchtest.URITopics(other, "b")
		st.Want(1, topics...)
		if _, _, err := st.table.Watch(t.Context(), mcp.Profile{Scope: other}, topics); err != nil {
			t.Fatal(err)
		}
		st.table.Respond(scope)
		if st.table.Of(other).book.TakeResponse() {
			t.Error("another profile took the response")
		}
		if !st.table.Of(scope).book.TakeResponse() || st.table.Of(scope).book.TakeResponse() {
			t.Error("the profile did not have the response once")
		}
	})
}

// A change that comes while its topic is being accepted is told: by who hears it, or by Grant.
func TestM2L35ChangeDuringGrantIsTold(t *testing.T) {
	for n := range 200 {
		b, c, topics := promised(1)
		topic := b.track(topics[0])
		b.Withdraw(topic)
		b.Ask(topic)
		var heard sync.WaitGroup
		heard.Go(func() { b.HearOf(fanout.Event{Topic: topics[0]}) })
		if n%2 == 0 {
			runtime.Gosched() // so that it is heard before, too
		}
		b.Grant(topic, false)
		heard.Wait()
		if c.heard != 1 {
			t.Fatalf("the change was told %d times, want once", c.heard)
		}
	}
}

// What came of a part of a topic does not stand for what was missed of all of it.
func TestEarlyChangeOfAPartLeavesTheRestMissed(t *testing.T) {
	for sent, missed := range map[string]bool{"": false, "/part": true} {
		b, c, topics := promised(1)
		topic := b.track(topics[0])
		b.up.Settings.Subresources = fanout.SubresourcesAsSent
		b.Withdraw(topic)
		topic.Missed = true
		b.Ask(topic)
		b.HearOf(fanout.Event{Topic: topics[0], URI: topics[0].URI + sent})
		b.Grant(topic, false)
		if topic.Missed != missed || c.heard != 1 {
			t.Errorf("sent %q: missed = %v, told %d times; want %v, once", sent, topic.Missed, c.heard, missed)
		}
	}
}

// counting is an audience that only counts, so that a benchmark measures the book.
type counting struct{ heard int }

func (c *counting) Publish(fanout.Event)     { c.heard++ }
func (c *counting) Wanted(fanout.Topic) bool { return true }
func (c *counting) End(fanout.Topic, error)  {}

// promised returns a book, without a loop, that promised n URIs.
func promised(n int) (*Book[bool], *counting, []fanout.Topic) {
	c := &counting{}
	b := newBook[bool](&source{Options: &upstream.Options{Changes: c}}, mcp.Profile{Scope: scope})
	topics := make([]fanout.Topic, n)
	for i := range topics {
		topics[i] = uris(fmt.Sprintf("file:///srv/data/%07d.txt", i))[0]
		b.Grant(b.track(topics[i]), false)
	}
	return b, c, topics
}

func TestHearDoesNotAllocate(t *testing.T) {
	b, c, topics := promised(100)
	ev := fanout.Event{Topic: topics[50]}
	if n := testing.AllocsPerRun(100, func() { b.Hear(ev, nil) }); n != 0 {
		t.Errorf("%v allocations for an exact match, want 0", n)
	}
	ev.Topic.URI += "/part/of/it"
	if n := testing.AllocsPerRun(100, func() { b.Hear(ev, nil) }); n != 0 {
		t.Errorf("%v allocations for a sub-resource, want 0", n)
	}
	if c.heard == 0 {
		t.Error("nothing was published")
	}
}

func BenchmarkHear(b *testing.B) {
	for _, n := range []int{10, 1_000_000} {
		book, c, topics := promised(n)
		for _, to := range []struct{ name, suffix string }{{"exact", ""}, {"child", "/x"}} {
			sent := make([]fanout.Event, min(n, 1<<14))
			for i := range sent { // spread, so that caches don't help
				sent[i].Topic = topics[i*7919%n]
				sent[i].Topic.URI += to.suffix
			}
			b.Run(fmt.Sprintf("uris=%d/%s", n, to.name), func(b *testing.B) {
				b.ReportAllocs()
				c.heard = 0
				i := 0
				for b.Loop() {
					book.Hear(sent[i], nil)
					if i++; i == len(sent) {
						i = 0
					}
				}
				if c.heard != b.N {
					b.Fatalf("%d events, want %d", c.heard, b.N)
				}
			})
		}
	}
}
