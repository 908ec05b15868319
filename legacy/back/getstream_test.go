package back

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/backtest"
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

func TestM2L32OnceMoreAfterInitialized(t *testing.T) {
	for _, tt := range []struct {
		name    string
		refuse  int32 // how many times
		order   string
		channel bool
	}{
		{"refused once", 1, "initialize GET notifications/initialized GET tools/list", true},
		{"never offered", 99, "initialize GET notifications/initialized GET tools/list", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := legacytest.NewHTTPServer(t)
			var gets atomic.Int32
			p.Get = func(w http.ResponseWriter, r *http.Request) {
				if gets.Add(1) <= tt.refuse {
					w.WriteHeader(http.StatusMethodNotAllowed)
					return
				}
				legacytest.StartSSE(w)
				<-r.Context().Done()
			}
			p.On["tools/list"] = listOnce
			b := newTestBack(t, Options{Options: upstream.Options{URL: p.URL}})
			start := time.Now()
			req := ask("tools/list", "")
			if _, err := body(b.Serve(t.Context(), req, &backtest.Caller{})); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(start); took > streamWait {
				t.Errorf("the handshake took %v though the GET was answered at once", took)
			}
			w, release, err := b.watchSession(t.Context(), req.Profile)
			if err != nil {
				t.Fatal(err)
			}
			defer release()
			if got := w.Offers().Channel; got != tt.channel {
				t.Errorf("channel = %v, want %v", got, tt.channel)
			}
			if got := p.Order(); got != tt.order {
				t.Errorf("order = %s, want %s", got, tt.order)
			}
		})
	}
}

// A server that fails here is asked again later; the handshake does not wait.
func TestM2L32FailingStreamDelaysNothing(t *testing.T) {
	p := legacytest.NewHTTPServer(t)
	p.Get = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }
	p.On["tools/list"] = listOnce
	b := newTestBack(t, Options{Options: upstream.Options{URL: p.URL}})
	start := time.Now()
	if err := serveOne(t, b, "a"); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(start); took >= streamWait {
		t.Errorf("the handshake took %v", took)
	}
}

// A server that sends no headers before its first message delays the handshake
// by the bound and no more; when it does open, that is seen.
func TestM2L32LateStream(t *testing.T) {
	p := legacytest.NewHTTPServer(t)
	open := make(chan struct{})
	p.Get = func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-open:
			legacytest.StartSSE(w)
		case <-r.Context().Done():
		}
		<-r.Context().Done()
	}
	p.On["tools/list"] = listOnce
	b := newTestBack(t, Options{Options: upstream.Options{URL: p.URL}})
	start := time.Now()
	req := ask("tools/list", "")
	if _, err := body(b.Serve(t.Context(), req, &backtest.Caller{})); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(start); took < streamWait || took > streamWait+10*time.Second {
		t.Errorf("the handshake took %v, want %v", took, streamWait)
	}
	w, release, err := b.watchSession(t.Context(), req.Profile)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	if w.Offers().Channel {
		t.Error("a channel is offered before the stream is open")
	}
	close(open)
	bridgetest.Eventually(t, "the late stream to count", func() bool { return w.Offers().Channel })
}

// The stream is opened again after what the server asked for, from where it
// stood.
func TestM2L32Reopened(t *testing.T) {
	p := legacytest.NewHTTPServer(t)
	var gets atomic.Int32
	var closed atomic.Int64
	p.Get = func(w http.ResponseWriter, r *http.Request) {
		switch gets.Add(1) {
		case 1:
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, "retry: 50\nid: g1\ndata:\n\n")
			closed.Store(time.Now().UnixNano())
		default:
			if since := time.Since(time.Unix(0, closed.Load())); since < 50*time.Millisecond {
				t.Errorf("opened again after %v, want 50ms or more", since)
			}
			legacytest.StartSSE(w)
			<-r.Context().Done()
		}
	}
	p.On["tools/list"] = listOnce
	b := newTestBack(t, Options{Options: upstream.Options{URL: p.URL}})
	if err := serveOne(t, b, "a"); err != nil {
		t.Fatal(err)
	}
	bridgetest.Eventually(t, "the second GET", func() bool { return len(p.Requests("GET")) == 2 })
	if last := p.Requests("GET")[1].Header.Get("Last-Event-Id"); last != "g1" {
		t.Errorf("opened again behind %q, want g1", last)
	}
}

// A GET that is refused after it was open, or put off, says that the session is
// gone: with 404, or as many servers do with 400, at once or when it is not about
// replay.
func TestM2L03GetStreamFindsTheSessionLost(t *testing.T) {
	for _, tt := range []struct {
		name, stream string // empty: 503
		status       int
	}{
		{"404", "retry: 1\nid: 1\ndata:\n\n", http.StatusNotFound},
		{"400", "retry: 1\n\n", http.StatusBadRequest},
		{"400 twice, behind an id", "retry: 1\nid: 1\ndata:\n\n", http.StatusBadRequest},
		{"404 after 503", "", http.StatusNotFound},
	} {
		t.Run(tt.name, func(t *testing.T) { testStreamFindsTheSessionLost(t, tt.stream, tt.status) })
	}
}

func testStreamFindsTheSessionLost(t *testing.T, stream string, status int) {
	p := legacytest.NewHTTPServer(t)
	var gets atomic.Int32
	p.Get = func(w http.ResponseWriter, r *http.Request) {
		if gets.Add(1) > 1 {
			w.WriteHeader(status)
			return
		}
		if stream == "" {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, stream)
	}
	p.On["tools/list"] = listOnce
	b := newTestBack(t, Options{Options: upstream.Options{URL: p.URL}})
	w, release, err := b.watchSession(t.Context(), ask("", "").Profile)
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-w.Done():
	case <-time.After(bridgetest.Patience):
		t.Errorf("the session is not lost within %v", bridgetest.Patience)
	}
	release()
	if err := serveOne(t, b, "test/1"); err != nil {
		t.Fatal(err)
	}
	if n := len(p.Requests("initialize")); n != 2 {
		t.Errorf("%d sessions, want 2", n)
	}
	if d := p.Requests("DELETE"); len(d) != 0 {
		t.Errorf("a lost session was ended with %v", d[0].Header)
	}
	if strings.Contains(p.Order(), "cancelled") {
		t.Errorf("order = %s", p.Order())
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
