package back

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/backtest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/quirks"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

const (
	regionTool = `{"name":"query","inputSchema":{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"},"deep":{"type":"object","properties":{"n":{"type":"integer","x-mcp-header":"N"}}}}}}`
	plainTool  = `{"name":"plain","inputSchema":{"type":"object"}}`
)

func toolPage(tools ...string) string {
	return `{"resultType":"complete","tools":[` + strings.Join(tools, ",") + `],"ttlMs":0,"cacheScope":"private"}`
}

// strictly answers tools/call as a server does that checks Mcp-Param headers.
func strictly(want map[string]string) func(http.ResponseWriter, *http.Request, wire.Message) {
	return func(w http.ResponseWriter, r *http.Request, m wire.Message) {
		for name := range r.Header {
			if strings.HasPrefix(name, "Mcp-Param-") && want[name] == "" {
				upFail(w, 400, m.ID, -32020, "")
				return
			}
		}
		for name, value := range want {
			if got := r.Header[name]; len(got) != 1 || got[0] != value {
				upFail(w, 400, m.ID, -32020, "")
				return
			}
		}
		upAnswer(w, m.ID, said("ok"))
	}
}

func TestL2M11HeadersFromLearntSchemas(t *testing.T) {
	p := newUpPeer(t)
	p.says("tools/list", toolPage(regionTool, plainTool))
	p.on["tools/call"] = strictly(map[string]string{"Mcp-Param-Region": "=?base64?w7xi?=", "Mcp-Param-N": "42"})
	b := p.back(Options{})
	if body, err := upBody(b.Serve(t.Context(), upRequest("tools/list", ""), &backtest.Caller{})); err != nil || body != toolPage(regionTool, plainTool) {
		t.Fatalf("tools/list = %s, %v, want the server's own bytes", body, err)
	}
	call := upRequest("tools/call", `{"name":"query","arguments":{"region":"üb","deep":{"n":42.0}}}`)
	if body, err := upBody(b.Serve(t.Context(), call, &backtest.Caller{})); err != nil || body != said("ok") {
		t.Errorf("tools/call = %s, %v, want the result", body, err)
	}
	if calls, lists := len(p.requests("tools/call")), len(p.requests("tools/list")); calls != 1 || lists != 1 {
		t.Errorf("%d calls and %d lists, want one of each", calls, lists)
	}
	// What one profile learnt tells nothing to another.
	other := upRequest("tools/call", `{"name":"query","arguments":{"region":"üb"}}`)
	other.Profile.Scope = "scripted/2"
	for _, f := range b.call(1, other, envelope{}, nil).Fields {
		if f.Name == "Mcp-Param-Region" {
			t.Errorf("another profile's header %v, want none that it did not learn", f)
		}
	}
}

func TestL2M11RefreshesOnMismatch(t *testing.T) {
	for _, tt := range []struct {
		name         string
		pages        []string
		want         map[string]string
		calls, lists int
		ok           bool
	}{
		{"never listed", []string{toolPage(regionTool)}, map[string]string{"Mcp-Param-Region": "eu"}, 2, 1, true},
		{"on the second page", []string{strings.Replace(toolPage(plainTool), `"ttlMs"`, `"nextCursor":"c","ttlMs"`, 1), toolPage(regionTool)}, map[string]string{"Mcp-Param-Region": "eu"}, 2, 2, true},
		{"the schema is of no help", []string{toolPage(plainTool)}, map[string]string{"Mcp-Param-Region": "eu"}, 1, 1, false},
		{"wrong after all", []string{toolPage(regionTool)}, map[string]string{"Mcp-Param-Region": "never"}, 2, 1, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newUpPeer(t)
			p.on["tools/list"] = func(w http.ResponseWriter, _ *http.Request, m wire.Message) {
				upAnswer(w, m.ID, tt.pages[len(p.requests("tools/list"))-1])
			}
			p.on["tools/call"] = strictly(tt.want)
			_, err := upBody(p.back(Options{}).Serve(t.Context(), upRequest("tools/call", `{"name":"query","arguments":{"region":"eu"}}`), &backtest.Caller{}))
			if (err == nil) != tt.ok || len(p.requests("tools/call")) != tt.calls || len(p.requests("tools/list")) != tt.lists {
				t.Errorf("Serve = %v after %d calls and %d lists, want ok = %v, %d, %d", err,
					len(p.requests("tools/call")), len(p.requests("tools/list")), tt.ok, tt.calls, tt.lists)
			}
			if !tt.ok && wireErr(t, err).Code != spec.CodeInternal {
				t.Errorf("error %v, want the gateway's, not -32020", err)
			}
		})
	}
}

