package server

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/backtest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/observation/trace"
	"github.com/mcpbridge/mcpbridge/internal/settings"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/status"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

const (
	saysEra      = `{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete","tools":[]}}`
	saysOwnError = `{"jsonrpc":"2.0","id":%s,"error":{"code":0,"message":"Unknown prompt: greet"}}`

	bothServe   = "it speaks both eras, and serves each client in its own"
	modernAlone = "its modern side serves all clients, since it has no legacy one: "
	legacyAlone = "its legacy side serves all clients, since it has no modern one"
)

// Servers of one era, and one of both, which gives an error of its own on its legacy side
// alone. It is what a server on the Python SDK 2 does.
var (
	modernAnswers = map[string]string{spec.MethodDiscover: backtest.SaysModern, spec.MethodInitialize: backtest.SaysRefused, spec.MethodToolsList: saysEra, spec.MethodPromptsGet: backtest.SaysInternal}
	legacyAnswers = map[string]string{spec.MethodInitialize: backtest.SaysWelcome, spec.MethodToolsList: backtest.SaysTools, spec.MethodPromptsGet: saysOwnError}
)

// A dual is a server over HTTP of the eras that are set.
type dual struct{ modern, legacy atomic.Bool }

func (d *dual) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	text, _ := io.ReadAll(r.Body)
	m, _ := wire.Parse(text, wire.Options{})
	ofModern := wire.Get(wire.Get(m.Params, "_meta"), spec.MetaProtocolVersion) != nil
	answer := backtest.SaysUnknown
	switch {
	case r.Method != http.MethodPost:
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	case m.ID.IsZero():
		w.WriteHeader(http.StatusAccepted)
		return
	case ofModern && d.modern.Load():
		answer = modernAnswers[m.Method]
	case !ofModern && d.legacy.Load():
		answer = legacyAnswers[m.Method]
	case d.modern.Load():
		answer = backtest.SaysRefused
	}
	code := http.StatusOK
	if answer == backtest.SaysRefused || answer == backtest.SaysUnknown {
		code = http.StatusBadRequest
	}
	backtest.Reply(w, code, "", answer, m.ID)
}

// inTurn is a play of a command that speaks both eras, and serves that of its first request.
func inTurn(p *process) error {
	m, ok := p.next()
	if !ok {
		return nil
	}
	answers := legacyAnswers
	if m.Method == spec.MethodDiscover {
		answers = modernAnswers
	}
	p.answer(m, answers[m.Method])
	return serve(answers)(p)
}

// A listener is a client with a relayed session.
type listener struct{}

func (listener) Message(context.Context, []byte, bool) error { return nil }
func (listener) Rest() (time.Duration, bool, bool)           { return 0, false, false }
func (listener) Retire(time.Duration) bool                   { return false }

// A call is one of a relayed session.
type call struct{ got chan string }

func (c call) Identity() *mcp.Identity               { return nil }
func (c call) Arrival() *trace.Arrival               { return nil }
func (c call) Trace() *trace.Request                 { return nil }
func (c call) Message(context.Context, []byte) error { return nil }
func (c call) Answer(text []byte, _ error)           { c.got <- string(text) }
func (c call) Lost(err error)                        { c.got <- err.Error() }

