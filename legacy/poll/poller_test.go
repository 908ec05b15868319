package poll

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/legacytest"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	"github.com/mcpbridge/mcpbridge/legacy/link"
)

// A rig is a Poller of a muteServer, and what it told.
type rig struct {
	*Poller
	server *legacytest.MuteServer
	link   *link.Link

	mu    sync.Mutex
	heard []string
}

func newRig(t *testing.T, m *legacytest.MuteServer, every Intervals) *rig {
	near, far := transport.NewPipe()
	a := legacytest.NewServer(t, far)
	m.Play(a)
	var running sync.WaitGroup
	running.Go(a.Serve)
	o := &upstream.Options{Name: "scripted"}
	o.Fill(spec.Legacy)
	r := &rig{server: m, link: link.New(o, nobody{})}
	r.link.OverConn(t.Context(), near)
	t.Cleanup(func() {
		r.link.Close(context.Background())
		running.Wait()
	})
	r.Poller = New(r.link, Options{Every: every, Timeout: time.Minute, Logger: slog.New(slog.DiscardHandler), Changed: r.changed})
	return r
}

func (r *rig) changed(k fanout.Kind, uri string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.heard = append(r.heard, strings.TrimSpace(k.String()+" "+uri))
}

// take returns what was told since it was last called.
func (r *rig) take() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := strings.Join(r.heard, ", ")
	r.heard = nil
	return out
}

// nobody needs nothing that a server sends.
type nobody struct{}

func (nobody) Receive(context.Context, *wire.Message, *upstream.Call) {}
func (nobody) ListenChanged(bool, bool)                               {}

func TestM2L41SynthesizedChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &legacytest.MuteServer{Tools: []string{"a", "b"}, Texts: map[string]string{"file:///x": "1", "file:///y": "1"}}
		r := newRig(t, m, Intervals{Tools: 30 * time.Second, Updates: 10 * time.Second})
		for _, k := range []key{{fanout.ToolsListChanged, ""}, {fanout.ResourceUpdated, "file:///x"}, {fanout.ResourceUpdated, "file:///y"}} {
			if err := r.Watch(t.Context(), k.kind, k.uri); err != nil {
				t.Fatal(err)
			}
		}
		var refusal *wire.Error
		if err := r.Watch(t.Context(), fanout.ResourceUpdated, "file:///none"); !errors.As(err, &refusal) {
			t.Errorf("Watch of what is not there = %v, want the server's error", err)
		}
		time.Sleep(time.Hour)
		if got := r.take(); got != "" {
			t.Errorf("heard %s though nothing has changed", got)
		}
		if n := m.Count("tools/list"); n < 2*90 || n > 2*125 { // two pages, 120 intervals with jitter
			t.Errorf("%d pages of tools were read in an hour", n)
		}
		for _, step := range []struct {
			change func()
			within time.Duration
			want   string
		}{
			{func() { m.Tools[1] = "c" }, 38 * time.Second, fanout.ToolsListChanged.String()}, // on the second page
			{func() { m.Texts["file:///x"] = "2" }, 13 * time.Second, fanout.ResourceUpdated.String() + " file:///x"},
			{func() { delete(m.Texts, "file:///y") }, time.Minute, fanout.ResourceUpdated.String() + " file:///y"}, // and is told once
		} {
			m.Set(step.change)
			time.Sleep(step.within)
			if got := r.take(); got != step.want {
				t.Errorf("heard %q, want %q", got, step.want)
			}
		}
		r.Unwatch(fanout.ToolsListChanged, "")
		r.Unwatch(fanout.ResourceUpdated, "file:///x")
		r.Unwatch(fanout.ResourceUpdated, "file:///y")
		time.Sleep(time.Minute)
		before := m.Count("tools/list") + m.Count("resources/read")
		time.Sleep(time.Hour)
		if after := m.Count("tools/list") + m.Count("resources/read"); after != before {
			t.Errorf("the server was asked %d times while nobody listened", after-before)
		}
	})
}
