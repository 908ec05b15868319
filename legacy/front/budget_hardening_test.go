package front

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/budget"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/legacytest"
	"github.com/mcpbridge/mcpbridge/internal/limits"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A smallMemory is memory of which a share gets half.
type smallMemory struct {
	*budget.Budget
	refused atomic.Int32
}

func (m *smallMemory) Account(s mcp.Share) *budget.Account { return m.Budget.Account(s) }

func (m *smallMemory) Refuse() error {
	m.refused.Add(1)
	return &mcp.Refusal{Later: true, Err: wire.Errorf(spec.CodeInternal, "no memory")}
}

// What waits for a client is memory until it has taken it: an answer that there is none
// for becomes an error, and a message before it is lost, which is told of (CWE-770).
func TestAnswersForClientsDrawOnTheMemory(t *testing.T) {
	memory := &smallMemory{Budget: budget.New(2 << 20)}
	st := newRig(t, func(o *Options) { o.Memory = memory; o.Limits = limits.Set{"client_events": 4 << 20} })
	big := strings.Repeat("x", 700<<10)
	var noteErr error
	st.handle = func(ctx context.Context, req *mcp.Request, x mcp.Caller) (string, error) {
		if strings.Contains(string(req.Params), "note") {
			noteErr = x.Notify(ctx, mcp.Notification{Method: spec.NotifyMessage, Params: []byte(`{"level":"error","data":"` + big + `"}`)})
			return `{"resultType":"complete","content":[]}`, nil
		}
		if strings.Contains(string(req.Params), "stream") {
			_ = x.Notify(ctx, mcp.Notification{Method: spec.NotifyMessage, Params: []byte(`{"level":"error","data":"small"}`)})
		}
		return `{"resultType":"complete","content":[{"type":"text","text":"` + big + `"}]}`, nil
	}
	g := st.Enter(t, "2025-06-18")
	for _, name := range []string{"plain", "stream"} {
		r := g.Call(t, "tools/call", `{"name":"`+name+`"}`)
		if !strings.Contains(r.Body, `"code":-32603`) || !strings.Contains(r.Body, "memory") || strings.Contains(r.Body, "xxx") {
			t.Errorf("%s: a call whose answer there is no memory for = %.200s, want an error that says so", name, r.Body)
		}
		if hint := r.Header.Get("Retry-After"); (hint != "") != (name == "plain") {
			t.Errorf("%s: Retry-After = %q", name, hint)
		}
	}
	if r := g.Call(t, "tools/call", `{"name":"note"}`); noteErr == nil || !strings.Contains(r.Body, `"content":[]`) {
		t.Errorf("a message that there is no memory for: error %v, then %.200s; want one, and the answer", noteErr, r.Body)
	}
	if n := memory.refused.Load(); n != 3 {
		t.Errorf("%d refusals were told of, want 3", n)
	}
	if r := g.Endpoint.Send(t, "DELETE", "", "Mcp-Session-Id", g.ID); r.Status != 204 {
		t.Errorf("DELETE = %d", r.Status)
	}
	bridgetest.Eventually(t, "all given back", func() bool { return memory.Used() <= 128<<10 })
}

// What a session keeps for a client that has read it goes before its next message is
// refused.
func TestOwnWrittenEventsGoFirst(t *testing.T) {
	memory := &smallMemory{Budget: budget.New(2 << 20)}
	st := newRig(t, func(o *Options) { o.Memory = memory; o.Limits = limits.Set{"client_events": 4 << 20} })
	big := strings.Repeat("x", 200<<10)
	st.handle = func(ctx context.Context, _ *mcp.Request, x mcp.Caller) (string, error) {
		err := x.Notify(ctx, mcp.Notification{Method: spec.NotifyMessage, Params: []byte(`{"level":"error","data":"` + big + `"}`)})
		return `{"resultType":"complete","content":[]}`, err
	}
	g := st.Enter(t, "2025-11-25")
	for n := range 5 {
		if r := g.Call(t, "tools/call", `{"name":"a"}`); !strings.Contains(r.Body, big) || !strings.Contains(r.Body, `"content":[]`) {
			t.Errorf("call %d = %.200s, want its message and its answer", n, r.Body)
		}
	}
	if n := memory.refused.Load(); n != 0 {
		t.Errorf("%d refusals, want none", n)
	}
}

// Sessions that a client keeps on connections are memory as those over HTTP are.
func TestPipeSessionsDrawOnTheMemory(t *testing.T) {
	memory := &smallMemory{Budget: budget.New(512 << 10)}
	st := newRig(t, func(o *Options) { o.Memory = memory })
	const most = 40
	refused := false
	for n := 0; n < most && !refused; n++ {
		l := legacytest.NewLine(t, st.front.OpenConn)
		l.Send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"` + strings.Repeat("c", 10<<10) + `"}}}`)
		refused = strings.Contains(l.Next(), "no memory")
	}
	if !refused {
		t.Errorf("%d sessions of 10 KiB were taken with 512 KiB for all, want fewer", most)
	}
}
