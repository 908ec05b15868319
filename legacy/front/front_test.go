package front

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/backtest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/legacytest"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// A rig is a front over a real socket, and what stands behind it: an upstream
// scripted by the test.
type rig struct {
	*legacytest.Endpoint
	backtest.Metrics
	front *Front

	mu       sync.Mutex
	handle   func(ctx context.Context, req *mcp.Request, x mcp.Caller) (string, error)
	describe func() (*mcp.Description, error)
	refused  map[string]bool // URIs
	away     int             // so many times, the upstream can't be reached
	later    bool            // it can't report changes of lists at the moment
	subs     []*subscription
	got      []*mcp.Request
	who      mcp.Principal
}

// A subscription is a session's subscription.
type subscription struct {
	st     *rig
	mail   *fanout.Mailbox
	mu     sync.Mutex
	held   map[string]bool
	lists  mcp.Filter
	closed bool
}

func (p *subscription) Add(_ context.Context, want mcp.Filter) (mcp.Filter, error) {
	p.st.mu.Lock()
	away, later := p.st.away > 0, p.st.later
	p.st.away--
	p.st.mu.Unlock()
	if away {
		return mcp.Filter{}, errors.New("nobody there")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	honored := want
	honored.URIs = nil
	for _, uri := range want.URIs {
		if !p.st.refused[uri] {
			honored.URIs = append(honored.URIs, uri)
			p.held[uri] = true
		}
	}
	if later {
		return mcp.Filter{URIs: honored.URIs}, mcp.ErrNotNow
	}
	if len(want.URIs) == 0 {
		p.lists = want
	}
	return honored, nil
}

func (p *subscription) Remove(uris ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, uri := range uris {
		delete(p.held, uri)
	}
}

func (p *subscription) holds(uri string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.held[uri]
}

func (p *subscription) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
}

const allOffered = `{"tools":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true},"logging":{}}`

func newRig(t *testing.T, change func(*Options)) *rig {
	st := newScripted()
	f := st.open(t, change)
	st.Endpoint = legacytest.Serve(t, f, st.principal)
	return st
}

// newScripted returns a rig without a front.
func newScripted() *rig {
	st := &rig{who: "ada", refused: map[string]bool{}}
	st.describe = func() (*mcp.Description, error) {
		return &mcp.Description{Capabilities: []byte(allOffered), ServerInfo: []byte(`{"name":"up","version":"7"}`)}, nil
	}
	return st
}

// open returns the rig's front, which is not served.
func (st *rig) open(t *testing.T, change func(*Options)) *Front {
	o := Options{Name: "docs", Handler: st, Describer: st, Subscriber: st, Instance: "inst", Metrics: st,
		Admit: func(r *mcp.Request) error { r.Profile.Scope = "docs/" + r.Session; return nil }}
	if change != nil {
		change(&o)
	}
	f, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	st.front = f
	return f
}

func (st *rig) principal() mcp.Principal {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.who
}

func (st *rig) Serve(ctx context.Context, req *mcp.Request, x mcp.Caller) (*mcp.Result, error) {
	st.mu.Lock()
	st.got = append(st.got, req)
	handle := st.handle
	st.mu.Unlock()
	if handle == nil {
		return nil, errors.New("nothing is served")
	}
	text, err := handle(ctx, req, x)
	if err != nil {
		return nil, err
	}
	res := mcp.NewResult([]byte(text), nil)
	res.Era = spec.Modern
	return res, nil
}

func (st *rig) Describe(context.Context, *mcp.Request) (*mcp.Description, error) {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.describe()
}

func (st *rig) Subscribe(_ *mcp.Request, mail *fanout.Mailbox, _ mcp.SubscribeOptions) (mcp.Subscription, error) {
	p := &subscription{st: st, mail: mail, held: map[string]bool{}}
	st.mu.Lock()
	defer st.mu.Unlock()
	st.subs = append(st.subs, p)
	return p, nil
}
