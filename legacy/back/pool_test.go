package back

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/backtest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/legacytest"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	"github.com/mcpbridge/mcpbridge/legacy/watch"
)

// serveOne lists once for a scope.
func serveOne(t *testing.T, b *Back, scope string) error {
	t.Helper()
	req := ask("tools/list", "")
	req.Profile.Scope = scope
	_, err := body(b.Serve(t.Context(), req, &backtest.Caller{}))
	return err
}

func TestM2L02IdleSessionsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, peers := pipeBack(t, Options{Idle: time.Minute})
		gone := make(chan struct{})
		go func() {
			(<-peers).Run()
			close(gone)
		}()
		for range 3 { // use starts the clock anew
			if err := serveOne(t, b, "a"); err != nil {
				t.Fatal(err)
			}
			time.Sleep(50 * time.Second)
		}
		select {
		case <-gone:
			t.Fatal("the session ended though it was used every 50s")
		default:
		}
		time.Sleep(11 * time.Second)
		synctest.Wait()
		select {
		case <-gone:
		default:
			t.Error("the session is open after Idle")
		}
	})
}

func TestM2L02InUseIsNotIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, peers := pipeBack(t, Options{Options: upstream.Options{Timeouts: upstream.Timeouts{Request: time.Hour}}, Idle: time.Minute})
		var err error
		go func() { err = serveOne(t, b, "a") }()
		p := <-peers
		p.Handshake(legacytest.Everything)
		m := p.Want("tools/list")
		time.Sleep(30 * time.Minute)
		p.Result(m.ID, `{"tools":[]}`)
		synctest.Wait()
		if err != nil {
			t.Errorf("a call of 30 minutes = %v", err)
		}
	})
}

func TestM2L02Eviction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, peers := pipeBack(t, Options{MaxSessions: 2})
		over := make(chan string, 3)
		go func() {
			for _, name := range []string{"a", "b", "c"} {
				p := <-peers
				go func() {
					p.Run()
					over <- name
				}()
			}
		}()
		for _, scope := range []string{"a", "b", "a", "c"} {
			if err := serveOne(t, b, scope); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if len(over) != 1 || <-over != "b" {
			t.Error("the least recently used session was not the one that ended")
		}
		if n := b.Snapshot().Sessions; n != 2 {
			t.Errorf("%d sessions, want 2", n)
		}
	})
}

func TestM2L02FullPoolSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, peers := pipeBack(t, Options{MaxSessions: 1})
		go func() { (<-peers).Run() }()
		_, release, err := b.watchSession(t.Context(), ask("", "").Profile)
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // for the server to have read it all
		err = serveOne(t, b, "other")
		if err == nil || !strings.Contains(err.Error(), `server "scripted"`) || !strings.Contains(err.Error(), "limits.sessions") {
			t.Errorf("Serve beyond MaxSessions = %v", err)
		}
		release()
		go func() { (<-peers).Run() }()
		if err := serveOne(t, b, "other"); err != nil {
			t.Errorf("Serve after a release = %v", err)
		}
	})
}

func TestM2L02DeleteOverHTTP(t *testing.T) {
	for _, tt := range []struct {
		name, session string
		status        int
		want          int
	}{
		{"with a session", "sess-1", http.StatusNoContent, 1},
		{"not supported", "sess-1", http.StatusMethodNotAllowed, 1},
		{"no session", "", 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := legacytest.NewHTTPServer(t)
			p.Session = tt.session
			p.On["tools/list"] = listOnce
			p.On["DELETE"] = func(w http.ResponseWriter, _ *http.Request, _ wire.Message) { w.WriteHeader(tt.status) }
			b := newTestBack(t, Options{Options: upstream.Options{URL: p.URL}})
			if err := serveOne(t, b, "a"); err != nil {
				t.Fatal(err)
			}
			if err := b.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			ends := p.Requests("DELETE")
			if len(ends) != tt.want {
				t.Fatalf("%d DELETEs, want %d", len(ends), tt.want)
			}
			for _, d := range ends {
				if d.Header.Get("Mcp-Session-Id") != tt.session || d.Header.Get("Mcp-Protocol-Version") != "2025-11-25" || d.Body != "" {
					t.Errorf("DELETE with %v %q", d.Header, d.Body)
				}
			}
		})
	}
}

