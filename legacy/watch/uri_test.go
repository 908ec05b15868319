package watch

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
)

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
			onStage(t, Options{}, func(t *testing.T, st *stage) {
				st.listen(uriTopics(strings.Fields(tt.subscribed)...)...).wantHonored(tt.subscribed)
				st.log.Take()
				st.watch().Changed(fanout.ResourceUpdated, tt.sent, nil)
				st.wantLog(tt.want)
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
			onStage(t, Options{Subresources: tt.mode}, func(t *testing.T, st *stage) {
				st.listen(uriTopic("file:///a")).wantHonored("file:///a")
				st.log.Take()
				st.watch().Changed(fanout.ResourceUpdated, "file:///a", nil)
				st.wantLog("event file:///a")
				st.watch().Changed(fanout.ResourceUpdated, "file:///a/b", nil)
				st.wantLog(tt.child)
			})
		})
	}
}

func TestM2L33NothingUnacknowledgedIsPublished(t *testing.T) {
	onStage(t, Options{}, func(t *testing.T, st *stage) {
		st.server.answer = refuse("refused")
		st.listen(uriTopics("a", "refused")...).wantHonored("a")
		st.log.Take()
		w := st.watch()
		w.Changed(fanout.ToolsListChanged, "", nil)
		w.Changed(fanout.PromptsListChanged, "", nil)
		w.Changed(fanout.ResourcesListChanged, "", nil)
		st.wantLog()
		for _, uri := range []string{"refused", "never asked for", "a2"} {
			w.Changed(fanout.ResourceUpdated, uri, nil)
			st.wantLog("dropped: unsubscribed update")
		}
	})
}

// While a subscription lingers, the streams of its ancestor are told again: to
// them it has ended.
func TestM2L33LingeringURIDoesNotHideItsAncestor(t *testing.T) {
	onStage(t, Options{}, func(t *testing.T, st *stage) {
		st.listen(uriTopic("note://todo"))
		child := st.listen(uriTopic("note://todo/draft"))
		st.log.Take()
		st.watch().Changed(fanout.ResourceUpdated, "note://todo/draft", nil)
		st.wantLog("event note://todo/draft")
		child.close()
		st.wantLog()
		st.watch().Changed(fanout.ResourceUpdated, "note://todo/draft", nil)
		st.wantLog("event note://todo")
		time.Sleep(DefaultLinger)
		st.wantLog("unsubscribe note://todo/draft")
	})
}

// An ancestor that is being asked for is told once the server has agreed; what
// raced under several URIs is told under its own.
func TestM2L33UpdateForAnAncestorBeingAskedFor(t *testing.T) {
	onStage(t, Options{Subresources: fanout.SubresourcesAsSent}, func(t *testing.T, st *stage) {
		st.listen(uriTopic("file:///a"))
		st.server.answer = func(string, string) (time.Duration, error) { return 2 * time.Second, nil }
		one, two := st.goListen(uriTopic("file:///a/b")), st.goListen(uriTopic("file:///a/c"))
		time.Sleep(time.Second)
		st.log.Take()
		st.watch().Changed(fanout.ResourceUpdated, "file:///a/b/1", nil)
		st.watch().Changed(fanout.ResourceUpdated, "file:///a/c/1", nil)
		st.watch().Changed(fanout.ResourceUpdated, "file:///a/c/2", nil)
		st.wantLog("event file:///a as file:///a/b/1", "event file:///a as file:///a/c/1", "event file:///a as file:///a/c/2")
		(<-one).wantHonored("file:///a/b")
		(<-two).wantHonored("file:///a/c")
		st.log.Take()
		events := st.aud.Events()
		got := map[string]string{}
		for _, ev := range events[3:] {
			got[ev.Topic.URI] = ev.URI
		}
		if len(events) != 5 || got["file:///a/b"] != "file:///a/b/1" || got["file:///a/c"] != "file:///a/c" {
			t.Errorf("events after the answers: %v", events[3:])
		}
	})
}

// A server must not make us look up a million ancestors for one notification.
func TestM2L33SearchForAncestorsIsBounded(t *testing.T) {
	onStage(t, Options{}, func(t *testing.T, st *stage) {
		st.listen(uriTopic("file:///a"))
		st.log.Take()
		st.watch().Changed(fanout.ResourceUpdated, "file:///a"+strings.Repeat("/x", 100), nil)
		st.wantLog("event file:///a")
		st.watch().Changed(fanout.ResourceUpdated, "file:///a"+strings.Repeat("/x", 200), nil)
		st.wantLog("dropped: unsubscribed update")
	})
}

// deaf is an audience that only counts, so that a benchmark measures the watch.
type deaf struct{ heard int }

func (d *deaf) Publish(fanout.Event)     { d.heard++ }
func (d *deaf) Wanted(fanout.Topic) bool { return true }
func (d *deaf) End(fanout.Topic, error)  {}

// acknowledged returns a watch, without a loop, that promised n URIs.
func acknowledged(n int) (*Watch, *deaf, []string) {
	d := &deaf{}
	w := newWatch(New(Options{Name: "files", Changes: d}), mcp.Profile{Scope: testScope})
	uris := make([]string, n)
	for i := range uris {
		uris[i] = fmt.Sprintf("file:///srv/data/%07d.txt", i)
		e := w.track(uriTopic(uris[i]))
		e.acked, e.standing = true, stOn
	}
	return w, d, uris
}

func TestChangedDoesNotAllocate(t *testing.T) {
	w, d, uris := acknowledged(100)
	if n := testing.AllocsPerRun(100, func() { w.Changed(fanout.ResourceUpdated, uris[50], nil) }); n != 0 {
		t.Errorf("%v allocations for an exact match, want 0", n)
	}
	child := uris[50] + "/part/of/it"
	if n := testing.AllocsPerRun(100, func() { w.Changed(fanout.ResourceUpdated, child, nil) }); n != 0 {
		t.Errorf("%v allocations for a sub-resource, want 0", n)
	}
	if d.heard == 0 {
		t.Error("nothing was published")
	}
}

func BenchmarkChanged(b *testing.B) {
	for _, n := range []int{10, 1_000_000} {
		w, d, uris := acknowledged(n)
		for _, to := range []struct{ name, suffix string }{{"exact", ""}, {"child", "/x"}} {
			sent := make([]string, min(n, 1<<14))
			for i := range sent { // spread, so that caches don't help
				sent[i] = uris[i*7919%n] + to.suffix
			}
			b.Run(fmt.Sprintf("uris=%d/%s", n, to.name), func(b *testing.B) {
				b.ReportAllocs()
				d.heard = 0
				i := 0
				for b.Loop() {
					w.Changed(fanout.ResourceUpdated, sent[i], nil)
					if i++; i == len(sent) {
						i = 0
					}
				}
				if d.heard != b.N {
					b.Fatalf("%d events, want %d", d.heard, b.N)
				}
			})
		}
	}
}
