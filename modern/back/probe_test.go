package back

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/backtest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

func TestU01ProbeOverHTTP(t *testing.T) {
	text := func(status int, kind, body string) func(http.ResponseWriter, wire.Message) {
		return func(w http.ResponseWriter, _ wire.Message) {
			w.Header().Set("Content-Type", kind)
			w.WriteHeader(status)
			io.WriteString(w, body)
		}
	}
	fail := func(status int, code int64, data string) func(http.ResponseWriter, wire.Message) {
		return func(w http.ResponseWriter, m wire.Message) { upFail(w, status, m.ID, code, data) }
	}
	for _, tt := range []struct {
		name   string
		answer func(w http.ResponseWriter, m wire.Message)
		want   spec.Era
		reason string // in it
	}{
		{"discovery", func(w http.ResponseWriter, m wire.Message) { upAnswer(w, m.ID, discoverResult(9, "public")) }, spec.Modern, "answered server/discover"},
		{"discovery as a stream", func(w http.ResponseWriter, m wire.Message) {
			upStream(w)(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, discoverResult(0, "private"))
		}, spec.Modern, ""},
		{"only legacy versions", func(w http.ResponseWriter, m wire.Message) {
			upAnswer(w, m.ID, `{"supportedVersions":["2025-11-25","2025-06-18"],"capabilities":{}}`)
		}, spec.Legacy, "2025-11-25"},
		{"a result of another kind", func(w http.ResponseWriter, m wire.Message) { upAnswer(w, m.ID, `{}`) }, spec.Legacy, "no revisions"},
		{"-32022 with a modern revision, always", fail(400, -32022, `{"supported":["2026-07-28"]}`), spec.Modern, "-32022"},
		{"-32022 with legacy revisions", fail(400, -32022, `{"supported":["2025-11-25"]}`), spec.Legacy, "-32022"},
		{"-32022 without data", fail(400, -32022, ""), spec.Legacy, ""},
		{"-32020", fail(400, -32020, ""), spec.Modern, ""},
		{"-32021", fail(400, -32021, `{}`), spec.Modern, ""},
		{"-32020 under 500", fail(500, -32020, ""), spec.Modern, ""},
		{"200 with an error", fail(200, -32601, ""), spec.Legacy, "-32601"},
		{"404 with an error", fail(404, -32601, ""), spec.Legacy, ""},
		{"400 with an error without id", text(400, "application/json", `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"No valid session"}}`), spec.Legacy, "No valid session"},
		{"404 with HTML", text(404, "text/html", "<h1>Not Found</h1>"), spec.Legacy, "404"},
		{"405", text(405, "text/plain", ""), spec.Legacy, "405"},
		{"406", text(406, "text/plain", ""), spec.Legacy, "406"},
		{"200 with HTML", text(200, "text/html", "<h1>It works</h1>"), spec.Legacy, "text/html"},
		{"202", text(202, "text/plain", ""), spec.Legacy, "without answering"},
		{"a stream without an answer", text(200, "text/event-stream", ": bye\n\n"), spec.Legacy, "without a response"},
		{"401", text(401, "text/plain", "who?"), spec.Unknown, "401 Unauthorized"},
		{"401 with an error", fail(401, -32001, ""), spec.Unknown, "401"},
		{"403", text(403, "text/plain", ""), spec.Unknown, "403"},
		{"429", text(429, "text/plain", ""), spec.Unknown, "429"},
		{"429 with an error", fail(429, -32603, ""), spec.Unknown, "429"},
		{"500", text(500, "text/html", "<h1>oops</h1>"), spec.Unknown, "500"},
		{"500 with an error", fail(500, -32603, ""), spec.Unknown, "500"},
		{"502", text(502, "text/html", ""), spec.Unknown, "502"},
		{"a broken connection", func(http.ResponseWriter, wire.Message) { panic(http.ErrAbortHandler) }, spec.Unknown, ""},
		{"a redirect", text(307, "text/plain", ""), spec.Unknown, "redirect"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newUpPeer(t)
			p.on["server/discover"] = func(w http.ResponseWriter, _ *http.Request, m wire.Message) { tt.answer(w, m) }
			v, err := Probe(t.Context(), Options{Options: upstream.Options{Name: "odd", URL: p.URL, ClientInfo: json.RawMessage(upInfo)}}, mcp.Probing{})
			if err != nil || v.Era != tt.want || v.Reason == "" || !strings.Contains(v.Reason, tt.reason) {
				t.Errorf("Probe = %v, %q, %v, want %v and %q", v.Era, v.Reason, err, tt.want, tt.reason)
			}
			if (v.Description != nil) != strings.HasPrefix(tt.name, "discovery") {
				t.Errorf("description %+v of %s", v.Description, tt.name)
			}
		})
	}
}