// A server that does not answer its DELETE must not hold up the shutdown.
func TestM2L02ShutdownIsBounded(t *testing.T) {
	p := legacytest.NewHTTPServer(t)
	p.On["tools/list"] = listOnce
	p.On["DELETE"] = func(_ http.ResponseWriter, r *http.Request, _ wire.Message) { <-r.Context().Done() }
	b := newTestBack(t, Options{Options: upstream.Options{URL: p.URL}})
	if err := serveOne(t, b, "a"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	start := time.Now()
	if err := b.Close(ctx); err == nil {
		t.Error("Close = nil, want a time-out")
	}
	if took := time.Since(start); took > 2*time.Second {
		t.Errorf("Close took %v", took)
	}
	p.CloseClientConnections()
}

func TestM2L02SingleSessionsEndWithTheirCall(t *testing.T) {
	p := legacytest.NewHTTPServer(t)
	p.On["tools/list"] = listOnce
	b := newTestBack(t, Options{Options: upstream.Options{URL: p.URL}})
	for range 2 {
		req := ask("tools/list", "")
		req.Profile.Single = true
		if _, err := body(b.Serve(t.Context(), req, &backtest.Caller{})); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if i, d := len(p.Requests("initialize")), len(p.Requests("DELETE")); i != 2 || d != 2 {
		t.Errorf("%d sessions opened and %d ended, want 2 and 2", i, d)
	}
}

func TestCloseEndsCallsInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, peers := pipeBack(t, Options{})
		var err error
		go func() { _, err = body(b.Serve(t.Context(), ask("tools/call", `{"name":"x"}`), &backtest.Caller{})) }()
		p := <-peers
		p.Handshake(legacytest.Everything)
		p.Want("tools/call")
		if err := b.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if err == nil || !strings.Contains(err.Error(), "shutting down") {
			t.Errorf("Serve during Close = %v", err)
		}
		if !p.IsEnded() {
			t.Error("the connection is open after Close")
		}
		if err := serveOne(t, b, "a"); err == nil {
			t.Error("Serve after Close = nil error")
		}
	})
}

// A server that crashes as soon as it stands is not started in a loop.
func TestCrashLoopRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, peers := pipeBack(t, Options{})
		dials := 0
		go func() {
			for p := range peers {
				dials++
				p.Handshake(legacytest.Everything)
				p.Read()
				_ = p.Conn.Close()
			}
		}()
		start := time.Now()
		for time.Since(start) < time.Minute {
			if err := serveOne(t, b, "a"); err == nil {
				t.Fatal("Serve = nil error from a server that crashes")
			}
			time.Sleep(100 * time.Millisecond)
		}
		synctest.Wait()
		if dials < 3 || dials > 30 {
			t.Errorf("%d children in a minute of crashes, want a few", dials)
		}
	})
}

// The watch's hold on a session keeps it, whoever leaves first.
func TestWatchSessionHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, peers := pipeBack(t, Options{Idle: time.Second})
		go func() { (<-peers).Run() }()
		w, release, err := b.watchSession(t.Context(), ask("", "").Profile)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		select {
		case <-w.Done():
			t.Fatal("the session ended while a watch held it")
		default:
		}
		if o := w.Offers(); o != (watch.Offers{Lists: mcp.Lists{Tools: true, Prompts: true, Resources: true}, Subscribe: true, Channel: true}) {
			t.Errorf("offers = %+v", o)
		}
		if !w.Offers().Lists.Has(fanout.ToolsListChanged) {
			t.Error("tools are not offered")
		}
		release()
		time.Sleep(2 * time.Second)
		<-w.Done()
	})
}
