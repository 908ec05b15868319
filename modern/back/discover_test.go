package back

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/backtest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/settings"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// discoverResult is a result of server/discover.
func discoverResult(ttl int, scope string) string {
	return fmt.Sprintf(`{"resultType":"complete","supportedVersions":["2026-07-28","2025-11-25"],"capabilities":%s,"instructions":"be kind","ttlMs":%d,"cacheScope":%q,"_meta":{"io.modelcontextprotocol/serverInfo":%s}}`,
		upCaps, ttl, scope, upServerInfo)
}

// ofScope returns a request of a profile.
func ofScope(scope string) *mcp.Request {
	r := upRequest(spec.MethodDiscover, "")
	r.Profile.Scope = scope
	return r
}

func TestL2M01DescribesFromDiscover(t *testing.T) {
	p := newUpPeer(t)
	p.says("server/discover", strings.Replace(discoverResult(0, "private"), upCaps,
		`{"tools":{"listChanged":true},"resources":{"subscribe":true},"logging":{},"extensions":{"io.modelcontextprotocol/tasks":{},"com.example/a":{}},"experimental":{"hidden":{}}}`, 1))
	b := p.back(Options{Options: upstream.Options{Settings: settings.Server{Extensions: settings.Extensions{Hide: []string{"hidden"}}}}})
	d, err := b.Describe(t.Context(), ofScope("scripted/1"))
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"tools":{"listChanged":true},"resources":{"subscribe":true},"logging":{},"extensions":{"com.example/a":{}}}`
	if string(d.Capabilities) != want || string(d.ServerInfo) != upServerInfo || string(d.Instructions) != `"be kind"` {
		t.Errorf("Describe = %s %s %s, want %s and the server's own", d.Capabilities, d.ServerInfo, d.Instructions, want)
	}
	if b.Era() != spec.Modern || b.Err() != nil {
		t.Errorf("Era() = %v, Err() = %v, want a modern server that is up", b.Era(), b.Err())
	}
}

func TestL2M01CachedByTTLAndScope(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int32
		var scope atomic.Value
		scope.Store("private")
		b, end := bubbleBack(t, Options{}, func(w http.ResponseWriter, _ *http.Request, m wire.Message) {
			asked.Add(1)
			upAnswer(w, m.ID, discoverResult(60_000, scope.Load().(string)))
		})
		defer end()
		describe := func(name string, want int32, ttl int64) {
			t.Helper()
			d, err := b.Describe(t.Context(), ofScope(name))
			if err != nil || asked.Load() != want || d.Cache.TTL != ttl || d.Cache.Public != (scope.Load() == "public") {
				t.Errorf("Describe(%s) = %+v, %v after %d requests, want %d and %d ms", name, d, err, asked.Load(), want, ttl)
			}
		}
		describe("a", 1, 60_000)
		time.Sleep(20 * time.Second)
		describe("a", 1, 40_000)
		describe("b", 2, 60_000) // private: another's is not for it
		time.Sleep(40 * time.Second)
		describe("a", 3, 60_000) // 60 s have passed
		scope.Store("public")
		time.Sleep(time.Minute)
		describe("a", 4, 60_000)
		describe("c", 4, 60_000) // public: for everybody
	})
}

// What a server calls public is told to all profiles of a principal, and to no other
// principal: the server may be wrong, or answer each with its own credential.
func TestL2M01PublicIsOfOnePrincipal(t *testing.T) {
	p := newUpPeer(t)
	p.says("server/discover", discoverResult(60_000, "public"))
	b := p.back(Options{})
	for i, ask := range []struct {
		who   mcp.Principal
		scope string
		asked int
	}{{"alice", "a", 1}, {"alice", "b", 1}, {"bob", "c", 2}, {mcp.Anonymous, "d", 3}, {"", "e", 3}} {
		req := ofScope(ask.scope)
		req.Profile.Principal = ask.who
		if _, err := b.Describe(t.Context(), req); err != nil {
			t.Fatal(err)
		}
		if n := len(p.requests("server/discover")); n != ask.asked {
			t.Errorf("%d: the server was asked %d times, want %d", i, n, ask.asked)
		}
	}
}

func TestL2M01LastKnownAnswer(t *testing.T) {
	p := newUpPeer(t)
	p.says("server/discover", discoverResult(0, "private"))
	b := p.back(Options{})
	if _, err := b.Describe(t.Context(), ofScope("a")); err != nil {
		t.Fatal(err)
	}
	p.on["server/discover"] = func(w http.ResponseWriter, _ *http.Request, _ wire.Message) {
		http.Error(w, "no", http.StatusServiceUnavailable)
	}
	if d, err := b.Describe(t.Context(), ofScope("a")); err != nil || string(d.ServerInfo) != upServerInfo {
		t.Errorf("Describe while away = %v, %v, want the last known answer", d, err)
	}
	if _, err := b.Describe(t.Context(), ofScope("b")); err == nil || !strings.Contains(err.Error(), "503") {
		t.Errorf("Describe of a profile that never got one = %v, want the cause", err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	before := len(p.requests("server/discover"))
	if d, err := b.Describe(gone, ofScope("a")); err != nil || d == nil || len(p.requests("server/discover")) != before {
		t.Errorf("Describe with its context ended = %v, %v, want the last known answer and no request", d, err)
	}
}

func TestL2M01WhileStarting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ready := make(chan struct{})
		b, end := bubbleBack(t, Options{Options: upstream.Options{Settings: settings.Server{Timeouts: settings.Timeouts{Connect: 30 * time.Second}}}}, func(w http.ResponseWriter, r *http.Request, m wire.Message) {
			select {
			case <-ready:
				upAnswer(w, m.ID, discoverResult(0, "private"))
			case <-r.Context().Done():
			}
		})
		defer end()
		if err := b.Err(); !errors.Is(err, mcp.ErrStarting) {
			t.Errorf("Err() = %v, want ErrStarting", err)
		}
		start := time.Now()
		_, err := b.Describe(t.Context(), ofScope("a"))
		if took := time.Since(start); took != 30*time.Second || err == nil || !strings.Contains(err.Error(), `server "scripted"`) || !strings.Contains(err.Error(), "timeouts.connect") {
			t.Errorf("Describe = %v after %v, want an error that names the bound after 30s", err, took)
		}
		time.AfterFunc(29*time.Second, func() { close(ready) })
		if _, err := b.Describe(t.Context(), ofScope("a")); err != nil {
			t.Errorf("Describe = %v, want the answer of a server that takes 29s", err)
		}
	})
}

func TestL2M01DownIsSaidAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var alive atomic.Bool
		var dials atomic.Int32
		b, err := New(Options{Options: upstream.Options{Name: "scripted", ClientInfo: json.RawMessage(upInfo)}, Dial: func(context.Context) (transport.Conn, error) {
			if dials.Add(1); !alive.Load() {
				return nil, errors.New("no such program")
			}
			near, far := transport.NewPipe()
			go func() { // ends with the connection
				for {
					text, err := far.Read()
					if err != nil {
						return
					}
					m, _ := wire.Parse(text, wire.Options{})
					_ = far.Write(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, discoverResult(0, "private")))
				}
			}()
			return near, nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close(context.Background())
		b.Start()
		synctest.Wait()
		if err := b.Err(); err == nil || !strings.Contains(err.Error(), "no such program") {
			t.Errorf("Err() = %v, want the cause", err)
		}
		start, before := time.Now(), dials.Load()
		_, err = b.Describe(t.Context(), ofScope("a"))
		if took := time.Since(start); err == nil || took != 0 || errors.Is(err, mcp.ErrStarting) || dials.Load() != before || !strings.Contains(err.Error(), "no such program") {
			t.Errorf("Describe = %v after %v and %d more dials, want the cause at once", err, took, dials.Load()-before)
		}
		time.Sleep(5 * time.Minute)
		if n := dials.Load(); n < 8 || n > 20 {
			t.Errorf("%d dials in 5 minutes, want it tried with backoff up to 30 s", n)
		}
		alive.Store(true)
		_, _ = b.Describe(t.Context(), ofScope("a")) // somebody wants it
		time.Sleep(5 * time.Second)
		if err := b.Err(); err != nil {
			t.Errorf("Err() = %v, want the server found again soon", err)
		}
		if _, err := b.Describe(t.Context(), ofScope("a")); err != nil {
			t.Errorf("Describe = %v", err)
		}
	})
}

// TestCrashedCommandIsStartedAgain proves that a command which dies is started
// again though nobody asks for it, and that this is said.
func TestCrashedCommandIsStartedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		peers := make(chan *backtest.Peer, 8)
		var log bridgetest.Log
		b, err := New(Options{Options: upstream.Options{Name: "scripted", ClientInfo: json.RawMessage(upInfo), Logger: log.Logger()}, Dial: func(context.Context) (transport.Conn, error) {
			near, far := transport.NewPipe()
			peers <- backtest.NewPeer(t, far)
			return near, nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		b.Start()
		for range 2 {
			p := <-peers
			p.Result(p.Want("server/discover").ID, discoverResult(0, "private"))
			synctest.Wait()
			if err := b.Err(); err != nil {
				t.Errorf("Err() = %v", err)
			}
			time.Sleep(time.Minute)
			_ = p.Conn.Close()
		}
		p := <-peers
		if n := strings.Count(log.String(), "server is down"); n != 2 {
			t.Errorf("the log says %d times that the server is down, want 2:\n%s", n, &log)
		}
		b.Close(context.Background())
		_ = p.Conn.Close()
	})
}

func TestDoubtsItsEra(t *testing.T) {
	for _, tt := range []struct {
		name   string
		answer func(w http.ResponseWriter, m wire.Message)
		want   int
	}{
		{"modern", func(w http.ResponseWriter, m wire.Message) { upAnswer(w, m.ID, discoverResult(0, "private")) }, 0},
		{"a handler's error", func(w http.ResponseWriter, m wire.Message) { upFail(w, 400, m.ID, -32021, "") }, 0},
		{"away", func(w http.ResponseWriter, _ wire.Message) { http.Error(w, "no", http.StatusBadGateway) }, 0},
		{"only legacy versions", func(w http.ResponseWriter, m wire.Message) {
			upAnswer(w, m.ID, `{"supportedVersions":["2025-11-25"],"capabilities":{}}`)
		}, 1},
		{"no session", func(w http.ResponseWriter, _ wire.Message) { http.Error(w, "Bad Request: No valid session", 400) }, 1},
		{"unknown method", func(w http.ResponseWriter, m wire.Message) { upFail(w, 200, m.ID, -32601, "") }, 1},
		{"legacy revisions", func(w http.ResponseWriter, m wire.Message) {
			upFail(w, 400, m.ID, -32022, `{"supported":["2025-11-25"]}`)
		}, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newUpPeer(t)
			p.on["server/discover"] = func(w http.ResponseWriter, _ *http.Request, m wire.Message) { tt.answer(w, m) }
			var d doubts
			_, err := p.back(Options{Options: upstream.Options{Doubt: d.take}}).Describe(t.Context(), ofScope("a"))
			if d.count() != tt.want || (err == nil) != (tt.name == "modern") {
				t.Errorf("doubted %d times (%q) with %v, want %d", d.count(), d.all, err, tt.want)
			}
		})
	}
}

// A command that ends on server/discover, or says nothing, may have become one of the
// other era.
func TestU02SilentCommandIsDoubted(t *testing.T) {
	for name, want := range map[string]int{"silent": 1, "ends": 1, "answers": 0} {
		bridgetest.RunBubble(t, name, func(t *testing.T) {
			near, far := transport.NewPipe()
			var d doubts
			b, err := New(Options{Options: upstream.Options{Name: "s", ClientInfo: json.RawMessage(upInfo), Doubt: d.take}, Dial: func(context.Context) (transport.Conn, error) { return near, nil }})
			if err != nil {
				t.Fatal(err)
			}
			go func() { // ends with the play
				p := backtest.NewPeer(t, far)
				switch m := p.Want("server/discover"); name {
				case "ends":
					_ = far.Close()
				case "answers":
					p.Result(m.ID, discoverResult(0, "private"))
				}
			}()
			if err := b.discovery.discover(t.Context(), b.probeProfile()); (err == nil) != (name == "answers") {
				t.Errorf("discover = %v", err)
			}
			if d.count() != want {
				t.Errorf("doubted %d times (%q), want %d", d.count(), d.all, want)
			}
			_ = b.Close(context.Background())
			_ = far.Close()
		})
	}
	t.Run("cannot be started", func(t *testing.T) {
		var d doubts
		b := newUpBack(t, Options{Options: upstream.Options{Doubt: d.take}, Dial: func(context.Context) (transport.Conn, error) { return nil, errors.New("no such program") }})
		if err := b.discovery.discover(t.Context(), b.probeProfile()); err == nil || d.count() != 0 {
			t.Errorf("discover = %v, doubted %q, want an error that tells nothing of the era", err, d.all)
		}
	})
}

// Every result of this era says of which type it is.
func TestU02UntypedResultsAreDoubted(t *testing.T) {
	for result, want := range map[string]int{`{"tools":[]}`: 1, `{"resultType":"complete","tools":[]}`: 0} {
		p := newUpPeer(t)
		p.says("tools/list", result)
		var d doubts
		if res, err := p.back(Options{Options: upstream.Options{Doubt: d.take}}).Serve(t.Context(), upRequest("tools/list", `{}`), &backtest.Caller{}); err != nil {
			t.Errorf("Serve = %v", err)
		} else {
			res.Release()
		}
		if d.count() != want {
			t.Errorf("%s was doubted %d times (%q), want %d", result, d.count(), d.all, want)
		}
	}
}

func TestF04MethodNotFoundByCapability(t *testing.T) {
	p := newUpPeer(t) // knows no method but:
	p.says("server/discover", discoverResult(0, "private"))
	b := p.back(Options{})
	if _, err := b.Describe(t.Context(), ofScope("scripted/1")); err != nil {
		t.Fatal(err)
	}
	for method, refused := range map[string]bool{"tools/call": false, "completion/complete": true} {
		_, err := b.Serve(t.Context(), upRequest(method, `{"name":"t"}`), &backtest.Caller{})
		var refusal *mcp.Refusal
		if wireErr(t, err).Code != spec.CodeMethodNotFound || errors.As(err, &refusal) != refused {
			t.Errorf("%s: %v, a refusal: %v, want %v", method, err, !refused, refused)
		}
	}
}