// asLegacy returns what a legacy client gets for prompts/get: from a session of its own, or if
// it has none from the back.
func asLegacy(t *testing.T, b mcp.Back) string {
	t.Helper()
	req := from(spec.Legacy, spec.MethodInitialize, `{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}`)
	req.Profile.Scope, req.Profile.Revision = "odd/session", spec.LatestLegacy
	m, err := wire.Parse([]byte(`{"jsonrpc":"2.0","id":7,"method":"initialize","params":`+string(req.Params)+`}`), wire.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r, answer, err := b.(mcp.Relayer).OpenRelay(t.Context(), req, &m, listener{})
	switch {
	case err != nil:
		return err.Error()
	case answer != nil && r == nil:
		return string(answer)
	case r == nil:
		return "modern side: " + asModern(t, b)
	}
	defer r.Close()
	r.Start()
	m, _ = wire.Parse([]byte(`{"jsonrpc":"2.0","id":8,"method":"prompts/get","params":{"name":"greet"}}`), wire.Options{})
	c := call{got: make(chan string, 1)}
	r.Call(&m, c)
	return <-c.got
}

// asModern returns what a modern client gets for prompts/get.
func asModern(t *testing.T, b mcp.Back) string {
	t.Helper()
	got, err := backtest.Body(b.Serve(t.Context(), from(spec.Modern, spec.MethodPromptsGet, `{"name":"greet"}`), &backtest.Caller{}))
	if err != nil {
		return err.Error()
	}
	return got
}

// reason returns which side serves whom.
func reason(b mcp.Back) string {
	var u status.Upstream
	b.(status.Teller).Tell(&u)
	return u.EraReason
}

// Each client gets what a direct client of its era gets, of a URL and of a command, which has a
// process for each era. A server of one era serves all by that.
func TestU06EachClientInItsEra(t *testing.T) {
	const own, inner = `"code":0,"message":"Unknown prompt: greet"`, "boom"
	for _, tt := range []struct {
		name           string
		modern, legacy bool
		play           play
		toModern, to   string // what clients of both eras get
		why            string
	}{
		{"both", true, true, inTurn, inner, own, bothServe},
		{"modern", true, false, serve(modernAnswers), inner, "modern side: boom", modernAlone + "it refused"},
		{"legacy", false, true, serve(legacyAnswers), "Unknown prompt: greet", own, legacyAlone},
	} {
		check := func(t *testing.T, s *Server) {
			b := open(t, s)
			synctest.Wait()
			if got := asLegacy(t, b); !strings.Contains(got, tt.to) {
				t.Errorf("a legacy client got %s, want %s", got, tt.to)
			}
			if got := asModern(t, b); !strings.Contains(got, tt.toModern) {
				t.Errorf("a modern client got %s, want %s", got, tt.toModern)
			}
			if got := reason(b); b.Err() != nil || !strings.Contains(got, tt.why) {
				t.Errorf("state %v, reason %q, want %q", b.Err(), got, tt.why)
			}
		}
		bridgetest.RunBubble(t, tt.name+" over HTTP", func(t *testing.T) {
			d := &dual{}
			d.modern.Store(tt.modern)
			d.legacy.Store(tt.legacy)
			srv, rt := backtest.InMemory(t, d)
			o := options(srv.URL + "/mcp")
			o.RoundTripper, o.Settings.Era = rt, settings.EraOfClient
			check(t, New(o))
		})
		bridgetest.RunBubble(t, tt.name+" command", func(t *testing.T) {
			o := options("")
			o.Settings.Era = settings.EraOfClient
			s, _ := byCommand(t, o, tt.play)
			check(t, s)
		})
	}
}

// A side that comes is found after a while, and one that goes is given up when it refuses a
// session; the other side serves meanwhile.
func TestU06SidesComeAndGo(t *testing.T) {
	bridgetest.RunBubble(t, "command", func(t *testing.T) {
		var legacy atomic.Bool
		o := options("")
		o.Settings.Era = settings.EraOfClient
		s, starts := byCommand(t, o, func(p *process) error {
			if m, _ := p.next(); m.Method == spec.MethodDiscover {
				p.answer(m, backtest.SaysModern)
				return serve(modernAnswers)(p)
			} else if legacy.Load() {
				p.answer(m, backtest.SaysWelcome)
				return serve(legacyAnswers)(p)
			} else if !m.ID.IsZero() {
				p.answer(m, backtest.SaysRefused)
			}
			return exited("exit status 1")
		})
		b := open(t, s)
		synctest.Wait()
		if got := asLegacy(t, b); !strings.HasPrefix(got, "modern side: ") {
			t.Errorf("without a legacy side the client got %s", got)
		}
		before := starts.Load()
		time.Sleep(20 * time.Hour)
		if n := starts.Load() - before; n > 0 {
			t.Errorf("%d processes were started within a day for a server that had said that it is modern alone", n)
		}
		legacy.Store(true)
		time.Sleep(10 * time.Hour)
		if got := asLegacy(t, b); !strings.Contains(got, "Unknown prompt") || !strings.Contains(reason(b), bothServe) {
			t.Errorf("with a legacy side the client got %s, reason %q", got, reason(b))
		}
		legacy.Store(false) // but the process that was started before still serves one session
		if got := asLegacy(t, b); !strings.HasPrefix(got, "modern side: ") && !strings.Contains(got, "Unknown prompt") {
			t.Errorf("while the legacy side went the client got %s", got)
		}
		if got := asLegacy(t, b); !strings.HasPrefix(got, "modern side: ") || !strings.Contains(reason(b), modernAlone) {
			t.Errorf("after the legacy side had gone the client got %s, reason %q", got, reason(b))
		}
	})
}

// Until it is known who serves whom the server is starting, and a legacy client waits. Closing
// it ends the wait.
func TestU06Undecided(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := options("")
		o.Settings.Era = settings.EraOfClient
		s, _ := byCommand(t, o, serve(map[string]string{spec.MethodDiscover: backtest.SaysModern}), script("read\nhang"))
		b, err := s.Open(nil)
		if err != nil {
			t.Fatal(err)
		}
		b.Start()
		synctest.Wait()
		if err := b.Err(); err != mcp.ErrStarting {
			t.Errorf("Err = %v, want that it is starting", err)
		}
		got := make(chan string, 1)
		go func() { got <- asLegacy(t, b) }()
		synctest.Wait()
		if err := b.Close(context.Background()); err != nil {
			t.Errorf("Close = %v", err)
		}
		if text := <-got; !strings.Contains(text, "shutting down") {
			t.Errorf("the client got %s, want that mcpbridge is shutting down", text)
		}
	})
}

// The only client of a command finds out its era by itself.
func TestU06OneClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := options("")
		o.Settings.Era, o.OneClient = settings.EraOfClient, true
		s, starts := byCommand(t, o, inTurn)
		b := open(t, s)
		if got := asLegacy(t, b); !strings.Contains(got, "Unknown prompt") || starts.Load() != 1 {
			t.Errorf("the client got %s from %d processes, want its own era from one", got, starts.Load())
		}
		s, starts = byCommand(t, o, inTurn)
		if got := asModern(t, open(t, s)); !strings.Contains(got, "boom") || starts.Load() != 1 {
			t.Errorf("a modern client got %s from %d processes, want its own era from one", got, starts.Load())
		}
	})
}

// Draining starts no process for either side.
func TestU06Drains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := options("")
		o.Settings.Era = settings.EraOfClient
		s, starts := byCommand(t, o, inTurn)
		b := open(t, s)
		synctest.Wait()
		_ = asLegacy(t, b) // in the process that was started before
		b.(interface{ Drain() }).Drain()
		before := starts.Load()
		if got := asLegacy(t, b); !strings.Contains(got, transport.ErrDraining.Error()) || starts.Load() != before {
			t.Errorf("a client after Drain got %s, with %d further processes", got, starts.Load()-before)
		}
	})
}
