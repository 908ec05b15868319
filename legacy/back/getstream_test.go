package back

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/legacytest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/watchtest"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	"github.com/mcpbridge/mcpbridge/legacy/watch"
)

func TestM2L32AskedForBeforeInitialized(t *testing.T) {
	p := legacytest.NewHTTPServer(t)
	p.Get = func(w http.ResponseWriter, r *http.Request) {
		legacytest.StartSSE(w)
		<-r.Context().Done()
	}
	p.On["tools/list"] = listOnce
	b := newTestBack(t, Options{Options: upstream.Options{URL: p.URL}})
	if err := serveOne(t, b, "a"); err != nil {
		t.Fatal(err)
	}
	if got, want := p.Order(), "initialize GET notifications/initialized tools/list"; got != want {
		t.Errorf("order = %s, want %s", got, want)
	}
	get := p.Requests("GET")[0]
	for name, want := range map[string]string{
		"Accept":               "text/event-stream",
		"Mcp-Session-Id":       "sess-1",
		"Mcp-Protocol-Version": "2025-11-25",
		"Content-Type":         "",
		"Last-Event-Id":        "",
	} {
		if v := get.Header.Get(name); v != want {
			t.Errorf("%s of the GET = %q, want %q", name, v, want)
		}
	}
}

// An HTTP server that is gone for good never says that the session is lost. What
// follows it hears of the end all the same, when it is certain enough.
func TestM2L38UnreachableServerOverHTTP(t *testing.T) {
	t.Run("its stream was open", func(t *testing.T) {
		testUnreachableOverHTTP(t, func(w http.ResponseWriter, r *http.Request) {
			legacytest.StartSSE(w)
			<-r.Context().Done()
		}, "toolsListChanged", "note://a")
	})
	t.Run("its stream was put off", func(t *testing.T) {
		testUnreachableOverHTTP(t, func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusServiceUnavailable)
		}, "note://a")
	})
}

// maxMissed is how long a server may be gone before its session counts as lost.
const maxMissed = 30 * time.Second

func testUnreachableOverHTTP(t *testing.T, get http.HandlerFunc, topics ...string) {
	synctest.Test(t, func(t *testing.T) {
		l := bridgetest.Listen()
		p := &legacytest.HTTPServer{Capabilities: legacytest.Everything, Revision: "2025-11-25", Session: "sess-1", Get: get}
		p.On = map[string]func(http.ResponseWriter, *http.Request, wire.Message){
			"resources/subscribe": func(w http.ResponseWriter, _ *http.Request, m wire.Message) { legacytest.AnswerJSON(w, m.ID, `{}`) },
		}
		server := &http.Server{Handler: p}
		go func() { _ = server.Serve(l) }() // ends with Close
		rt := l.Transport()
		t.Cleanup(rt.CloseIdleConnections)
		aud := watchtest.NewAudience(&watchtest.Journal{})
		b := newTestBack(t, Options{Options: upstream.Options{URL: "http://127.0.0.1/mcp", RoundTripper: rt, Changes: aud}})
		honored, release := watchOn(t, b, aud, listTopic(fanout.ToolsListChanged), uriTopic("note://a"))
		defer release()
		if want := strings.Join(topics, " "); honored != want {
			t.Errorf("honored %q, want %q", honored, want)
		}
		_ = server.Close() // it was in memory
		time.Sleep(watch.Unreachable)
		wantJournal(t, aud.Log)
		time.Sleep(2 * maxMissed)
		var want []string
		for _, topic := range topics {
			want = append(want, "end "+topic)
		}
		wantJournal(t, aud.Log, want...)
	})
}
