package back

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/backtest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// works answers all requests until it gets a call of the tool "crash", with which it ends.
func works(p *backtest.Peer) {
	for {
		text, err := p.Conn.Read()
		if err != nil {
			return
		}
		m, err := wire.Parse(text, wire.Options{})
		name, _ := wire.GetString(m.Params, "name")
		switch {
		case err != nil || m.Kind() != wire.Request:
		case name == "crash":
			_ = p.Conn.Close()
			return
		case name == "fail":
			p.Write(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32603,"message":"no"}}`, m.ID)
		default:
			p.Result(m.ID, `{"resultType":"complete","content":[],"tools":[]}`)
		}
	}
}

// working returns what starts processes that run works.
func working(t *testing.T) func(context.Context) (transport.Conn, error) {
	l := transport.NewLauncher(func() (transport.Conn, error) {
		near, far := transport.NewPipe()
		go works(&backtest.Peer{T: t, Conn: far})
		return near, nil
	}, nil)
	return func(ctx context.Context) (transport.Conn, error) {
		p, err := l.Dial(ctx)
		if err != nil {
			return nil, err
		}
		return p, nil
	}
}

// The clients of a process that died are told with their next result that it is another one,
// whatever their era.
func TestU05LostStateIsTold(t *testing.T) {
	for _, tt := range []struct {
		name    string
		request func(method, params string) *mcp.Request
	}{{"a legacy client", upRequest}, {"a modern client", upModernRequest}} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				counts := &backtest.Metrics{}
				b := newUpBack(t, Options{Options: upstream.Options{Metrics: counts}, Dial: working(t)})
				told := func(method, tool string) (string, bool) {
					t.Helper()
					params := `{}`
					if tool != "" {
						params = `{"name":"` + tool + `"}`
					}
					res, err := b.Serve(t.Context(), tt.request(method, params), &backtest.Caller{})
					if err != nil {
						return "", false
					}
					defer res.Release()
					return res.StateLost, true
				}
				told("tools/call", "crash")
				time.Sleep(time.Minute)
				for _, step := range []struct{ method, tool, want string }{
					{"tools/call", "x", "exit"}, // the call that crashed it may have had
					{"tools/call", "x", ""},
					{"tools/call", "crash", ""},
					{"tools/call", "fail", ""},
					{"tools/list", "", "exit"},
					{"tools/call", "crash", ""},
				} {
					if why, _ := told(step.method, step.tool); why != step.want {
						t.Errorf("%s %s told %q, want %q", step.method, step.tool, why, step.want)
					}
					time.Sleep(time.Minute)
				}
				if n := counts.Count("lost exit"); n != 3 {
					t.Errorf("%d losses were counted, want 3", n)
				}
			})
		})
	}
}

// A call that was under way as its server was replaced has its answer from the former one, and what it has
// left in the process is lost with that: the next one's results say so.
func TestU05CallAsItsServerIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		counts := &backtest.Metrics{}
		o := upstream.Options{Losses: upstream.NewLosses(), Metrics: counts}
		former := newUpBack(t, Options{Options: o, Dial: working(t)})
		next := newUpBack(t, Options{Options: o, Dial: working(t)})
		o.Losses.Replaced("scripted") // when there is no process yet
		told := func(b *Back) string {
			t.Helper()
			res, err := b.Serve(t.Context(), upModernRequest("tools/call", `{"name":"x"}`), &backtest.Caller{})
			if err != nil {
				t.Fatal(err)
			}
			defer res.Release()
			return res.StateLost
		}
		if why := told(former); why != "" {
			t.Errorf("its own result told %q", why)
		}
		if err := former.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"replaced", ""} {
			if why := told(next); why != want {
				t.Errorf("a result of the next server told %q, want %q", why, want)
			}
		}
		if n := counts.Count("lost replaced"); n != 1 {
			t.Errorf("%d losses were counted, want 1", n)
		}
	})
}

// Of two principals whose clients look the same, only the one whose state is lost is told, once,
// though the other asks first.
func TestU05LossIsOneOfItsPrincipal(t *testing.T) {
	for _, tt := range []struct {
		name    string
		request func(method, params string) *mcp.Request
	}{{"legacy clients", upRequest}, {"modern clients", upModernRequest}} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newUpBack(t, Options{Dial: working(t)})
				for i, step := range []struct{ who, method, tool, want string }{
					{"ada", "tools/call", "x", ""}, {"bob", "tools/list", "", ""},
					{"eve", "tools/call", "crash", ""},
					{"bob", "tools/call", "x", ""}, {"ada", "tools/call", "x", "exit"},
					{"ada", "tools/call", "x", ""}, {"bob", "tools/call", "x", ""},
					{"eve", "tools/call", "crash", ""},
					{"bob", "tools/list", "", "exit"}, {"ada", "tools/call", "x", "exit"},
					{"bob", "tools/call", "x", ""}, {"ada", "tools/list", "", ""},
				} {
					params := `{}`
					if step.tool != "" {
						params = `{"name":"` + step.tool + `"}`
					}
					req := tt.request(step.method, params)
					req.Share.Principal = mcp.Principal(step.who)
					if req.Session != "" {
						req.Session = "session of " + step.who
					}
					why := ""
					if res, err := b.Serve(t.Context(), req, &backtest.Caller{}); err == nil {
						why = res.StateLost
						res.Release()
					}
					if why != step.want {
						t.Errorf("step %d: %s of %s told %q, want %q", i, step.method, step.who, why, step.want)
					}
					time.Sleep(time.Minute)
				}
			})
		})
	}
}
