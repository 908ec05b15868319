package front

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/moderntest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A socketFront is a front that a client reaches over a socket.
type socketFront struct {
	t *testing.T
	*httptest.Server
}

func overSocket(t *testing.T, s *moderntest.Script) *socketFront {
	f := frontOf(t, s, nil)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		m, err := wire.Parse(text, wire.Options{UniqueParams: true})
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		f.ServeMessage(w, r, &m, mcp.Sender{Share: mcp.Share{Principal: "ada"}})
	}))
	t.Cleanup(srv.Close)
	return &socketFront{t, srv}
}

// call posts a call of a tool by name, with names as Mcp-Name, and returns the status and body of the
// answer. capabilities are the client's; rest are further members of params.
func (f *socketFront) call(name, capabilities, rest string, names ...string) (int, string) {
	f.t.Helper()
	text := moderntest.Request("1", "tools/call", capabilities, `,"name":`+string(wire.AppendString(nil, name))+rest)
	r, err := http.NewRequestWithContext(f.t.Context(), http.MethodPost, f.URL, strings.NewReader(text))
	if err != nil {
		f.t.Fatal(err)
	}
	r.Header = http.Header{
		"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"},
		spec.HeaderProtocolVersion: {string(spec.Rev20260728)}, spec.HeaderMethod: {"tools/call"}, spec.HeaderName: names,
	}
	res, err := f.Client().Do(r)
	if err != nil {
		f.t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		f.t.Fatal(err)
	}
	return res.StatusCode, string(body)
}

// What one reader takes for one tool and another reader for another gets past whoever
// in front decides by the header which tools may be called.
//
// Spec: 2026-07-28, basic/transports/streamable-http, Value Encoding.
func TestNameReadTwoWaysIsRefused(t *testing.T) {
	f := overSocket(t, moderntest.NewScript())
	for _, tt := range []struct {
		why, name string
		headers   []string
		ok        bool
	}{
		{"plain", "x", []string{"x"}, true},
		{"encoded without need", "x", []string{"=?base64?eA==?="}, true},
		{"raw UTF-8", "é", []string{"é"}, true},
		{"encoded UTF-8", "é", []string{"=?base64?w6k=?="}, true},
		{"markers, encoded", "=?base64?eA==?=", []string{spec.EncodeHeader("=?base64?eA==?=")}, true},
		{"one marker alone", "=?base64?x", []string{"=?base64?x"}, true},

		{"raw, and in the form of base64", "=?base64?eA==?=", []string{"=?base64?eA==?="}, false},
		{"raw, and in the form with nothing to decode", "=?base64?*?=", []string{"=?base64?*?="}, false},
		{"raw, and in the form in other letters", "=?BASE64?eA==?=", []string{"=?BASE64?eA==?="}, false},
		{"form in other letters", "x", []string{"=?Base64?eA==?="}, false},
		{"bits that say nothing", "x", []string{"=?base64?eB==?="}, false},
		{"no padding", "x", []string{"=?base64?eA?="}, false},
		{"alphabet of URLs", "\u07ff>", []string{"=?base64?378-?="}, false},
		{"twice", "x", []string{"x", "x"}, false},
		{"twice, one encoded", "x", []string{"=?base64?eA==?=", "x"}, false},
	} {
		status, body := f.call(tt.name, "{}", "", tt.headers...)
		if ok := status == http.StatusOK; ok != tt.ok {
			t.Errorf("%s: Mcp-Name %q for %q: %d %s, want ok = %v", tt.why, tt.headers, tt.name, status, body, tt.ok)
		} else if !ok && (status != http.StatusBadRequest || !strings.Contains(body, `"code":-32020`)) {
			t.Errorf("%s: %d %s, want 400 with -32020", tt.why, status, body)
		}
	}
}

// A state that can be written in two ways can be told apart from itself: whoever keeps
// those that were used, to refuse the same again, is passed by.
func TestStateIsStrictBase64(t *testing.T) {
	s := moderntest.NewScript()
	s.OnServe = func(ctx context.Context, _ *mcp.Request, x mcp.Caller) (*mcp.Result, error) {
		a, err := x.RequestInput(ctx, []mcp.InputRequest{{Method: spec.MethodElicit, Params: []byte(`{"message":"m","requestedSchema":{"type":"object","properties":{}}}`)}})
		if err != nil {
			return nil, err
		}
		return mcp.NewResult(fmt.Appendf(nil, `{"content":[],"structuredContent":%s}`, a[0].Result), nil), nil
	}
	f := overSocket(t, s)
	const canBeAsked = `{"elicitation":{"form":{}}}`
	status, body := f.call("x", canBeAsked, "", "x")
	result := wire.Get([]byte(body), "result")
	state, _ := wire.GetString(result, "requestState")
	if state == "" {
		t.Fatalf("answer = %d %s, want a requestState", status, body)
	}
	var key string
	for k := range wire.Members(wire.Get(result, "inputRequests")) {
		key = string(k)
	}
	retry := func(state string) string {
		_, body := f.call("x", canBeAsked, `,"requestState":`+string(wire.AppendString(nil, state))+`,"inputResponses":{`+key+`:{"action":"decline"}}`, "x")
		return body
	}
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	last := strings.IndexByte(letters, state[len(state)-1])
	for name, other := range map[string]string{
		"bits that say nothing": state[:len(state)-1] + letters[last^1:][:1],
		"a line feed inside":    state[:30] + "\n" + state[30:],
		"a line feed behind":    state + "\r\n",
		"padding":               state + strings.Repeat("=", -len(state[strings.LastIndexByte(state, '.')+1:])&3),
		"other alphabet":        state[:len("1.xxxxxxxx.")] + strings.NewReplacer("-", "+", "_", "/").Replace(state[len("1.xxxxxxxx."):]) + "=",
	} {
		if body := retry(other); !strings.Contains(body, `"code":-32602`) {
			t.Fatalf("%s: %s, want -32602", name, body)
		}
	}
	if body := retry(state); !strings.Contains(body, `"structuredContent":{"action":"decline"}`) {
		t.Errorf("the state itself: %s, want the result", body)
	}
}
