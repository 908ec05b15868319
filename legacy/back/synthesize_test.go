package back

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/legacytest"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/settings"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A hearer is who listens to changes: it wants what a test says and notes what is
// published.
type hearer struct {
	mu    sync.Mutex
	wants map[fanout.Topic]bool
	heard []string
}

func (h *hearer) Publish(ev fanout.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.heard = append(h.heard, strings.TrimSpace(ev.Topic.Kind.String()+" "+ev.Topic.URI))
}

func (h *hearer) Wanted(t fanout.Topic) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.wants[t]
}

func (h *hearer) End(fanout.Topic, error) {}

func (h *hearer) want(on bool, topics ...fanout.Topic) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, t := range topics {
		if h.wants == nil {
			h.wants = make(map[fanout.Topic]bool)
		}
		h.wants[t] = on
	}
}

// take returns what was heard since it was last called.
func (h *hearer) take() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := strings.Join(h.heard, ", ")
	h.heard = nil
	return out
}

// What the polls find is proven in legacy/poll.
func TestM2L41SynthesizedTopicsAreHonored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &legacytest.MuteServer{Tools: []string{"a", "b"}, Texts: map[string]string{"file:///x": "1", "file:///y": "1"}}
		h := &hearer{}
		b := newAsker(t, Options{Options: upstream.Options{Changes: h, Settings: settings.Server{Linger: time.Second, Synthesize: settings.Synthesize{Tools: 30 * time.Second, Updates: 10 * time.Second}}}}, m.Play)
		profile := mcp.Profile{Scope: "test/1", Capabilities: json.RawMessage(`{}`)}
		topic := func(k fanout.Kind, uri string) fanout.Topic { return fanout.Topic{Scope: "test/1", Kind: k, URI: uri} }
		all := []fanout.Topic{
			topic(fanout.ToolsListChanged, ""), topic(fanout.PromptsListChanged, ""), topic(fanout.ResourcesListChanged, ""),
			topic(fanout.ResourceUpdated, "file:///x"), topic(fanout.ResourceUpdated, "file:///y"), topic(fanout.ResourceUpdated, "file:///none"),
		}
		h.want(true, all...)
		honored, release, err := b.Watch(t.Context(), profile, all)
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(honored); got != fmt.Sprint([]fanout.Topic{all[0], all[3], all[4]}) {
			t.Errorf("honored %v: want the tools and the resources that are there; neither what was not configured nor what was refused", got)
		}
		h.take()
		m.Set(func() { m.Texts["file:///x"] = "2" })
		time.Sleep(13 * time.Second)
		if got := h.take(); got != fanout.ResourceUpdated.String()+" file:///x" {
			t.Errorf("heard %q, want the resource once", got)
		}
		h.want(false, all...)
		release()
		time.Sleep(time.Minute)
		before := m.Count("tools/list") + m.Count("resources/read")
		time.Sleep(time.Hour)
		if after := m.Count("tools/list") + m.Count("resources/read"); after != before {
			t.Errorf("the server was asked %d times while nobody listened", after-before)
		}
	})
}

// What changes before the acknowledgment is in what the client reads after it;
// what changes after is told.
func TestM2L41TheFirstLookPrecedesTheAcknowledgment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &legacytest.MuteServer{Tools: []string{"a"}}
		h := &hearer{}
		b := newAsker(t, Options{Options: upstream.Options{Changes: h, Settings: settings.Server{Synthesize: settings.Synthesize{Tools: time.Minute}}}}, m.Play)
		want := []fanout.Topic{{Scope: "test/1", Kind: fanout.ToolsListChanged}}
		h.want(true, want...)
		_, release, err := b.Watch(t.Context(), mcp.Profile{Scope: "test/1"}, want)
		if err != nil {
			t.Fatal(err)
		}
		defer release()
		m.Set(func() { m.Tools[0] = "b" }) // right behind
		time.Sleep(2 * time.Minute)
		if got := h.take(); got != fanout.ToolsListChanged.String() {
			t.Errorf("heard %q, want the change", got)
		}
	})
}

// A session that is lost is made anew, and what changed meanwhile is told.
func TestM2L41SynthesisOutlivesItsSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &legacytest.MuteServer{Tools: []string{"a"}}
		h := &hearer{}
		var last *legacytest.Server
		b := newAsker(t, Options{Options: upstream.Options{Changes: h, Settings: settings.Server{Synthesize: settings.Synthesize{Tools: time.Minute}}}}, func(a *legacytest.Server) {
			last = a
			m.Play(a)
		})
		want := []fanout.Topic{{Scope: "test/1", Kind: fanout.ToolsListChanged}}
		h.want(true, want...)
		_, release, err := b.Watch(t.Context(), mcp.Profile{Scope: "test/1"}, want)
		if err != nil {
			t.Fatal(err)
		}
		defer release()
		time.Sleep(time.Hour)
		h.take()
		m.Set(func() { m.Tools[0] = "b" })
		last.CloseConn()
		time.Sleep(30 * time.Second)
		if got := h.take(); got != fanout.ToolsListChanged.String() {
			t.Errorf("heard %q after the session was lost, want one event", got)
		}
		m.Set(func() { m.Tools[0] = "c" })
		time.Sleep(2 * time.Minute)
		if got := h.take(); got != fanout.ToolsListChanged.String() {
			t.Errorf("heard %q on the new session, want the change", got)
		}
	})
}

func TestM2L05SynthesizedKindsAreAdvertised(t *testing.T) {
	const server, want = `{"tools":{},"resources":{"x":1}}`, `{"tools":{"listChanged":true},"resources":{"x":1,"subscribe":true}}`
	b := newAsker(t, Options{Options: upstream.Options{Settings: settings.Server{Synthesize: settings.Synthesize{Tools: 1, Updates: 1}}}}, func(a *legacytest.Server) { a.Capabilities = server })
	d, err := b.Describe(context.Background(), ask("server/discover", ""))
	if err != nil || string(d.Capabilities) != want {
		t.Errorf("capabilities = %s, %v, want %s", d.Capabilities, err, want)
	}
}

// A server over HTTP that offers no stream can't tell of anything: what is looked
// at is acknowledged all the same.
func TestM2L31SynthesizedWithoutAStream(t *testing.T) {
	p := legacytest.NewHTTPServer(t)
	p.On["tools/list"] = func(w http.ResponseWriter, _ *http.Request, m wire.Message) {
		legacytest.AnswerJSON(w, m.ID, `{"tools":[]}`)
	}
	h := &hearer{}
	b := newTestBack(t, Options{Options: upstream.Options{URL: p.URL, Changes: h, Settings: settings.Server{Synthesize: settings.Synthesize{Tools: time.Minute}}}})
	want := []fanout.Topic{{Scope: "test/1", Kind: fanout.ToolsListChanged}, {Scope: "test/1", Kind: fanout.PromptsListChanged}}
	h.want(true, want...)
	honored, release, err := b.Watch(t.Context(), mcp.Profile{Scope: "test/1"}, want)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	if len(honored) != 1 || honored[0] != want[0] {
		t.Errorf("honored %v, want the tools alone", honored)
	}
}
