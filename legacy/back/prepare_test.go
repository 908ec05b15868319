package back

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/backtest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/legacytest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// forgetful has a server forget its sessions when the returned function is called: from then on it
// answers what is of an older one with a status.
func forgetful(p *legacytest.HTTPServer, status int) (forget func()) {
	var lives atomic.Int32
	session := func() string { return fmt.Sprint("session-", lives.Load()) }
	for _, method := range []string{spec.MethodPing, spec.MethodToolsCall, spec.MethodSetLevel, spec.NotifyRootsListChanged} {
		on := p.On[method]
		p.On[method] = func(w http.ResponseWriter, r *http.Request, m wire.Message) {
			switch {
			case r.Header.Get(spec.HeaderSession) != session():
				w.WriteHeader(status)
			case on != nil:
				on(w, r, m)
			case m.Kind() == wire.Request:
				legacytest.AnswerJSON(w, m.ID, `{}`)
			default:
				w.WriteHeader(http.StatusAccepted)
			}
		}
	}
	p.On[spec.MethodInitialize] = func(w http.ResponseWriter, _ *http.Request, m wire.Message) {
		w.Header().Set(spec.HeaderSession, session())
		legacytest.AnswerJSON(w, m.ID, legacytest.InitializeResult(p.Revision, p.Capabilities))
	}
	return func() { lives.Add(1) }
}

// A server that has lost the session says so of what is sent before a call, which is then sent in
// the next session.
func TestM2L03LostBeforeTheCallIsSent(t *testing.T) {
	for _, status := range []int{http.StatusNotFound, http.StatusBadRequest} {
		for _, tt := range []struct {
			name          string
			first, second func(b *Back) *mcp.Request
		}{
			{"roots",
				func(*Back) *mcp.Request { return rooted("ada") },
				func(b *Back) *mcp.Request { b.RootsChanged(rooted("ada")); return rooted("ada") }},
			{"log level",
				func(*Back) *mcp.Request { return leveled("info") },
				func(*Back) *mcp.Request { return leveled("debug") }},
		} {
			bridgetest.RunBubble(t, fmt.Sprint("M2L-03 ", tt.name, " ", status), func(t *testing.T) {
				p := legacytest.NewMemoryServer(t)
				p.On[spec.MethodToolsCall] = func(w http.ResponseWriter, r *http.Request, m wire.Message) {
					send := legacytest.StartSSE(w)
					if tt.name == "roots" {
						p.Ask(r.Context(), send, spec.MethodRootsList, `{}`)
					}
					send(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, said("done"))
				}
				forget := forgetful(p, status)
				b := newTestBack(t, Options{Options: upstream.Options{URL: p.URL, RoundTripper: p.RoundTripper}})
				x := &backtest.Client{Answer: backtest.Answers(map[string]string{spec.MethodRootsList: adasRoots})}
				if got, err := body(b.Serve(t.Context(), tt.first(b), x)); err != nil || got != said("done") {
					t.Fatalf("the first call: %s, %v", got, err)
				}
				synctest.Wait() // until it is noted that the server has the roots
				forget()
				if got, err := body(b.Serve(t.Context(), tt.second(b), x)); err != nil || got != said("done") {
					t.Errorf("the call after the session was lost: %s, %v, want its result", got, err)
				}
				if n, calls := len(p.Requests(spec.MethodInitialize)), len(p.Requests(spec.MethodToolsCall)); n != 2 || calls != 2 {
					t.Errorf("%d calls in %d sessions, want 2 in 2", calls, n)
				}
			})
		}
	}
}

// leveled is a call that wants log messages.
func leveled(level spec.LogLevel) *mcp.Request {
	r := ask(spec.MethodToolsCall, `{"name":"t"}`)
	r.LogLevel = level
	return r
}

