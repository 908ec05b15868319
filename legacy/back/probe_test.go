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
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/backtest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/legacytest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/settings"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

func probeOptions(url string) Options {
	return Options{Options: upstream.Options{Name: "odd", URL: url, ClientInfo: json.RawMessage(`{"name":"t","version":"0"}`), Settings: settings.Server{Timeouts: settings.Timeouts{Connect: 2 * time.Second}}}}
}

func TestU01HandshakeIsEvidence(t *testing.T) {
	p := legacytest.NewHTTPServer(t)
	p.Capabilities = `{"tools":{},"tasks":{},"vendor":{"n":1.0}}`
	pages := map[string]string{"": `{"tools":[{"name":"a"}],"nextCursor":"2"}`, `"2"`: `{"tools":[{"name":"b"}]}`}
	p.On["tools/list"] = func(w http.ResponseWriter, _ *http.Request, m wire.Message) {
		legacytest.AnswerJSON(w, m.ID, pages[string(wire.Get(m.Params, "cursor"))])
	}
	p.Get = func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}
	var begun []string
	v, err := Probe(t.Context(), probeOptions(p.URL), mcp.Probing{Lists: true, Begin: func(sent string) { begun = append(begun, sent) }})
	if err != nil || v.Era != spec.Legacy || len(v.Revisions) != 1 || v.Revisions[0] != spec.Rev20251125 || !v.Unasked {
		t.Fatalf("Probe = %+v, %v, want legacy, 2025-11-25, with a stream", v, err)
	}
	if got := string(v.Description.Capabilities); got != p.Capabilities {
		t.Errorf("Capabilities = %s, want them as they came", got)
	}
	if len(v.Lists) != 1 || len(v.Lists[0].Items) != 2 || v.Lists[0].Pages != 2 || v.Lists[0].Err != nil {
		t.Errorf("Lists = %+v, want the two pages of tools", v.Lists)
	}
	if want := "initialize in revision 2025-11-25, tools/list"; strings.Join(begun, ", ") != want {
		t.Errorf("steps = %q, want %s", begun, want)
	}
	if len(v.Steps) != 2 || v.Steps[0].Answer != "revision 2025-11-25" || v.Steps[1].Answer != "2 tools on 2 pages" {
		t.Errorf("Steps = %+v", v.Steps)
	}
}

