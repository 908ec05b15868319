package back

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/backtest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/legacytest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/quirks"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// An oddServer answers initialize with what is no revision of a handshake.
type oddServer struct {
	*legacytest.HTTPServer
	answer string // the result of initialize
	// refuse answers what names 2026-07-28; nil serves it.
	refuse func(w http.ResponseWriter, m wire.Message)
}

func newOddServer(t *testing.T, answer string) *oddServer {
	p := &oddServer{HTTPServer: legacytest.NewHTTPServer(t), answer: answer}
	p.On["initialize"] = func(w http.ResponseWriter, _ *http.Request, m wire.Message) {
		w.Header().Set("Mcp-Session-Id", "sess-1")
		legacytest.AnswerJSON(w, m.ID, p.answer)
	}
	serve := func(result string) func(http.ResponseWriter, *http.Request, wire.Message) {
		return func(w http.ResponseWriter, r *http.Request, m wire.Message) {
			if p.refuse != nil && r.Header.Get(spec.HeaderProtocolVersion) == "2026-07-28" {
				p.refuse(w, m)
				return
			}
			legacytest.AnswerJSON(w, m.ID, result)
		}
	}
	p.On["tools/list"], p.On["ping"] = serve(`{"tools":[]}`), serve(`{}`)
	return p
}

const (
	modernAnswer = `{"protocolVersion":"2026-07-28","capabilities":{"tools":{}},"serverInfo":{"name":"odd","version":"1"}}`
	noRevision   = `{"capabilities":{"tools":{}},"serverInfo":{"name":"odd","version":"1"}}`
)

// recorded returns options whose quirks are recorded.
func recorded(url string, off func(string) bool) (Options, *quirks.Recorder) {
	met := quirks.New(quirks.Options{Off: off})
	return Options{Options: upstream.Options{URL: url, Quirks: met}}, met
}

func TestQ05ServerRevision(t *testing.T) {
	status := func(body string) func(http.ResponseWriter, wire.Message) {
		return func(w http.ResponseWriter, m wire.Message) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			_, _ = fmt.Fprint(w, strings.ReplaceAll(body, "ID", m.ID.String()))
		}
	}
	for _, tt := range []struct {
		name, answer string
		refuse       func(http.ResponseWriter, wire.Message)
		header       string // of the list
		sessions     int
	}{
		{"a modern revision", modernAnswer, nil, "2026-07-28", 1},
		{"none", noRevision, nil, "2025-11-25", 1},
		{"one that is no text", strings.Replace(modernAnswer, `"2026-07-28"`, "2026", 1), nil, "2025-11-25", 1},
		{"one that is refused", modernAnswer, status("no such version"), "2025-11-25", 2},
		{"one that is refused with an error", modernAnswer, status(`{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"no such version"}}`), "2025-11-25", 2},
		{"one that is refused with an error of the request", modernAnswer, status(`{"jsonrpc":"2.0","id":ID,"error":{"code":-32600,"message":"no such version"}}`), "2025-11-25", 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newOddServer(t, tt.answer)
			p.refuse = tt.refuse
			o, met := recorded(p.URL, nil)
			b := newTestBack(t, o)
			for _, scope := range []string{"a", "b"} {
				req := ask("tools/list", "")
				req.Profile.Scope = scope
				if got, err := body(b.Serve(t.Context(), req, &backtest.Caller{})); err != nil || got != `{"tools":[]}` {
					t.Fatalf("Serve = %s, %v, want the list", got, err)
				}
				all := p.Requests("tools/list")
				if got := all[len(all)-1].Header.Get("Mcp-Protocol-Version"); got != tt.header {
					t.Errorf("MCP-Protocol-Version = %q, want %q", got, tt.header)
				}
			}
			if n := len(p.Requests("initialize")); n != tt.sessions+1 {
				t.Errorf("%d sessions were opened, want %d and one of what is known then", n, tt.sessions)
			}
			if got, want := fmt.Sprint(met.Meetings()), "[{server-revision  2}]"; got != want {
				t.Errorf("met %s, want %s", got, want)
			}
			d, err := b.Describe(t.Context(), ask("server/discover", ""))
			if err != nil || !strings.Contains(string(d.ServerInfo), "odd") {
				t.Errorf("Describe = %v, %v, want what the server said", d, err)
			}
		})
	}
}

