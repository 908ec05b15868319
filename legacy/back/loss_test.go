package back

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/backtest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/legacytest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/observation/trace"
	"github.com/mcpbridge/mcpbridge/internal/settings"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// works answers the handshake and all calls, but the tool "crash", with which it exits.
func works(c *child) {
	serves(c)
	for {
		text, err := c.peer.Conn.Read()
		if err != nil {
			return
		}
		m, err := wire.Parse(text, wire.Options{})
		name, _ := wire.GetString(m.Params, "name")
		switch {
		case err != nil || m.Kind() != wire.Request:
		case name == "crash":
			c.exit("out of memory")
		case name == "fail":
			c.peer.Write(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32603,"message":"no"}}`, m.ID)
		default:
			c.peer.Result(m.ID, `{"content":[],"tools":[]}`)
		}
	}
}

// lossRig returns a Back of a command that works.
func lossRig(t *testing.T, o Options) (*Back, *backtest.Metrics) {
	counts := &backtest.Metrics{}
	o.Metrics = counts
	o.Launcher = transport.NewLauncher(func() (transport.Conn, error) {
		near, far := transport.NewPipe()
		c := &child{Conn: near, peer: legacytest.NewConnPeer(t, far), gone: make(chan struct{})}
		go works(c)
		return c, nil
	}, nil)
	return newTestBack(t, o), counts
}

// told returns what a call of a tool says of state that is lost, and whether it succeeded. Each
// client has a scope of its own.
func told(t *testing.T, b *Back, scope, tool string) (string, bool) {
	t.Helper()
	req := ask(spec.MethodToolsCall, `{"name":"`+tool+`"}`)
	if tool == "" {
		req = ask(spec.MethodToolsList, "")
	}
	req.Profile.Scope, req.ClientInfo = scope, []byte(`{"name":"`+scope+`"}`)
	res, err := b.Serve(t.Context(), req, &backtest.Caller{})
	if err != nil {
		return "", false
	}
	defer res.Release()
	return res.StateLost, true
}

// A client whose state went with its process or session is told with its next result, once,
// and why; another client is told nothing.
func TestU05LostStateIsTold(t *testing.T) {
	var each = Options{MaxSessions: 2, MaxSessionsEach: 1}
	for _, tt := range []struct {
		name  string
		opts  Options
		loses func(t *testing.T, b *Back)
		cause string
	}{
		{"unused for long", Options{ClientIdle: 30 * time.Minute}, func(*testing.T, *Back) { time.Sleep(31 * time.Minute) }, "idle"},
		{"a crash", Options{}, func(t *testing.T, b *Back) { told(t, b, "one", "crash") }, "exit"},
		{"a limit", each, func(t *testing.T, b *Back) { told(t, b, "two", "") }, "limit"},
		{"another process", Options{}, comesBack, "alone"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, counts := lossRig(t, tt.opts)
				if why, ok := told(t, b, "one", "x"); why != "" || !ok {
					t.Fatalf("the first result: %q, %v", why, ok)
				}
				tt.loses(t, b)
				time.Sleep(time.Minute) // the server may have to be started again
				if why, ok := told(t, b, "one", "fail"); why != "" || ok {
					t.Errorf("an error told %q", why)
				}
				if why, ok := told(t, b, "one", "x"); why != tt.cause || !ok {
					t.Errorf("the next result told %q, %v, want %q", why, ok, tt.cause)
				}
				if why, _ := told(t, b, "one", "x"); why != "" {
					t.Errorf("the result after that told %q, want nothing", why)
				}
				if n := counts.Count("lost " + tt.cause); n != 1 {
					t.Errorf("%d losses were counted, want 1", n)
				}
			})
		})
	}
}

// comesBack has the client "one" open a session of its own, of a command that locks.
func comesBack(t *testing.T, b *Back) {
	b.opts.Launcher.SetLocks(true)
	time.Sleep(time.Second)
	m := wire.Message{ID: wire.NumberID(7), Method: "initialize", Text: []byte(`{"jsonrpc":"2.0","id":7,"method":"initialize","params":{}}`)}
	req := ask("initialize", "")
	req.Profile.Scope, req.Profile.ClientInfo = "own", []byte(`{"name":"one"}`)
	r, _, err := b.OpenRelay(t.Context(), req, &m, &nobody{})
	if err != nil {
		t.Fatal(err)
	}
	r.Start()
	if err := r.Send(t.Context(), parse(t, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)); err != nil {
		t.Fatal(err)
	}
	r.Close()
}

// Who has only listed has no state, and one session of all clients is told to each of them.
func TestU05WhoIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, _ := lossRig(t, Options{})
		call := func(who mcp.Principal, tool string) string {
			t.Helper()
			req := ask(spec.MethodToolsCall, `{"name":"`+tool+`"}`)
			if tool == "" {
				req = ask(spec.MethodToolsList, "")
			}
			req.Share.Principal = who
			res, err := b.Serve(t.Context(), req, &backtest.Caller{})
			if err != nil {
				t.Fatal(err)
			}
			defer res.Release()
			return res.StateLost
		}
		call("ada", "x")
		call("bob", "x")
		call("eve", "")
		_, _ = told(t, b, "test/1", "crash")
		time.Sleep(time.Minute)
		for _, tt := range []struct {
			who  mcp.Principal
			want string
		}{{"eve", ""}, {"bob", "exit"}, {"ada", "exit"}, {"ada", ""}} {
			if why := call(tt.who, ""); why != tt.want {
				t.Errorf("%s was told %q, want %q", tt.who, why, tt.want)
			}
		}
	})
}

// A session that a server over HTTP has lost is a loss, though the request is repeated.
func TestU05LostSessionOverHTTP(t *testing.T) {
	p := legacytest.NewHTTPServer(t)
	var calls atomic.Int32
	p.On["tools/call"] = func(w http.ResponseWriter, _ *http.Request, m wire.Message) {
		if calls.Add(1) == 2 {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		legacytest.AnswerJSON(w, m.ID, `{"content":[]}`)
	}
	p.On["ping"] = func(w http.ResponseWriter, _ *http.Request, _ wire.Message) { w.WriteHeader(http.StatusNotFound) }
	b := newTestBack(t, Options{Options: upstream.Options{URL: p.URL, Settings: settings.Server{Idle: time.Hour}}})
	for i, want := range []string{"", "session", ""} {
		if why, ok := told(t, b, "one", "x"); why != want || !ok {
			t.Errorf("result %d told %q, %v, want %q", i, why, ok, want)
		}
	}
}

// A call that was under way as its server was replaced has its answer from the former one, and what it has
// left there is lost with that: the next one's results say so, also in a session that is open already.
func TestU05CallAsItsServerIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := Options{Options: upstream.Options{Losses: upstream.NewLosses()}}
		former, counts := lossRig(t, o)
		next, _ := lossRig(t, o)
		o.Losses.Replaced(former.opts.Name) // when there is no session yet
		for _, step := range []struct {
			b    *Back
			tool string
		}{{former, "x"}, {next, ""}, {former, "x"}} {
			if why, ok := told(t, step.b, "one", step.tool); why != "" || !ok {
				t.Errorf("a result told %q, %v, want nothing: it is not lost yet", why, ok)
			}
		}
		if err := former.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"replaced", ""} {
			if why, ok := told(t, next, "one", "x"); why != want || !ok {
				t.Errorf("a result of the next server told %q, %v, want %q", why, ok, want)
			}
		}
		if n := counts.Count("lost replaced"); n != 1 {
			t.Errorf("%d losses were counted, want 1", n)
		}
	})
}

// The session of a legacy client ends with its process, and the log says what that means.
func TestU05LostRelayIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, counts := lossRig(t, Options{})
		m := wire.Message{ID: wire.NumberID(7), Method: "initialize", Text: []byte(`{"jsonrpc":"2.0","id":7,"method":"initialize","params":{}}`)}
		r, _, err := b.OpenRelay(t.Context(), ask("initialize", ""), &m, &nobody{})
		if err != nil {
			t.Fatal(err)
		}
		r.Start()
		if err := r.Send(t.Context(), parse(t, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)); err != nil {
			t.Fatal(err)
		}
		r.Call(parse(t, `{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"crash"}}`), nobodysCall{})
		<-r.Done()
		r.Close()
		synctest.Wait()
		if n := counts.Count("lost exit"); n != 1 {
			t.Errorf("%d losses were counted, want 1", n)
		}
	})
}

func parse(t *testing.T, text string) *wire.Message {
	t.Helper()
	m, err := wire.Parse([]byte(text), wire.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return &m
}

// nobodysCall is a relayed call of a client that hears nothing.
type nobodysCall struct{}

func (nobodysCall) Identity() *mcp.Identity               { return nil }
func (nobodysCall) Arrival() *trace.Arrival               { return nil }
func (nobodysCall) Trace() *trace.Request                 { return nil }
func (nobodysCall) Message(context.Context, []byte) error { return nil }
func (nobodysCall) Answer([]byte, error)                  {}
func (nobodysCall) Lost(error)                            {}

// The process of a client that has left ends, and nobody has lost anything by that; that of clients
// who share one does not.
func TestG14ClientThatLeftHasLostNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, counts := lossRig(t, Options{MaxSessions: 4})
		of := func(scope string, revision spec.Revision) *mcp.Request {
			req := ask(spec.MethodToolsCall, `{"name":"x"}`)
			req.Profile.Scope, req.Profile.Revision = scope, revision
			return req
		}
		own, shared := of("own", spec.LatestLegacy), of("shared", "")
		for _, req := range []*mcp.Request{own, shared} {
			if _, err := body(b.Serve(t.Context(), req, &backtest.Caller{})); err != nil {
				t.Fatal(err)
			}
			b.ClientLeft(req)
		}
		synctest.Wait()
		if n := len(b.sessions("own")); n != 0 {
			t.Errorf("%d sessions of a client that has left", n)
		}
		if n := len(b.sessions("shared")); n != 1 {
			t.Errorf("%d sessions of clients who share one, want 1", n)
		}
		if n := counts.Count("lost idle"); n != 0 {
			t.Errorf("%d clients have lost something", n)
		}
	})
}
