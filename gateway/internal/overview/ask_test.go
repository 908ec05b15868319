package overview

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A server answers what it gets with body, which is of no use once it is released.
type server struct {
	got  *mcp.Request
	x    mcp.Caller
	body []byte
	err  error
}

func (s *server) Serve(_ context.Context, req *mcp.Request, x mcp.Caller) (*mcp.Result, error) {
	s.got, s.x = req, x
	if s.err != nil {
		return nil, s.err
	}
	return mcp.NewResult(s.body, func() { copy(s.body, "released") }), nil
}

func admit(req *mcp.Request) error {
	req.Profile.Scope = "docs"
	return nil
}

// A request is one of the principal admin, in the newest revision, whatever the parameters
// say of their sender.
func TestAsk(t *testing.T) {
	s := &server{body: []byte(`{"tools":[]}`)}
	got, err := Ask(t.Context(), admit, s, nil, spec.MethodToolsCall, json.RawMessage(`{"name":"x","_meta":{"io.modelcontextprotocol/protocolVersion":"1999","progressToken":1},"arguments":{"a":1.0}}`))
	if err != nil || string(got) != `{"tools":[]}` {
		t.Fatalf("Ask() = %s, %v; want the result as it was before its release", got, err)
	}
	if s.got.Principal != Principal || s.got.Share != Share() || s.got.Era != spec.Modern || s.got.Revision != spec.Revisions(spec.Modern)[0] || s.got.Profile.Scope != "docs" || string(s.got.Capabilities) != "{}" {
		t.Errorf("the request is %+v", s.got)
	}
	meta := wire.Get(s.got.Params, "_meta")
	if v, _ := wire.GetString(meta, spec.MetaProtocolVersion); v != string(spec.Revisions(spec.Modern)[0]) || wire.Get(meta, "progressToken") != nil || mcp.ClientName(wire.Get(meta, spec.MetaClientInfo)) != "mcpbridge-admin/1" {
		t.Errorf("_meta is %s", meta)
	}
	if args := wire.Get(s.got.Params, "arguments"); string(args) != `{"a":1.0}` || strings.Count(string(s.got.Params), `"_meta"`) != 1 {
		t.Errorf("the parameters are %s", s.got.Params)
	}
}

// Only lists and tools are asked for: the address is not one more endpoint.
func TestHardeningAskOtherMethods(t *testing.T) {
	for _, method := range []string{"", "initialize", "resources/read", "completion/complete", "tools/", "tools/LIST", "subscriptions/listen", "notifications/cancelled"} {
		s := &server{body: []byte(`{}`)}
		_, err := Ask(t.Context(), admit, s, nil, method, nil)
		var we *wire.Error
		if !errors.As(err, &we) || we.Code != spec.CodeMethodNotFound || s.got != nil {
			t.Errorf("Ask(%q) = %v, served %v; want a refusal", method, err, s.got != nil)
		}
	}
}

// What is refused does not reach the server, and a server's error is its own.
func TestAskFails(t *testing.T) {
	s := &server{body: []byte(`{}`)}
	if _, err := Ask(t.Context(), func(*mcp.Request) error { return errNo }, s, nil, spec.MethodToolsList, nil); err != errNo || s.got != nil {
		t.Errorf("refused: %v, served %v", err, s.got != nil)
	}
	s.err = errNo
	if got, err := Ask(t.Context(), admit, s, nil, spec.MethodToolsList, json.RawMessage("{}")); err != errNo || got != nil {
		t.Errorf("failed: %s, %v", got, err)
	}
}

// A server can't ask whoever uses the address anything.
func TestAskIsNotAsked(t *testing.T) {
	s := &server{body: []byte(`{}`)}
	if _, err := Ask(t.Context(), admit, s, nil, spec.MethodToolsList, nil); err != nil {
		t.Fatal(err)
	}
	if answers, err := s.x.RequestInput(t.Context(), []mcp.InputRequest{{Method: spec.MethodElicit}}); !errors.Is(err, mcp.ErrCannotAsk) || answers != nil {
		t.Errorf("RequestInput() = %v, %v", answers, err)
	}
	if err := s.x.Notify(t.Context(), mcp.Notification{Method: spec.NotifyProgress}); err != nil {
		t.Errorf("Notify() = %v", err)
	}
}