// A server is not used as what it did not say, unless that works.
func TestQ05ServerRevisionHasToWork(t *testing.T) {
	for name, refuse := range map[string]func(p *oddServer){
		"neither a list nor a ping": func(p *oddServer) {
			no := func(w http.ResponseWriter, _ *http.Request, m wire.Message) {
				w.Header().Set("Content-Type", "application/json")
				_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32022,"message":"no"}}`, m.ID)
			}
			p.On["tools/list"], p.On["ping"] = no, no
		},
		"nothing at all": func(p *oddServer) {
			no := func(w http.ResponseWriter, _ *http.Request, _ wire.Message) { w.WriteHeader(http.StatusBadRequest) }
			p.On["tools/list"], p.On["ping"] = no, no
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newOddServer(t, modernAnswer)
			refuse(p)
			o, met := recorded(p.URL, nil)
			_, err := body(newTestBack(t, o).Serve(t.Context(), ask("tools/list", ""), &backtest.Caller{}))
			if err == nil || !strings.Contains(err.Error(), `answered initialize with revision "2026-07-28"`) || len(met.Meetings()) > 0 {
				t.Errorf("Serve = %v and %v, want an error that names the revision, and nothing met", err, met.Meetings())
			}
		})
	}
}

// Without tools a ping has to work.
func TestQ05ServerRevisionByPing(t *testing.T) {
	p := newOddServer(t, strings.Replace(modernAnswer, `"tools":{}`, `"prompts":{}`, 1))
	p.On["prompts/list"] = func(w http.ResponseWriter, _ *http.Request, m wire.Message) {
		legacytest.AnswerJSON(w, m.ID, `{"prompts":[]}`)
	}
	o, met := recorded(p.URL, nil)
	if _, err := body(newTestBack(t, o).Serve(t.Context(), ask("prompts/list", ""), &backtest.Caller{})); err != nil || len(met.Meetings()) != 1 {
		t.Errorf("Serve = %v and %v, want the list and the quirk", err, met.Meetings())
	}
	if len(p.Requests("ping")) != 1 || len(p.Requests("tools/list")) != 0 {
		t.Errorf("the server got %s, want a ping", p.Order())
	}
}

// With the quirk off the handshake fails, as with an unknown revision.
func TestQ05ServerRevisionOff(t *testing.T) {
	for _, answer := range []string{modernAnswer, noRevision} {
		p := newOddServer(t, answer)
		o, met := recorded(p.URL, func(name string) bool { return name == "server-revision" })
		_, err := body(newTestBack(t, o).Serve(t.Context(), ask("tools/list", ""), &backtest.Caller{}))
		if err == nil || !strings.Contains(err.Error(), "answered initialize with revision") || len(p.Requests("tools/list")) > 0 || len(met.Meetings()) > 0 {
			t.Errorf("Serve = %v and %v, want it refused as before", err, met.Meetings())
		}
	}
}

// Over a connection there are no headers.
func TestQ05ServerRevisionOnAPipe(t *testing.T) {
	met := quirks.New(quirks.Options{})
	b, peers := pipeBack(t, Options{Options: upstream.Options{Quirks: met}})
	go func() {
		p := <-peers
		p.Result(p.Want("initialize").ID, modernAnswer)
		p.Want("notifications/initialized")
		for range 2 {
			p.Result(p.Want("tools/list").ID, `{"tools":[]}`)
		}
	}()
	if _, err := body(b.Serve(t.Context(), ask("tools/list", ""), &backtest.Caller{})); err != nil || len(met.Meetings()) != 1 {
		t.Errorf("Serve = %v and %v, want the list and the quirk", err, met.Meetings())
	}
}

// A probe says as what the server is used.
func TestQ05ProbeNamesTheRevision(t *testing.T) {
	p := newOddServer(t, modernAnswer)
	v, err := Probe(t.Context(), probeOptions(p.URL), mcp.Probing{})
	if err != nil || v.Era != spec.Legacy || len(v.Steps) != 1 || !strings.Contains(v.Steps[0].Answer, "2026-07-28") || !strings.Contains(v.Steps[0].Means, "2025-11-25") {
		t.Errorf("Probe = %+v, %v, want legacy, with both revisions in its step", v, err)
	}
}