func TestU01RefusalThatNamesAModernRevisionIsEvidence(t *testing.T) {
	for supported, want := range map[string]spec.Era{`["2026-07-28"]`: spec.Modern, `["2025-06-18","2099-01-01"]`: spec.Unknown} {
		p := legacytest.NewHTTPServer(t)
		p.On["initialize"] = func(w http.ResponseWriter, _ *http.Request, m wire.Message) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32022,"message":"no","data":{"supported":%s}}}`, m.ID, supported)
		}
		if v, err := Probe(t.Context(), probeOptions(p.URL), mcp.Probing{}); err != nil || v.Era != want {
			t.Errorf("Probe of a server that supports %s = %+v, %v, want era %v", supported, v, err, want)
		}
	}
}

func TestU01RefusedHandshakeIsNone(t *testing.T) {
	for _, tt := range []struct {
		name   string
		answer func(w http.ResponseWriter, m wire.Message)
		status int
		reason string
	}{
		{"401", func(w http.ResponseWriter, _ wire.Message) { w.WriteHeader(401) }, 401, "401 Unauthorized"},
		{"error", func(w http.ResponseWriter, m wire.Message) {
			_, _ = w.Write([]byte(`{"jsonrpc":"2.0","id":` + m.ID.String() + `,"error":{"code":-32022,"message":"modern only"}}`))
		}, 0, "modern only"},
		{"an unknown revision", func(w http.ResponseWriter, m wire.Message) {
			legacytest.AnswerJSON(w, m.ID, `{"protocolVersion":"2099-01-01","capabilities":{}}`)
		}, 0, "2099-01-01"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := legacytest.NewHTTPServer(t)
			p.On["initialize"] = func(w http.ResponseWriter, _ *http.Request, m wire.Message) {
				w.Header().Set("Content-Type", "application/json")
				tt.answer(w, m)
			}
			v, err := Probe(t.Context(), probeOptions(p.URL), mcp.Probing{Lists: true})
			if err != nil || v.Era != spec.Unknown || v.Status != tt.status || !strings.Contains(v.Reason, tt.reason) || len(v.Steps) != 1 {
				t.Errorf("Probe = %+v, %v, want no evidence, %d and %q", v, err, tt.status, tt.reason)
			}
		})
	}
}

func TestProbeIsBounded(t *testing.T) {
	p := legacytest.NewHTTPServer(t)
	p.On["initialize"] = func(_ http.ResponseWriter, r *http.Request, _ wire.Message) { <-r.Context().Done() }
	o := probeOptions(p.URL)
	o.Settings.Timeouts.Connect = 50 * time.Millisecond
	v, err := Probe(t.Context(), o, mcp.Probing{})
	if err != nil || v.Era != spec.Unknown || v.Took > time.Second || !strings.Contains(v.Reason, "timeouts.connect") {
		t.Errorf("Probe = %+v, %v, want no evidence after 50ms", v, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Probe(ctx, o, mcp.Probing{}); !errors.Is(err, context.Canceled) {
		t.Errorf("Probe = %v, want that it was cancelled", err)
	}
}

// A server that was replaced by one of the other era answers with codes that only
// those have, where there is no session to lose.
func TestU02ModernErrorsAreDoubted(t *testing.T) {
	for _, tt := range []struct {
		name   string
		status int
		code   int
		id     bool
		want   int
	}{
		{"-32022", 400, -32022, true, 1},
		{"-32022 without the id", 400, -32022, false, 1},
		{"-32020 with 200", 200, -32020, true, 1},
		{"-32601", 404, -32601, true, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := legacytest.NewHTTPServer(t)
			p.Session = ""
			p.On["tools/list"] = func(w http.ResponseWriter, _ *http.Request, m wire.Message) {
				id := "null"
				if tt.id {
					id = m.ID.String()
				}
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(tt.status)
				fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":"no"}}`, id, tt.code)
			}
			var doubts atomic.Int32
			b := newTestBack(t, Options{Options: upstream.Options{URL: p.URL, Doubt: func(string) { doubts.Add(1) }}})
			if _, err := body(b.Serve(t.Context(), ask("tools/list", ""), &backtest.Caller{})); err == nil {
				t.Error("Serve = nil error")
			}
			if n := int(doubts.Load()); n != tt.want {
				t.Errorf("doubted %d times, want %d", n, tt.want)
			}
		})
	}
}

// A command that leaves the handshake unanswered may have become one of the other
// era; one that can't be started tells nothing.
func TestU02UnansweredHandshakeIsDoubted(t *testing.T) {
	for name, want := range map[string]int32{"silent": 1, "ends": 1, "cannot be started": 0} {
		bridgetest.RunBubble(t, name, func(t *testing.T) {
			near, far := transport.NewPipe()
			var doubts atomic.Int32
			b, err := New(Options{Options: upstream.Options{Name: "s", ClientInfo: json.RawMessage(testInfo), Doubt: func(string) { doubts.Add(1) }},
				Dial: func(context.Context) (transport.Conn, error) {
					if name == "cannot be started" {
						return nil, errors.New("no such program")
					}
					return near, nil
				}})
			if err != nil {
				t.Fatal(err)
			}
			go func() { // ends with what it reads, or the connection
				if _, err := far.Read(); err == nil && name == "ends" {
					_ = far.Close()
				}
			}()
			if _, err := b.connect(t.Context(), b.probeProfile()); err == nil {
				t.Error("connect succeeded")
			}
			if n := doubts.Load(); n != want {
				t.Errorf("doubted %d times, want %d", n, want)
			}
			_ = b.Close(context.Background())
			_ = far.Close()
		})
	}
}
