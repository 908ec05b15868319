package owner

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/budget"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/requeststate"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A server answers every request with one result, and notes the params that came.
type server struct {
	result string
	params string
}

func (s *server) Serve(_ context.Context, req *mcp.Request, _ mcp.Caller) (*mcp.Result, error) {
	s.params = string(req.Params)
	res := mcp.NewResult([]byte(s.result), nil)
	res.Era = spec.Modern
	return res, nil
}

func newGuard(t *testing.T, server string, sealer *requeststate.Sealer, noTasks bool) *Guard {
	t.Helper()
	memory := budget.New(1 << 20)
	g, err := New(Options{
		Server: server, Sealer: sealer, Full: func() {}, NoTasks: noTasks,
		Account: func(s mcp.Share) *budget.Account { return memory.Account(s) },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	return g
}

// ask returns a result, or the code of the refusal.
func ask(t *testing.T, h mcp.Handler, who mcp.Principal, method, params string) (string, int64) {
	t.Helper()
	req := &mcp.Request{Method: method, Params: []byte(params), Era: spec.Modern, Principal: who, Share: mcp.Share{Principal: who}}
	res, err := h.Serve(t.Context(), req, nil)
	if err != nil {
		return "", mcp.WireError(err).Code
	}
	defer res.Release()
	return string(res.Body), 0
}

// A state goes back to its server as that made it, with all other bytes of the request; all
// but the state's own principal are refused before the server hears of it.
func TestS01StatesHaveAnOwner(t *testing.T) {
	sealer, _ := requeststate.NewSealer()
	up := &server{result: `{"resultType":"input_required","x":1.0,"requestState":"a~\u0062"}`}
	here, there := newGuard(t, "here", sealer, true).Handler(up), newGuard(t, "there", sealer, true).Handler(up)
	got, _ := ask(t, here, alice, spec.MethodToolsCall, `{"name":"t"}`)
	state, _ := wire.GetString([]byte(got), "requestState")
	if !strings.HasPrefix(got, `{"resultType":"input_required","x":1.0,"requestState":"a~b~`) {
		t.Fatalf("result = %s, want the state with a tag", got)
	}
	retry := `{"name":"t","n":1.0,"requestState":` + string(wire.Quote(state)) + `}`
	for _, tt := range []struct {
		name   string
		h      mcp.Handler
		who    mcp.Principal
		params string
		code   int64
	}{
		{"its own", here, alice, retry, 0},
		{"another principal's", here, bob, retry, spec.CodeInvalidParams},
		{"another server's", there, alice, retry, spec.CodeInvalidParams},
		{"the server's own", here, alice, `{"name":"t","requestState":"a~b"}`, spec.CodeInvalidParams},
		{"null", here, alice, `{"name":"t","requestState":null}`, spec.CodeInvalidParams},
		{"in another case", here, bob, `{"name":"t","RequestState":"a~b"}`, spec.CodeInvalidParams},
		{"in another case, escaped", here, bob, `{"name":"t","\u0052equestState":"a~b"}`, spec.CodeInvalidParams},
		{"by letters that fold", here, bob, `{"name":"t","reque\u017ftState":"a~b"}`, spec.CodeInvalidParams},
		{"none", here, bob, `{"name":"t"}`, 0},
	} {
		up.params = ""
		_, code := ask(t, tt.h, tt.who, spec.MethodToolsCall, tt.params)
		if code != tt.code || (up.params == "") != (tt.code != 0) {
			t.Errorf("%s: code %d, the server got %q, want code %d", tt.name, code, up.params, tt.code)
		}
		if want := `{"name":"t","n":1.0,"requestState":"a~b"}`; tt.params == retry && code == 0 && up.params != want {
			t.Errorf("%s: the server got %s, want %s", tt.name, up.params, want)
		}
	}
}

// A task's member that a server might read in another spelling than is looked at here is
// refused, in filters, too.
func TestT03OneSpelling(t *testing.T) {
	sealer, _ := requeststate.NewSealer()
	up := &server{result: `{"resultType":"task","taskId":"x"}`}
	h := newGuard(t, "here", sealer, false).Handler(up)
	if _, code := ask(t, h, alice, spec.MethodToolsCall, `{"name":"t"}`); code != 0 {
		t.Fatal(code)
	}
	for _, params := range []string{`{"taskId":"mine","TASKID":"x"}`, `{"taskid":"x"}`, `{"\u0054askId":"x"}`, `{"ta\u017fkId":"x"}`} {
		up.params = ""
		if _, code := ask(t, h, bob, spec.MethodTaskGet, params); code != spec.CodeInvalidParams || up.params != "" {
			t.Errorf("tasks/get %s: code %d, the server got %q", params, code, up.params)
		}
	}
	up.params = ""
	if _, code := ask(t, h, bob, spec.MethodListen, `{"notifications":{"TaskIds":["x"]}}`); code != spec.CodeInvalidParams || up.params != "" {
		t.Errorf("filter in another case: code %d, the server got %q", code, up.params)
	}
	if _, code := ask(t, h, bob, spec.MethodListen, `{"notifications":{"taskIds":["a"],"taskIds":["x","b"]}}`); code != 0 || strings.Contains(up.params, `"x"`) || !strings.Contains(up.params, `["a","b"]`) {
		t.Errorf("a filter that has the member twice: code %d, the server got %q", code, up.params)
	}
}

// A nil Guard guards nothing, and legacy clients' requests are not looked at.
func TestNoGuard(t *testing.T) {
	up := &server{}
	var none *Guard
	if none.Handler(up) != mcp.Handler(up) || none.Relay(nil, mcp.Share{}) != nil {
		t.Error("a nil Guard stands before something")
	}
	none.Close()
	sealer, _ := requeststate.NewSealer()
	h := newGuard(t, "here", sealer, true).Handler(up)
	req := &mcp.Request{Method: spec.MethodToolsCall, Era: spec.Legacy, Params: []byte(`{"requestState":"x"}`)}
	if _, err := h.Serve(t.Context(), req, nil); err != nil || up.params == "" {
		t.Errorf("a legacy client's request: %v", err)
	}
	var refusal *mcp.Refusal
	req.Era = spec.Modern
	if _, err := h.Serve(t.Context(), req, nil); !errors.As(err, &refusal) {
		t.Errorf("a modern client's request: %v, want a refusal", err)
	}
}

func BenchmarkGuard(b *testing.B) {
	sealer, _ := requeststate.NewSealer()
	g, _ := New(Options{Server: "here", Sealer: sealer, NoTasks: true})
	h := &handler{g, nil}
	req := &mcp.Request{Method: spec.MethodToolsCall, Era: spec.Modern, Principal: alice, Params: []byte(`{"name":"add","arguments":{"a":1,"b":2},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"c","version":"0"}}}`)}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := h.unbind(req); err != nil {
			b.Fatal(err)
		}
	}
}