// TestU01ProbeRenegotiates: some servers refuse the first request whatever it is.
func TestU01ProbeRenegotiates(t *testing.T) {
	p := newUpPeer(t)
	p.on["server/discover"] = func(w http.ResponseWriter, _ *http.Request, m wire.Message) {
		if len(p.requests("server/discover")) == 1 {
			upFail(w, 400, m.ID, -32022, `{"supported":["2026-07-28"],"requested":"2026-07-28"}`)
			return
		}
		upAnswer(w, m.ID, discoverResult(9, "public"))
	}
	v, err := Probe(t.Context(), Options{Options: upstream.Options{Name: "odd", URL: p.URL, ClientInfo: json.RawMessage(upInfo)}}, mcp.Probing{})
	if err != nil || v.Era != spec.Modern || v.Description == nil || v.Description.Cache.TTL != 9 || !v.Description.Cache.Public || len(v.Revisions) != 2 {
		t.Errorf("Probe = %+v, %v, want modern with the description of the second answer", v, err)
	}
}

func TestU01ProbeUnreachable(t *testing.T) {
	p := newUpPeer(t)
	url := p.URL
	p.Close()
	v, err := Probe(t.Context(), Options{Options: upstream.Options{Name: "odd", URL: url, ClientInfo: json.RawMessage(upInfo)}}, mcp.Probing{})
	if err != nil || v.Era != spec.Unknown || !strings.Contains(v.Reason, "refused") {
		t.Errorf("Probe = %+v, %v, want no evidence", v, err)
	}
	if _, err := Probe(t.Context(), Options{Options: upstream.Options{Name: "odd"}}, mcp.Probing{}); err == nil {
		t.Error("Probe without URL and Dial succeeded")
	}
}

func TestU01ProbeOfACommand(t *testing.T) {
	for _, tt := range []struct {
		name string
		play func(p *backtest.Peer, m wire.Message)
		want spec.Era
		took time.Duration
	}{
		{"discovery", func(p *backtest.Peer, m wire.Message) { p.Result(m.ID, discoverResult(0, "private")) }, spec.Modern, 0},
		{"unknown method", func(p *backtest.Peer, m wire.Message) {
			p.Write(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"Method not found"}}`, m.ID)
		}, spec.Legacy, 0},
		{"not initialized", func(p *backtest.Peer, m wire.Message) {
			p.Write(`{"jsonrpc":"2.0","id":%s,"error":{"code":0,"message":"method invalid during session initialization"}}`, m.ID)
		}, spec.Legacy, 0},
		{"noise, then discovery", func(p *backtest.Peer, m wire.Message) {
			p.Write(`{"level":"info","msg":"ready"}`)
			p.Write(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}`)
			p.Result(m.ID, discoverResult(0, "private"))
		}, spec.Modern, 0},
		{"silence", func(*backtest.Peer, wire.Message) {}, spec.Legacy, 10 * time.Second},
		{"exit", func(p *backtest.Peer, _ wire.Message) { _ = p.Conn.Close() }, spec.Legacy, 0},
		{"an answer nobody can read", func(p *backtest.Peer, m wire.Message) {
			p.Write(`{"jsonrpc":"2.0","id":%s,"result":{},"error":1}`, m.ID)
		}, spec.Legacy, 0},
	} {
		bridgetest.RunBubble(t, tt.name, func(t *testing.T) {
			near, far := transport.NewPipe()
			go func() { // ends with the play
				p := backtest.NewPeer(t, far)
				tt.play(p, p.Want("server/discover"))
			}()
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			v, err := Probe(ctx, Options{Options: upstream.Options{Name: "odd", ClientInfo: json.RawMessage(upInfo)}, Dial: func(context.Context) (transport.Conn, error) { return near, nil }}, mcp.Probing{})
			if err != nil || v.Era != tt.want || v.Took != tt.took || v.Reason == "" {
				t.Errorf("Probe = %+v, %v, want %v after %v", v, err, tt.want, tt.took)
			}
			if _, err := near.Read(); err != transport.ErrClosed {
				t.Errorf("the connection after the probe: %v, want it closed", err)
			}
			far.Close()
		})
	}
	t.Run("cannot be started", func(t *testing.T) {
		v, err := Probe(t.Context(), Options{Options: upstream.Options{Name: "odd", ClientInfo: json.RawMessage(upInfo)},
			Dial: func(context.Context) (transport.Conn, error) { return nil, errors.New("no such program") }}, mcp.Probing{})
		if err != nil || v.Era != spec.Unknown || !strings.Contains(v.Reason, "no such program") {
			t.Errorf("Probe = %+v, %v, want no evidence, and the cause", v, err)
		}
	})
	t.Run("nobody waits", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := Probe(ctx, Options{Options: upstream.Options{Name: "odd", ClientInfo: json.RawMessage(upInfo), URL: "http://127.0.0.1:1"}}, mcp.Probing{}); !errors.Is(err, context.Canceled) {
			t.Errorf("Probe = %v, want that it was cancelled", err)
		}
	})
}

func TestU01ProbeOfASilentURL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, end := bubbleBack(t, Options{}, func(w http.ResponseWriter, r *http.Request, _ wire.Message) { <-r.Context().Done() })
		defer end()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		start := time.Now()
		v, err := Probe(ctx, Options{Options: upstream.Options{Name: "odd", ClientInfo: json.RawMessage(upInfo), URL: b.opts.URL, RoundTripper: b.opts.RoundTripper}}, mcp.Probing{})
		if took := time.Since(start); err != nil || v.Era != spec.Unknown || took != 10*time.Second || !strings.Contains(v.Reason, "in time") {
			t.Errorf("Probe = %+v, %v after %v, want no evidence after 10s", v, err, took)
		}
	})
}
