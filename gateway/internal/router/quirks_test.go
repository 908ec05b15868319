package router

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/quirks"
	"github.com/mcpbridge/mcpbridge/internal/settings"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	legacyback "github.com/mcpbridge/mcpbridge/legacy/back"
)

// A deviation is one request of a client as it is on the wire, and what it gets.
type deviation struct {
	name   string
	method string // HTTP; empty for POST
	body   string
	// header is what is sent beside the body; SESSION stands for the id of a session of
	// 2025-06-18, EVENTS for one of HTTP+SSE.
	header map[string]string
	path   string // empty for /mcp/peer

	quirk      quirks.Quirk
	status     int    // tolerated
	text       string // in the body of that
	strict     int    // with the quirk off; zero if nothing differs, because nothing is tolerated
	strictCode int64
}

// The messages of a legacy client.
const (
	legacyList   = `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`
	legacyCall   = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo","arguments":{}}}`
	initialized  = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	olderOpening = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"claude-code","version":"2.1"}}}`
)

// quirkRig returns a rig whose quirks are recorded, and of which those of off are not tolerated.
func quirkRig(t *testing.T, off settings.Quirks) (*rig, *quirks.Recorder) {
	var met *quirks.Recorder
	peer := newPeer(t)
	r := newRig(t, func(o *Options) {
		met = quirks.New(quirks.Options{Server: "peer", Off: off.Off, Logger: o.Logger})
		o.Servers[0].Quirks = met
		o.Servers[0].Open = func(c mcp.Changes) (mcp.Back, error) {
			return legacyback.New(legacyback.Options{Options: upstream.Options{
				Name: "peer", URL: peer.URL, Changes: c, Logger: o.Logger, Quirks: met, ClientInfo: []byte(`{"name":"mcpbridge","version":"test"}`),
			}})
		}
	})
	r.peer = peer
	r.peer.answer(spec.MethodToolsList, `{"tools":[]}`)
	r.peer.answer(spec.MethodToolsCall, `{"content":[{"type":"text","text":"hi"}]}`)
	return r, met
}

// opened returns the id of a session that a client of 2025-06-18 has opened.
func (r *rig) opened(t *testing.T) string {
	t.Helper()
	got := r.send(t, http.MethodPost, olderOpening, http.Header{"Content-Type": {"application/json"}, "Accept": {spec.AcceptBoth}})
	if got.status != http.StatusOK {
		t.Fatalf("initialize = %d %s", got.status, got.body)
	}
	return got.header.Get(spec.HeaderSession)
}

// deviate sends the request of a deviation.
func (r *rig) deviate(t *testing.T, d deviation) answer {
	t.Helper()
	h := http.Header{"Accept": {spec.AcceptBoth}}
	if d.body != "" {
		h.Set("Content-Type", "application/json")
	}
	for name, value := range d.header {
		if strings.Contains(value, "SESSION") {
			value = strings.ReplaceAll(value, "SESSION", r.opened(t))
		}
		if h.Set(name, value); value == "" {
			h.Del(name)
		}
	}
	method, path := d.method, d.path
	if method == "" {
		method = http.MethodPost
	}
	if path == "" {
		path = "/mcp/peer"
	}
	if method == http.MethodGet { // a stream stays open
		res := r.openAt(t, method, path, "", h)
		defer res.Body.Close()
		return answer{res.StatusCode, res.Header, ""}
	}
	return r.sendTo(t, method, path, d.body, "", h)
}

// tolerated tests deviations with their quirk, without it, and without any.
func tolerated(t *testing.T, all []deviation) {
	for _, d := range all {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			r, met := quirkRig(t, nil)
			got := r.deviate(t, d)
			if got.status != d.status || !strings.Contains(got.body, d.text) {
				t.Errorf("= %d %s, want %d and %q", got.status, got.body, d.status, d.text)
			}
			want := fmt.Sprint([]quirks.Meeting{{Quirk: d.quirk, Client: "claude-code/2.1", Count: 1}})
			if d.strict == 0 {
				want = "[]"
				if got.code() != d.strictCode {
					t.Errorf("= %s, want code %d", got.body, d.strictCode)
				}
			}
			if got := fmt.Sprint(met.Meetings()); got != want {
				t.Errorf("met %s, want %s", got, want)
			}
			for how, off := range map[string]settings.Quirks{"its quirk": {d.quirk.String(): "off"}, "all": settings.NoQuirks()} {
				r, met := quirkRig(t, off)
				got := r.deviate(t, d)
				if d.strict == 0 {
					d.strict = d.status
				}
				if got.status != d.strict || got.code() != d.strictCode {
					t.Errorf("with %s off = %d %s, want %d and code %d", how, got.status, got.body, d.strict, d.strictCode)
				}
				if got := met.Meetings(); len(got) > 0 {
					t.Errorf("with %s off met %v", how, got)
				}
			}
		})
	}
}

// A session's client may name another known revision in its header.
func TestQ01HeaderRevision(t *testing.T) {
	t.Parallel()
	with := func(revision, session string) map[string]string {
		return map[string]string{spec.HeaderProtocolVersion: revision, spec.HeaderSession: session}
	}
	const q = quirks.HeaderRevision
	tolerated(t, []deviation{
		{name: "initialized under a later revision", body: initialized, header: with("2025-11-25", "SESSION"), quirk: q, status: 202, strict: 400, strictCode: -32600},
		{name: "a list under an earlier one", body: legacyList, header: with("2024-11-05", "SESSION"), quirk: q, status: 200, text: `"result":{"tools":[]}`, strict: 400, strictCode: -32600},
		{name: "GET under a later one", method: "GET", header: with("2025-11-25", "SESSION"), quirk: q, status: 200, strict: 400},
		{name: "DELETE under a later one", method: "DELETE", header: with("2025-11-25", "SESSION"), quirk: q, status: 204, strict: 400, strictCode: -32600},
		{name: "initialized under a modern one", body: initialized, header: with("2026-07-28", "SESSION"), quirk: q, status: 202, strict: 202},
		{name: "a list under a modern one", body: legacyList, header: with("2026-07-28", "SESSION"), quirk: q, status: 200, text: `"result":{"tools":[]}`, strict: 400, strictCode: -32602},
		{name: "a call under a modern one", body: legacyCall, header: with("2026-07-28", "SESSION"), quirk: q, status: 200, text: `"text":"hi"`, strict: 400, strictCode: -32602},
		{name: "a response under a modern one", body: `{"jsonrpc":"2.0","id":1,"result":{}}`, header: with("2026-07-28", "SESSION"), quirk: q, status: 202, strict: 400, strictCode: -32600},
		{name: "GET under a modern one", method: "GET", header: with("2026-07-28", "SESSION"), quirk: q, status: 200, strict: 405},
		{name: "DELETE under a modern one", method: "DELETE", header: with("2026-07-28", "SESSION"), quirk: q, status: 204, strict: 405, strictCode: -32600},

		{name: "its own revision", body: legacyList, header: with("2025-06-18", "SESSION"), quirk: q, status: 200},
		{name: "no revision", body: legacyList, header: with("", "SESSION"), quirk: q, status: 200},
		{name: "no revision that is known", body: legacyList, header: with("2000-01-01", "SESSION"), quirk: q, status: 400, strictCode: -32600},
		{name: "none at all", body: legacyList, header: with("v999.0.0", "SESSION"), quirk: q, status: 400, strictCode: -32600},
		{name: "a later one than is known", body: legacyList, header: with("2099-01-01", "SESSION"), quirk: q, status: 400, strictCode: -32602},
		{name: "GET under a later one than is known", method: "GET", header: with("2099-01-01", "SESSION"), quirk: q, status: 405},
		{name: "a modern one without a session", body: legacyList, header: with("2026-07-28", ""), quirk: q, status: 400, strictCode: -32602},
		{name: "an envelope in a session", body: modernBody("1", spec.MethodToolsList, ""), header: map[string]string{spec.HeaderProtocolVersion: "2026-07-28", spec.HeaderMethod: spec.MethodToolsList, spec.HeaderSession: "SESSION"}, quirk: q, status: 200, text: `"resultType":"complete"`},
		{name: "an unknown session under a legacy one", body: legacyList, header: with("2025-11-25", "x"), quirk: q, status: 404, strictCode: -32001},
	})
	r, met := quirkRig(t, nil)
	for name, d := range map[string]deviation{
		"POST":   {body: legacyList, header: with("2026-07-28", "x")},
		"GET":    {method: "GET", header: with("2026-07-28", "x")},
		"DELETE": {method: "DELETE", header: with("2026-07-28", "x")},
	} {
		if got := r.deviate(t, d); got.status != 404 || len(met.Meetings()) > 0 {
			t.Errorf("%s of an unknown session under a modern revision = %d %s and %v, want 404 and nothing met", name, got.status, got.body, met.Meetings())
		}
	}
}

// A post of HTTP+SSE names its session in the path.
func TestQ01HeaderRevisionOverSSE(t *testing.T) {
	t.Parallel()
	for _, off := range []settings.Quirks{nil, settings.NoQuirks()} {
		r, met := quirkRig(t, off)
		c := r.openEvents(t, "/sse/peer", nil)
		if c.header.Set(spec.HeaderProtocolVersion, "2026-07-28"); off != nil { // else it is Q-03, too
			c.header.Del(spec.HeaderProtocolVersion)
		}
		c.send(olderOpening)
		if _, got := c.event(); !strings.Contains(got, `"protocolVersion":"2025-06-18"`) {
			t.Fatalf("initialize = %s", got)
		}
		c.header.Set(spec.HeaderProtocolVersion, "2026-07-28")
		c.send(legacyList)
		_, got := c.event()
		want := `"result":{"tools":[]}`
		if off != nil {
			want = `"code":-32022`
		}
		if !strings.Contains(got, want) || len(met.Meetings()) != 2*(1-len(off)) {
			t.Errorf("with %v off: %s and %v, want %s", off, got, met.Meetings(), want)
		}
	}
}

// A complete envelope decides over a header with a known legacy revision.
func TestQ02EnvelopeUnderLegacyHeader(t *testing.T) {
	t.Parallel()
	full := strings.Replace(modernBody("1", spec.MethodToolsList, ""), `{"name":"c","version":"0"}`, `{"name":"claude-code","version":"2.1"}`, 1)
	under := func(revision string, more ...string) map[string]string {
		h := map[string]string{spec.HeaderProtocolVersion: revision, spec.HeaderMethod: spec.MethodToolsList}
		for i := 0; i < len(more); i += 2 {
			h[more[i]] = more[i+1]
		}
		return h
	}
	const q = quirks.EnvelopeUnderLegacyHeader
	without := strings.Replace(full, `"io.modelcontextprotocol/clientCapabilities":{},`, "", 1)
	later := strings.Replace(full, "2026-07-28", "2027-01-01", 1)
	call := strings.Replace(full, `"tools/list","params":{`, `"tools/call","params":{"name":"echo","arguments":{},`, 1)
	tolerated(t, []deviation{
		{name: "a list", body: full, header: under("2025-11-25"), quirk: q, status: 200, text: `"resultType":"complete"`, strict: 400, strictCode: -32020},
		{name: "under the first revision", body: full, header: under("2024-11-05"), quirk: q, status: 200, text: `"resultType":"complete"`, strict: 400, strictCode: -32020},
		{name: "in a session", body: full, header: under("2025-11-25", spec.HeaderSession, "SESSION"), quirk: q, status: 200, text: `"resultType":"complete"`, strict: 400, strictCode: -32020},
		{name: "a call", body: call, header: under("2025-06-18", spec.HeaderMethod, spec.MethodToolsCall, spec.HeaderName, "echo"), quirk: q, status: 200, text: `"text":"hi"`, strict: 400, strictCode: -32020},

		{name: "no header", body: full, header: under(""), quirk: q, status: 400, strictCode: -32020},
		{name: "no known header", body: full, header: under("2000-01-01"), quirk: q, status: 400, strictCode: -32020},
		{name: "no header that is a date", body: full, header: under("invalid"), quirk: q, status: 400, strictCode: -32020},
		{name: "an incomplete envelope", body: without, header: under("2025-11-25"), quirk: q, status: 400, strictCode: -32020},
		{name: "an envelope that is not served", body: later, header: under("2025-11-25"), quirk: q, status: 400, strictCode: -32020},
		{name: "another method", body: full, header: under("2025-11-25", spec.HeaderMethod, "tools/call"), quirk: q, status: 400, strictCode: -32020},
		{name: "no method", body: full, header: under("2025-11-25", spec.HeaderMethod, ""), quirk: q, status: 400, strictCode: -32020},
		{name: "another name", body: call, header: under("2025-11-25", spec.HeaderMethod, spec.MethodToolsCall, spec.HeaderName, "other"), quirk: q, status: 400, strictCode: -32020},
	})
}

// initialize opens a session under any known header.
func TestQ03InitializeUnderModernHeader(t *testing.T) {
	t.Parallel()
	under := func(revision string) map[string]string {
		return map[string]string{spec.HeaderProtocolVersion: revision}
	}
	const q = quirks.InitializeUnderModernHeader
	tolerated(t, []deviation{
		{name: "of an older revision", body: olderOpening, header: under("2026-07-28"), quirk: q, status: 200, text: `"protocolVersion":"2025-06-18"`, strict: 400, strictCode: -32020},
		{name: "of a modern revision", body: strings.Replace(olderOpening, "2025-06-18", "2026-07-28", 1), header: under("2026-07-28"), quirk: q, status: 200, text: `"protocolVersion":"2025-11-25"`, strict: 400, strictCode: -32020},
		{name: "in a session", body: olderOpening, header: map[string]string{spec.HeaderProtocolVersion: "2026-07-28", spec.HeaderSession: "x"}, quirk: q, status: 200, text: `"protocolVersion":"2025-06-18"`, strict: 400, strictCode: -32020},

		{name: "under a legacy header", body: olderOpening, header: under("2025-11-25"), quirk: q, status: 200, text: `"protocolVersion":"2025-06-18"`},
		{name: "under a later header than is known", body: olderOpening, header: under("2099-01-01"), quirk: q, status: 400, strictCode: -32020},
	})
}

// A legacy request gets the form that its client accepts.
func TestQ04Accept(t *testing.T) {
	t.Parallel()
	in := func(accept string) map[string]string {
		return map[string]string{"Accept": accept, spec.HeaderSession: "SESSION"}
	}
	const q = quirks.Accept
	tolerated(t, []deviation{
		{name: "initialize in JSON", body: olderOpening, header: map[string]string{"Accept": "application/json"}, quirk: q, status: 200, text: `{"jsonrpc":"2.0","id":0,"result":`, strict: 406, strictCode: -32600},
		{name: "initialize on a stream", body: olderOpening, header: map[string]string{"Accept": "text/event-stream"}, quirk: q, status: 200, text: "data: {\"jsonrpc\":\"2.0\",\"id\":0,\"result\":", strict: 406, strictCode: -32600},
		{name: "a list in JSON", body: legacyList, header: in("application/json"), quirk: q, status: 200, text: `{"jsonrpc":"2.0","id":2,"result":{"tools":[]}}`, strict: 406, strictCode: -32600},
		{name: "a list on a stream", body: legacyList, header: in("text/event-stream"), quirk: q, status: 200, text: `data: {"jsonrpc":"2.0","id":2,"result":{"tools":[]}}`, strict: 406, strictCode: -32600},
		{name: "a list on a stream, with a weight", body: legacyList, header: in("text/event-stream;q=0.5"), quirk: q, status: 200, text: `data: {"jsonrpc":"2.0","id":2,"result":{"tools":[]}}`, strict: 406, strictCode: -32600},
		{name: "initialized", body: initialized, header: in("application/json"), quirk: q, status: 202, strict: 406, strictCode: -32600},

		{name: "anything", body: legacyList, header: in("*/*"), quirk: q, status: 200},
		{name: "no header", body: legacyList, header: in(""), quirk: q, status: 200},
		{name: "neither", body: legacyList, header: in("text/html"), quirk: q, status: 406, strictCode: -32600},
		{name: "GET without streams", method: "GET", header: in("application/json"), quirk: q, status: 406},
	})
}

// The Content-Type is that of the form.
func TestQ04AcceptedForms(t *testing.T) {
	t.Parallel()
	r, _ := quirkRig(t, nil)
	for _, accept := range []string{"application/json", "text/event-stream"} {
		for _, body := range []string{olderOpening, legacyList} {
			got := r.deviate(t, deviation{body: body, header: map[string]string{"Accept": accept, spec.HeaderSession: "SESSION"}})
			if typ := got.header.Get("Content-Type"); typ != accept {
				t.Errorf("Accept %s gets %s for %s", accept, typ, body)
			}
		}
	}
}

// An envelope that can't be meant for a modern request counts for nothing.
func TestQ06StrayEnvelope(t *testing.T) {
	t.Parallel()
	in := func(revision string, more ...string) map[string]string {
		h := map[string]string{spec.HeaderProtocolVersion: revision, spec.HeaderSession: "SESSION"}
		for i := 0; i < len(more); i += 2 {
			h[more[i]] = more[i+1]
		}
		return h
	}
	const q = quirks.StrayEnvelope
	full := modernBody("2", spec.MethodToolsList, "")
	legacy := strings.Replace(full, "2026-07-28", "2025-06-18", 1)
	partial := strings.Replace(full, `"io.modelcontextprotocol/clientCapabilities":{},`, "", 1)
	opening := strings.Replace(olderOpening, `"params":{`, `"params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}},`, 1)
	const list = `"result":{"tools":[]}`
	tolerated(t, []deviation{
		{name: "of a legacy revision", body: legacy, header: in("2025-06-18"), quirk: q, status: 200, text: list, strict: 400, strictCode: -32022},
		{name: "of a legacy revision without a header", body: legacy, header: in(""), quirk: q, status: 200, text: list, strict: 400, strictCode: -32020},
		{name: "that lacks a member", body: partial, header: in("2025-06-18"), quirk: q, status: 200, text: list, strict: 400, strictCode: -32020},
		{name: "that lacks a member, without a header", body: partial, header: in(""), quirk: q, status: 200, text: list, strict: 400, strictCode: -32020},
		{name: "of a ping", body: modernBody("2", spec.MethodPing, ""), header: in("", spec.HeaderMethod, spec.MethodPing), quirk: q, status: 200, text: `"result":{}`, strict: 400, strictCode: -32020},
		{name: "initialize without a header", body: opening, header: nil, quirk: q, status: 200, text: `"protocolVersion":"2025-06-18"`, strict: 400, strictCode: -32020},
		{name: "initialize under a legacy header", body: opening, header: map[string]string{spec.HeaderProtocolVersion: "2025-11-25"}, quirk: q, status: 200, text: `"protocolVersion":"2025-06-18"`, strict: 400, strictCode: -32020},

		{name: "that is complete, without a header", body: full, header: in(""), quirk: q, status: 400, strictCode: -32020},
		{name: "of a legacy revision without a session", body: legacy, header: in("2025-06-18", spec.HeaderSession, ""), quirk: q, status: 400, strictCode: -32022},
		{name: "of a legacy revision under a modern header", body: legacy, header: in("2026-07-28", spec.HeaderMethod, spec.MethodToolsList), quirk: q, status: 400, strictCode: -32020},
		{name: "of no revision that is known", body: strings.Replace(full, "2026-07-28", "2099-01-01", 1), header: in("2025-06-18"), quirk: q, status: 400, strictCode: -32020},
		{name: "under no revision that is known", body: legacy, header: in("2099-01-01"), quirk: q, status: 400, strictCode: -32020},
		{name: "initialize under a modern header", body: opening, header: map[string]string{spec.HeaderProtocolVersion: "2026-07-28", spec.HeaderMethod: spec.MethodInitialize}, quirk: q, status: 404, strictCode: -32601},
	})
}

// On a connection, a session that is open is what a header names elsewhere.
func TestQ06StrayEnvelopeOnAConnection(t *testing.T) {
	t.Parallel()
	full := modernBody("2", spec.MethodToolsList, "")
	legacy := strings.Replace(full, "2026-07-28", "2025-06-18", 1)
	partial := strings.Replace(full, `"io.modelcontextprotocol/clientCapabilities":{},`, "", 1)
	const list, pong = `{"jsonrpc":"2.0","id":2,"result":{"tools":[]}}`, `{"jsonrpc":"2.0","id":3,"result":{}}`
	for name, off := range map[string]settings.Quirks{"on": nil, "off": settings.NoQuirks()} {
		r, met := quirkRig(t, off)
		for _, l := range []*line{r.connect(t), r.socket(t)} {
			l.send(legacy)
			l.want(`"id":2,"error":{"code":-32022`) // there is no session yet
			l.send(olderOpening)
			l.want(`"id":0,"result"`, `"protocolVersion":"2025-06-18"`)
			l.send(initialized)
			for _, step := range []struct{ text, want, strict string }{
				{legacy, list, `"id":2,"error":{"code":-32022`},
				{partial, list, `"id":2,"error":{"code":-32602`},
				{modernBody("3", spec.MethodPing, ""), pong, `"id":3,"error":{"code":-32601`},
				{full, `"resultType":"complete"`, `"resultType":"complete"`},
				{strings.Replace(full, "2026-07-28", "2099-01-01", 1), `"id":2,"error":{"code":-32022`, `"id":2,"error":{"code":-32022`},
				{strings.Replace(modernBody("2", spec.MethodDiscover, ""), "2026-07-28", "2025-06-18", 1), `"id":2,"error":{"code":-32022`, `"id":2,"error":{"code":-32022`},
			} {
				if off != nil {
					step.want = step.strict
				}
				l.send(step.text)
				l.want(step.want)
			}
		}
		want := "[{stray-envelope claude-code/2.1 6}]"
		if off != nil {
			want = "[]"
		}
		if got := fmt.Sprint(met.Meetings()); got != want {
			t.Errorf("with the quirk %s met %s, want %s", name, got, want)
		}
	}
}

// A batch of a session may have such envelopes, too.
func TestQ06StrayEnvelopesInABatch(t *testing.T) {
	t.Parallel()
	full := modernBody("3", spec.MethodToolsList, "")
	batch := `[` + legacyList + `,` + strings.Replace(full, "2026-07-28", "2025-06-18", 1) + `]`
	for name, off := range map[string]settings.Quirks{"on": nil, "off": settings.NoQuirks()} {
		r, met := quirkRig(t, off)
		r.peer.answer(spec.MethodInitialize, `{"protocolVersion":"2025-03-26","capabilities":{"tools":{}},"serverInfo":{"name":"peer","version":"7"}}`)
		want, told := "revision 2026-07-28 has no batches", "[]"
		if off == nil {
			want, told = `"id":3,"result":{"tools":[]}`, "[{stray-envelope claude-code/2.1 1}]"
		}
		for _, step := range []struct{ text, want string }{{batch, want}, {`[` + full + `]`, "revision 2026-07-28 has no batches"}} {
			l := r.connect(t)
			l.send(strings.Replace(olderOpening, "2025-06-18", "2025-03-26", 1))
			l.want(`"protocolVersion":"2025-03-26"`)
			l.send(initialized)
			l.send(step.text)
			l.want(step.want)
		}
		if got := fmt.Sprint(met.Meetings()); got != told {
			t.Errorf("with the quirk %s met %s, want %s", name, got, told)
		}
	}
}

// Params that are null count as missing.
func TestQ07NullParams(t *testing.T) {
	t.Parallel()
	in := map[string]string{spec.HeaderSession: "SESSION"}
	const q = quirks.NullParams
	null := func(message string) string { return strings.TrimSuffix(message, "}") + `,"params":null}` }
	tolerated(t, []deviation{
		{name: "a list", body: null(legacyList), header: in, quirk: q, status: 200, text: `"result":{"tools":[]}`, strict: 400, strictCode: -32600},
		{name: "initialized", body: null(initialized), header: in, quirk: q, status: 202, strict: 400, strictCode: -32600},

		{name: "an array", body: `{"jsonrpc":"2.0","id":2,"method":"tools/list","params":[]}`, header: in, quirk: q, status: 400, strictCode: -32600},
		{name: "without a session", body: null(legacyList), header: nil, quirk: q, status: 400, strictCode: -32600},
	})
	r, met := quirkRig(t, nil)
	modern := map[string]string{spec.HeaderProtocolVersion: "2026-07-28", spec.HeaderMethod: spec.MethodToolsList}
	if got := r.deviate(t, deviation{body: null(legacyList), header: modern}); got.status != 400 || got.code() != -32602 || len(met.Meetings()) > 0 {
		t.Errorf("a modern request = %d %s and %v, want that it lacks its envelope", got.status, got.body, met.Meetings())
	}
	if got := r.deviate(t, deviation{body: null(initialized), header: map[string]string{spec.HeaderProtocolVersion: "2026-07-28"}}); got.status != 202 {
		t.Errorf("a modern notification = %d %s, want 202", got.status, got.body)
	}
	if got := fmt.Sprint(met.Meetings()); got != "[{null-params unnamed 1}]" {
		t.Errorf("met %s, want the notification", got)
	}
	for _, l := range []*line{r.connect(t), r.socket(t)} {
		l.send(olderOpening)
		l.want(`"protocolVersion":"2025-06-18"`)
		l.send(null(legacyList))
		l.want(`{"jsonrpc":"2.0","id":2,"result":{"tools":[]}}`)
	}
	if got := fmt.Sprint(met.Meetings()); got != "[{null-params claude-code/2.1 2} {null-params unnamed 1}]" {
		t.Errorf("met %s, want those on connections, too", got)
	}
}

// What a server answers initialize with passes unchanged, and its client may name it.
func TestQ05ServerRevision(t *testing.T) {
	t.Parallel()
	for _, off := range []settings.Quirks{nil, settings.NoQuirks()} {
		r, met := quirkRig(t, off)
		const answer = `{"protocolVersion":"2026-07-28","capabilities":{"tools":{}},"serverInfo":{"name":"peer","version":"7"}}`
		r.peer.answer(spec.MethodInitialize, answer)
		in := http.Header{"Content-Type": {"application/json"}, "Accept": {spec.AcceptBoth}}
		got := r.send(t, http.MethodPost, olderOpening, in)
		if got.body != `{"jsonrpc":"2.0","id":0,"result":`+answer+`}` {
			t.Errorf("with %v off initialize = %d %s, want what the server said", off, got.status, got.body)
		}
		in.Set(spec.HeaderSession, got.header.Get(spec.HeaderSession))
		in.Set(spec.HeaderProtocolVersion, "2026-07-28")
		status, code, want := 200, int64(0), "[{server-revision  1}]"
		if off != nil {
			status, code, want = 400, -32602, "[]"
		}
		if got := r.send(t, http.MethodPost, legacyList, in); got.status != status || got.code() != code {
			t.Errorf("with %v off the list = %d %s, want %d and code %d", off, got.status, got.body, status, code)
		}
		if got := fmt.Sprint(met.Meetings()); got != want {
			t.Errorf("with %v off met %s, want %s", off, got, want)
		}
	}
}

// After a good server/discover a client may still open a session on the same pipe: that is no
// quirk, and works whatever is tolerated.
func TestF11InitializeAfterDiscover(t *testing.T) {
	t.Parallel()
	for _, off := range []settings.Quirks{nil, settings.NoQuirks()} {
		r, met := quirkRig(t, off)
		for _, l := range []*line{r.connect(t), r.socket(t)} {
			l.send(modernBody(`"probe"`, spec.MethodDiscover, ""))
			l.want(`"id":"probe","result"`, `"supportedVersions"`)
			l.send(olderOpening)
			l.want(`"id":0,"result"`, `"protocolVersion":"2025-06-18"`)
			l.send(initialized)
			l.send(legacyList)
			l.want(`{"jsonrpc":"2.0","id":2,"result":{"tools":[]}}`)
		}
		if got := met.Meetings(); len(got) > 0 {
			t.Errorf("met %v, want nothing", got)
		}
	}
}

// What was met is told of by server and client.
func TestQ01StatusTellsOfClients(t *testing.T) {
	t.Parallel()
	r, _ := quirkRig(t, nil)
	if got := r.g.Status(false).Quirks; got.List == nil || len(got.List) > 0 {
		t.Errorf("before: %+v, want an empty list", got)
	}
	for range 3 {
		r.deviate(t, deviation{body: legacyList, header: map[string]string{spec.HeaderProtocolVersion: "2026-07-28", spec.HeaderSession: "SESSION"}})
	}
	got := r.g.Status(false).Quirks.List
	if len(got) != 1 || got[0].Server != "peer" || got[0].Client != "claude-code/2.1" || got[0].Name != "header-revision" || got[0].Rule != "Q-01" || got[0].Side != "client" || got[0].Count != 3 || got[0].Seen == "" {
		t.Errorf("%+v, want three times the quirk of claude-code", got)
	}
}

// What modern clients were always let do is counted, and has no switch.
func TestF02ModernQuirks(t *testing.T) {
	t.Parallel()
	list := modernBody("1", spec.MethodToolsList, "")
	for _, tt := range []struct {
		name, body string
		header     http.Header
		change     func(http.Header)
		want       string
	}{
		{"JSON alone", list, modernHeaders(spec.MethodToolsList, ""), func(h http.Header) { h.Set("Accept", "application/json") }, "[{modern-accept c/0 1}]"},
		{"a stream alone", list, modernHeaders(spec.MethodToolsList, ""), func(h http.Header) { h.Set("Accept", "text/event-stream") }, "[{modern-accept c/0 1}]"},
		{"anything", list, modernHeaders(spec.MethodToolsList, ""), func(h http.Header) { h.Set("Accept", "*/*") }, "[]"},
		{"no Accept", list, modernHeaders(spec.MethodToolsList, ""), func(h http.Header) { h.Del("Accept") }, "[]"},
		{"a raw name", modernBody("1", spec.MethodToolsCall, `"name":"été"`), modernHeaders(spec.MethodToolsCall, "été"), nil, "[{raw-name c/0 1}]"},
		{"an encoded name", modernBody("1", spec.MethodToolsCall, `"name":"été"`), modernHeaders(spec.MethodToolsCall, "=?base64?w6l0w6k=?="), nil, "[]"},
	} {
		for _, off := range []settings.Quirks{nil, settings.NoQuirks()} {
			r, met := quirkRig(t, off)
			h := tt.header.Clone()
			if tt.change != nil {
				tt.change(h)
			}
			if got := r.send(t, http.MethodPost, tt.body, h); got.status != 200 || !strings.Contains(got.body, `"result":{`) {
				t.Errorf("%s with %v off = %d %s, want its result", tt.name, off, got.status, got.body)
			}
			if got := fmt.Sprint(met.Meetings()); got != tt.want {
				t.Errorf("%s with %v off: met %s, want %s", tt.name, off, got, tt.want)
			}
		}
	}
}