func TestL2M11ForgetsOnListChanged(t *testing.T) {
	p := newUpPeer(t)
	p.says("tools/list", toolPage(regionTool))
	p.on["subscriptions/listen"] = func(w http.ResponseWriter, r *http.Request, m wire.Message) {
		send := upStream(w)
		send(`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{"toolsListChanged":true},"_meta":{"io.modelcontextprotocol/subscriptionId":%s}}}`, m.ID)
		send(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":%s}}}`, m.ID)
		<-r.Context().Done()
	}
	b := p.back(Options{})
	req := upRequest("tools/list", "")
	if _, err := upBody(b.Serve(t.Context(), req, &backtest.Caller{})); err != nil {
		t.Fatal(err)
	}
	if len(b.tools.Mirrors("scripted/1", "query")) != 2 {
		t.Fatal("nothing was learnt")
	}
	s, err := b.openListen(t.Context(), req.Profile, mcp.Filter{Tools: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Next(); err != nil {
		t.Fatal(err)
	}
	if got := b.tools.Mirrors("scripted/1", "query"); got != nil {
		t.Errorf("after list_changed %v is still known", got)
	}
}

// Which are invalid is proven in modern/protocol.
func TestL2M11InvalidToolsAreLeftOut(t *testing.T) {
	prop := func(schema string) string {
		return fmt.Sprintf(`{"type":"object","properties":{"a":%s}}`, schema)
	}
	for _, tt := range []struct {
		name, schema string
		valid        bool
	}{
		{"string", prop(`{"type":"string","x-mcp-header":"A"}`), true},
		{"no token", prop(`{"type":"string","x-mcp-header":"a b"}`), false},
		{"twice", `{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"A"},"b":{"type":"string","x-mcp-header":"a"}}}`, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tool := fmt.Sprintf(`{"name":"odd","inputSchema":%s}`, tt.schema)
			p := newUpPeer(t)
			p.says("tools/list", toolPage(plainTool, tool, regionTool))
			var log bridgetest.Log
			body, err := upBody(p.back(Options{Options: upstream.Options{Logger: log.Logger()}}).Serve(t.Context(), upRequest("tools/list", ""), &backtest.Caller{}))
			want := toolPage(plainTool, regionTool)
			if tt.valid {
				want = toolPage(plainTool, tool, regionTool)
			}
			if err != nil || body != want {
				t.Errorf("tools/list = %s, %v, want %s", body, err, want)
			}
			if warned := strings.Contains(log.String(), "level=WARN") && strings.Contains(log.String(), "odd"); warned == tt.valid {
				t.Errorf("a warning: %v, want %v: %s", warned, !tt.valid, &log)
			}
		})
	}
}

func TestL2M10NameOutsideASCII(t *testing.T) {
	p := newUpPeer(t)
	p.rawNames = true
	p.on["prompts/get"] = func(w http.ResponseWriter, r *http.Request, m wire.Message) {
		if name, _ := wire.GetString(m.Params, "name"); r.Header.Get("Mcp-Name") != name {
			upFail(w, 400, m.ID, -32020, "")
			return
		}
		upAnswer(w, m.ID, `{"messages":[]}`)
	}
	met := quirks.New(quirks.Options{})
	b := p.back(Options{Options: upstream.Options{Quirks: met}})
	for i, want := range []string{"=?base64?" + base64.StdEncoding.EncodeToString([]byte("été")) + "?= été", "été"} {
		before := len(p.requests("prompts/get"))
		if _, err := upBody(b.Serve(t.Context(), upRequest("prompts/get", `{"name":"été"}`), &backtest.Caller{})); err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, r := range p.requests("prompts/get")[before:] {
			names = append(names, r.header.Get("Mcp-Name"))
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("request %d: Mcp-Name was %q, want %q", i+1, got, want)
		}
	}
	// A name that no header can carry raw stays in base64.
	_, err := b.Serve(t.Context(), upRequest("prompts/get", `{"name":"é\n"}`), &backtest.Caller{})
	last := p.requests("prompts/get")
	if got := last[len(last)-1].header.Get("Mcp-Name"); err == nil || !strings.HasPrefix(got, "=?base64?") {
		t.Errorf("Mcp-Name = %q, %v, want base64 and the server's refusal", got, err)
	}
	if got := met.Meetings(); len(got) != 1 || got[0] != (quirks.Meeting{Quirk: quirks.EncodedName, Count: 1}) {
		t.Errorf("met %v, want that the encoded name was refused, once", got)
	}
}
