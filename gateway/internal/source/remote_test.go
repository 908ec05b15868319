package source_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/budget"
	"github.com/mcpbridge/mcpbridge/internal/limits"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/replicas"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// nobody is the caller of what is neither told nor asked anything.
type nobody struct{}

func (nobody) Notify(context.Context, mcp.Notification) error { return nil }
func (nobody) RequestInput(context.Context, []mcp.InputRequest) ([]mcp.InputResponse, error) {
	return nil, mcp.ErrCannotAsk
}

// callOf returns a call of a principal, of a modern client.
func (rep *replica) callOf(p mcp.Principal) *mcp.Request {
	return &mcp.Request{
		Method: spec.MethodToolsCall, Era: spec.Modern, Revision: spec.LatestModern, Capabilities: []byte("{}"),
		Principal: p, Identity: &mcp.Identity{Principal: p, Scopes: []string{"read"}}, Share: mcp.Share{Principal: p}, Profile: rep.profile(p, []byte("{}")),
		Params: []byte(`{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"x":1},"name":"t","arguments":{"n":1.0e2}}`),
	}
}

func (rep *replica) to(other *replica) replicas.Replica {
	r, _ := rep.engine.View().Member(other.name)
	return r
}

// What a client of a group asks of a server is served at another replica as it is: on behalf of its
// principal, in the same profile, and without what replicas tell each other.
func TestG19ServedAtAnotherReplica(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "a", "b")
		a, b := r.by["a"], r.by["b"]
		var got *mcp.Request
		a.answers = func(req *mcp.Request) (*mcp.Result, error) {
			got = req
			return mcp.NewResult([]byte(`{"resultType":"complete","content":[]}`), nil), nil
		}
		req := b.callOf("ada")
		res, err := b.source.At(b.to(a)).Serve(t.Context(), req, nobody{})
		if err != nil {
			t.Fatal(err)
		}
		if string(wire.Get(res.Body, "content")) != "[]" {
			t.Errorf("the result is %s", res.Body)
		}
		res.Release()
		if got.Principal != "ada" || got.Profile.Scope != a.profile("ada", []byte("{}")).Scope {
			t.Errorf("served for %q in the profile %q", got.Principal, got.Profile.Scope)
		}
		if string(got.Params) != string(req.Params) {
			t.Errorf("served with the params\n%s\nof\n%s", got.Params, req.Params)
		}
	})
}

// A call that is as long, or nests as deeply, as the limits let clients send is served at another replica,
// too. One beyond them is not.
func TestG19LimitsOfCallsAtAnotherReplica(t *testing.T) {
	for _, tt := range []struct {
		name, arguments string
		limits          limits.Set
	}{
		{"long", `{"x":"` + strings.Repeat("x", 17<<20) + `"}`, limits.Set{limits.Body.Key: 18 << 20}},
		{"deep", `{"x":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `}`, limits.Set{limits.Depth.Key: 256}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, set := range []limits.Set{nil, tt.limits} {
				synctest.Test(t, func(t *testing.T) {
					r := newRig(t, "a", "b")
					r.limits = set
					a, b := r.by["a"], r.by["b"]
					served := false
					a.answers = func(req *mcp.Request) (*mcp.Result, error) {
						served = string(wire.Get(req.Params, "arguments")) == tt.arguments
						return mcp.NewResult([]byte(`{"resultType":"complete","content":[]}`), nil), nil
					}
					req := b.callOf("ada")
					req.Params = wire.AppendReplaced(nil, req.Params, wire.Edit{Name: "arguments", Value: []byte(tt.arguments)})
					res, err := b.source.At(b.to(a)).Serve(t.Context(), req, nobody{})
					if (err == nil && served) != (set != nil) {
						t.Errorf("with the limits %v: served as it was: %v, %v", set, served, err)
					}
					if err == nil {
						res.Release()
					}
					time.Sleep(time.Second) // net/http closes a connection a while after it has refused a body
				})
			}
		})
	}
}

// A scarce memory refuses what it has no room for.
type scarce struct{ *budget.Budget }

func (m scarce) Account(s mcp.Share) *budget.Account { return m.Budget.Account(s) }
func (scarce) Refuse() error                         { return mcp.RefuseForNow("the memory is used up") }

// What is asked at another replica takes of its memory while it is served. A call for which there is none
// is refused, and was not run.
func TestG19MemoryOfCallsAtAnotherReplica(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "b")
		r.memory = scarce{budget.New(4 << 20)}
		a, b := r.add("a"), r.by["b"]
		time.Sleep(2 * replicas.Heartbeat)
		served := 0
		a.answers = func(*mcp.Request) (*mcp.Result, error) {
			served++
			return mcp.NewResult([]byte(`{"resultType":"complete","content":[]}`), nil), nil
		}
		call := func(size int) error {
			req := b.callOf("ada")
			req.Params = wire.AppendReplaced(nil, req.Params, wire.Edit{Name: "arguments", Value: []byte(`{"x":"` + strings.Repeat("x", size) + `"}`)})
			res, err := b.source.At(b.to(a)).Serve(t.Context(), req, nobody{})
			if err == nil {
				res.Release()
			}
			return err
		}
		if err := call(3 << 20); err == nil || !strings.Contains(err.Error(), "the memory is used up") || strings.Contains(err.Error(), "taken effect") || served > 0 {
			t.Errorf("a call without room: %v, %d were served; want that it was not run, and why", err, served)
		}
		for n := range 50 { // each gives back what it has
			if err := call(100 << 10); err != nil || served != n+1 {
				t.Fatalf("call %d: %v, %d were served", n, err, served)
			}
		}
		time.Sleep(time.Second) // net/http closes a connection a while after it has refused a body
	})
}

// A replica that takes the profile for another one refuses, and one that can't be reached is told by
// the error of what reaches it.
func TestG19NotServedAtAnotherReplica(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "a", "b")
		a, b := r.by["a"], r.by["b"]
		a.differs = true
		if _, err := b.source.At(b.to(a)).Serve(t.Context(), b.callOf("ada"), nobody{}); err == nil || !strings.Contains(err.Error(), "configured alike") {
			t.Errorf("another profile: %v", err)
		}
		r.cut("a", "b", true)
		if _, err := b.source.At(b.to(a)).Serve(t.Context(), b.callOf("ada"), nobody{}); err == nil || err.Error() != "the network is cut" {
			t.Errorf("a replica that can't be reached: %v", err)
		}
	})
}
