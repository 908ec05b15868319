package owner

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/requeststate"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A clerk is a server that has one task, x, and tells others' requests which one it has not.
type clerk struct {
	asked  []string // ids that it was asked for
	obeys  bool     // whether it has a result for any id
	refuse bool     // whether its errors are refusals
}

func (c *clerk) Serve(ctx context.Context, req *mcp.Request, caller mcp.Caller) (*mcp.Result, error) {
	if req.Method == spec.MethodToolsCall {
		return modernResult(`{"resultType":"task","taskId":"x"}`), nil
	}
	id, _ := wire.GetString(req.Params, "taskId")
	c.asked = append(c.asked, id)
	if c.obeys || id == "x" {
		return modernResult(`{"resultType":"complete"}`), nil
	}
	if err := caller.Notify(ctx, mcp.Notification{Method: spec.NotifyMessage, Params: fmt.Appendf(nil, `{"data":%q}`, "looking for "+id)}); err != nil {
		return nil, err
	}
	err := &wire.Error{Code: spec.CodeInvalidParams, Message: "no task " + id, Data: fmt.Appendf(nil, `{"taskId":%q}`, id)}
	if c.refuse {
		return nil, &mcp.Refusal{Err: err}
	}
	return nil, err
}

func modernResult(body string) *mcp.Result {
	res := mcp.NewResult([]byte(body), nil)
	res.Era = spec.Modern
	return res
}

// A client notes the notifications that it gets.
type client struct {
	mcp.Caller
	told string
}

func (c *client) Notify(_ context.Context, n mcp.Notification) error {
	c.told += string(n.Params)
	return nil
}

// Another principal's task looks like one that the server does not have: the same error, and
// the same notifications, with the id that the client sent.
func TestT03AnothersTaskIsUnknown(t *testing.T) {
	const id = `it's "x"`
	for _, refuse := range []bool{false, true} {
		sealer, _ := requeststate.NewSealer()
		c := &clerk{refuse: refuse}
		h := newGuard(t, "here", sealer, false).Handler(c)
		if _, code := ask(t, h, alice, spec.MethodToolsCall, `{"name":"t"}`); code != 0 {
			t.Fatal(code)
		}
		get := func(who mcp.Principal, id string) (told string, err error) {
			bob := &client{}
			req := &mcp.Request{Method: spec.MethodTaskGet, Params: []byte(`{"taskId":` + string(wire.Quote(id)) + `}`), Era: spec.Modern, Principal: who, Share: mcp.Share{Principal: who}}
			_, err = h.Serve(t.Context(), req, bob)
			return bob.told, err
		}
		if _, err := get(alice, "x"); err != nil {
			t.Errorf("her own: %v", err)
		}
		foreign, wantErr := get(bob, "x")
		unknown, err := get(bob, "y")
		var got, want *wire.Error
		if !errors.As(wantErr, &got) || !errors.As(err, &want) {
			t.Fatalf("errors are %v and %v", wantErr, err)
		}
		asY := func(s string) string { return strings.ReplaceAll(s, `"x"`, `"y"`) }
		if got.Code != want.Code || got.Message != "no task x" || want.Message != "no task y" || asY(string(got.Data)) != string(want.Data) {
			t.Errorf("hers is %v %s, none is %v %s", got, got.Data, want, want.Data)
		}
		if foreign != `{"data":"looking for x"}` || unknown != `{"data":"looking for y"}` {
			t.Errorf("told %s and %s", foreign, unknown)
		}
		var one, other *mcp.Refusal
		if errors.As(wantErr, &one) != refuse || errors.As(err, &other) != refuse {
			t.Errorf("refusals are %v and %v, want %v", one, other, refuse)
		}
		if len(c.asked) != 3 || c.asked[1] == "x" || len(c.asked[1]) != 36 || c.asked[2] != "y" {
			t.Errorf("the server was asked for %q", c.asked)
		}
		c.obeys = true
		if _, err := get(bob, "x"); !errors.As(err, &got) || got.Message != "Task not found" {
			t.Errorf("from a server that has all: %v", err)
		}
	}
	if got := string((substitution{from: "f", to: id}).text([]byte(`"f"`))); wire.Unquote([]byte(got)) != id {
		t.Errorf("an id with quotes became %s", got)
	}
}