// A server that refuses a notification, but answers a ping, has not lost the session, which others use.
func TestM2L03RefusedNotificationKeepsTheSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := legacytest.NewMemoryServer(t)
		p.On[spec.MethodToolsCall] = func(w http.ResponseWriter, r *http.Request, m wire.Message) {
			send := legacytest.StartSSE(w)
			p.Ask(r.Context(), send, spec.MethodRootsList, `{}`)
			send(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, said("done"))
		}
		p.On[spec.MethodPing] = func(w http.ResponseWriter, _ *http.Request, m wire.Message) { legacytest.AnswerJSON(w, m.ID, `{}`) }
		p.On[spec.NotifyRootsListChanged] = func(w http.ResponseWriter, _ *http.Request, _ wire.Message) {
			w.WriteHeader(http.StatusNotFound)
		}
		b := newTestBack(t, Options{Options: upstream.Options{URL: p.URL, RoundTripper: p.RoundTripper}})
		x := &backtest.Client{Answer: backtest.Answers(map[string]string{spec.MethodRootsList: adasRoots})}
		if _, err := body(b.Serve(t.Context(), rooted("ada"), x)); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		b.RootsChanged(rooted("ada"))
		if _, err := body(b.Serve(t.Context(), rooted("ada"), x)); err == nil {
			t.Error("a call was sent to a server that did not take the change of roots")
		}
		if n := len(p.Requests(spec.MethodInitialize)); n != 1 {
			t.Errorf("%d sessions, want 1", n)
		}
	})
}

// A server that answers a call with 404, and puts off the ping, has not lost the session for certain.
func TestM2L03PingThatIsPutOffKeepsTheSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := legacytest.NewMemoryServer(t)
		calls := 0
		p.On[spec.MethodToolsCall] = func(w http.ResponseWriter, _ *http.Request, m wire.Message) {
			if calls++; calls == 1 {
				w.WriteHeader(http.StatusNotFound)
				return
			}
			legacytest.AnswerJSON(w, m.ID, said("done"))
		}
		p.On[spec.MethodPing] = func(w http.ResponseWriter, _ *http.Request, _ wire.Message) {
			w.WriteHeader(http.StatusTooManyRequests)
		}
		b := newTestBack(t, Options{Options: upstream.Options{URL: p.URL, RoundTripper: p.RoundTripper}})
		for range 2 {
			_, _ = body(b.Serve(t.Context(), rooted("ada"), &backtest.Client{Answer: backtest.NeverAnswers}))
		}
		if n := len(p.Requests(spec.MethodInitialize)); n != 1 || calls != 2 {
			t.Errorf("%d sessions and %d calls, want 1 and 2", n, calls)
		}
	})
}

// A child that exits before a call is sent to it has not run the call: the next one gets it.
func TestM2L03ChildExitedBeforeTheCallWasSent(t *testing.T) {
	const runsTasks = `{"tools":{},"tasks":{"requests":{"tools":{"call":{}}}}}`
	for _, tt := range []struct{ name, capabilities string }{
		{"a call", legacytest.Everything},
		{"a call that runs as a task", runsTasks},
	} {
		bridgetest.RunBubble(t, "M2L-03 "+tt.name, func(t *testing.T) {
			b, peers := pipeBack(t, Options{})
			children := 0
			go func() {
				for p := range peers {
					p.Handshake(tt.capabilities)
					if children++; children == 1 && tt.capabilities == runsTasks {
						p.Result(p.Want(spec.MethodToolsList).ID, `{"tools":[{"name":"t","execution":{"taskSupport":"required"}}]}`)
					}
					m := p.Want(spec.MethodPing)
					if children == 1 {
						_ = p.Conn.Close()
						continue
					}
					p.Result(m.ID, `{}`)
					p.Result(p.Want(spec.MethodToolsCall).ID, said("done"))
				}
			}()
			if got, err := body(b.Serve(t.Context(), rooted("ada"), &backtest.Client{Answer: backtest.NeverAnswers})); err != nil || got != said("done") {
				t.Errorf("Serve = %s, %v, want the result of the second child", got, err)
			}
		})
	}
}
