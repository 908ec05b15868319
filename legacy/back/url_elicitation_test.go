package back

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/backtest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/legacytest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/settings"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wake"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A gateServer answers calls with a demand for visits until it is content, and notes
// when it was called.
type gateServer struct {
	mu    sync.Mutex
	begin time.Time
	calls []string // when, since begin, and by whom
	// demand returns the ids of what the nth call, from 1, has to have visited; none
	// lets it through.
	demand func(n int, c *legacytest.ServerCall) []string
	said   func(n int, c *legacytest.ServerCall) // told after the answer was sent; may be nil
}

func newGateServer(demand func(n int, c *legacytest.ServerCall) []string) *gateServer {
	return &gateServer{begin: time.Now(), demand: demand}
}

func (g *gateServer) call(c *legacytest.ServerCall) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.calls = append(g.calls, fmt.Sprintf("%s %v", c.Who(), time.Since(g.begin).Round(time.Millisecond)))
	n := len(g.calls)
	if g.said != nil {
		c.Go(func() { <-c.Ended; g.said(n, c) })
	}
	ids := g.demand(n, c)
	if len(ids) == 0 {
		return said("welcome")
	}
	var all []string
	for _, id := range ids {
		all = append(all, fmt.Sprintf(`{"mode":"url","elicitationId":%q,"url":"https://example.com/%s","message":"log in"}`, id, id))
	}
	return fmt.Sprintf(`{"code":-32042,"message":"log in first","data":{"elicitations":[%s]}}`, strings.Join(all, ","))
}

func (g *gateServer) wantCalls(t *testing.T, want ...string) {
	t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	if !reflect.DeepEqual(g.calls, want) {
		t.Errorf("the server was called %q, want %q", g.calls, want)
	}
}

// A visitor is a client that says something to every URL after a while.
type visitor struct {
	action string
	after  time.Duration
	mu     sync.Mutex
	urls   []string
}

func (v *visitor) ask(ctx context.Context, q mcp.InputRequest) (mcp.InputResponse, error) {
	url, _ := wire.GetString(q.Params, "url")
	v.mu.Lock()
	v.urls = append(v.urls, strings.TrimPrefix(url, "https://example.com/"))
	v.mu.Unlock()
	if err := wake.Wait(ctx, v.after); err != nil {
		return mcp.InputResponse{}, err
	}
	return mcp.InputResponse{Result: json.RawMessage(fmt.Sprintf(`{"action":%q}`, v.action))}, nil
}

func (v *visitor) wantURLs(t *testing.T, want ...string) {
	t.Helper()
	if !reflect.DeepEqual(v.urls, want) {
		t.Errorf("the user was sent to %q, want %q", v.urls, want)
	}
}

// visiting returns a call of a client that can be sent to URLs.
func visiting(who string) *mcp.Request {
	r := askable(who)
	r.Profile.Capabilities = json.RawMessage(`{"elicitation":{"form":{},"url":{}}}`)
	return r
}

// visit makes one call through a new Back, with a user who needs 3 s to agree.
func (g *gateServer) visit(t *testing.T, ctx context.Context, req *mcp.Request, v *visitor) (string, error) {
	t.Helper()
	b := newAsker(t, Options{}, func(a *legacytest.Server) { a.Call = g.call })
	v.after = 3 * time.Second
	return body(b.Serve(ctx, req, &backtest.Client{Answer: v.ask}))
}

func stubborn(int, *legacytest.ServerCall) []string { return []string{"e1"} }

// A server that never says that the visit is done is asked again at a few moments,
// and the client hears of it when that has gone on for long.
func TestM2L22TheCallIsSentAgainWithoutTheServersWord(t *testing.T) {
	for after, want := range map[int][]string{
		2: {"ada 0s", "ada 3s"},
		3: {"ada 0s", "ada 3s", "ada 5s"},
		6: {"ada 0s", "ada 3s", "ada 5s", "ada 8s", "ada 13s", "ada 23s"},
	} {
		bridgetest.RunBubble(t, fmt.Sprint("content at call ", after), func(t *testing.T) {
			g := newGateServer(func(n int, _ *legacytest.ServerCall) []string { return []string{"e1"}[min(n/after, 1):] })
			v := &visitor{action: "accept"}
			if got, err := g.visit(t, t.Context(), visiting("ada"), v); err != nil || !strings.Contains(got, "welcome") {
				t.Errorf("Serve = %s, %v, want the result", got, err)
			}
			g.wantCalls(t, want...)
			v.wantURLs(t, "e1")
		})
	}
	bridgetest.RunBubble(t, "never content", func(t *testing.T) {
		g := newGateServer(stubborn)
		_, err := g.visit(t, t.Context(), visiting("ada"), &visitor{action: "accept"})
		var e *wire.Error
		if !errors.As(err, &e) || e.Code != -32603 || !strings.Contains(e.Message, `server "scripted": log in first; it still requires this 45s after`) {
			t.Errorf("Serve = %v, want an error that says what is still wanted", err)
		}
		if took := time.Since(g.begin); took != 48*time.Second {
			t.Errorf("it took %v, want 45s after the user's word", took)
		}
		g.wantCalls(t, "ada 0s", "ada 3s", "ada 5s", "ada 8s", "ada 13s", "ada 23s")
	})
}

// The server's word has the call sent again, once and for all of the visits.
func TestM2L22TheServersWord(t *testing.T) {
	for _, tt := range []struct {
		name  string
		said  map[time.Duration]string // since the first call
		calls []string
	}{
		{"after the user's", map[time.Duration]string{4 * time.Second: "e1", 4500 * time.Millisecond: "e2", 4600 * time.Millisecond: "e2"},
			[]string{"ada 0s", "ada 3s", "ada 4.5s", "ada 5s", "ada 8s", "ada 13s", "ada 23s"}},
		{"in part before it", map[time.Duration]string{time.Second: "e1", 4 * time.Second: "e2"},
			[]string{"ada 0s", "ada 3s", "ada 4s", "ada 5s", "ada 8s", "ada 13s", "ada 23s"}},
		{"before it", map[time.Duration]string{time.Second: "e1", 2 * time.Second: "e2"},
			[]string{"ada 0s", "ada 3s", "ada 5s", "ada 8s", "ada 13s", "ada 23s"}},
		{"late, and of others", map[time.Duration]string{4 * time.Second: "e1", 7 * time.Second: "e3", 40 * time.Second: "e2"},
			[]string{"ada 0s", "ada 3s", "ada 5s", "ada 8s", "ada 13s", "ada 23s", "ada 40s"}},
	} {
		bridgetest.RunBubble(t, tt.name, func(t *testing.T) {
			g := newGateServer(func(int, *legacytest.ServerCall) []string { return []string{"e1", "e2"} })
			g.said = func(n int, c *legacytest.ServerCall) {
				for at, id := range tt.said {
					if n == 1 {
						time.AfterFunc(at, func() { c.Complete(id) })
					}
				}
			}
			v := &visitor{action: "accept"}
			b := newAsker(t, Options{}, func(a *legacytest.Server) { a.Call = g.call })
			x := &backtest.Client{Answer: v.ask}
			v.after = 3 * time.Second / 2 // for each of two URLs
			if _, err := b.Serve(t.Context(), visiting("ada"), x); err == nil {
				t.Error("Serve = nil, want an error: the server is never content")
			}
			g.wantCalls(t, tt.calls...)
			v.wantURLs(t, "e1", "e2")
		})
	}
}

// Other visits are a new question; other answers are the client's.
func TestM2L22OtherAnswers(t *testing.T) {
	bridgetest.RunBubble(t, "other visits", func(t *testing.T) {
		g := newGateServer(func(n int, _ *legacytest.ServerCall) []string {
			return [][]string{{"e1"}, {"e1"}, {"e2"}, {"e2"}, nil}[n-1]
		})
		v := &visitor{action: "accept"}
		if got, err := g.visit(t, t.Context(), visiting("ada"), v); err != nil || !strings.Contains(got, "welcome") {
			t.Errorf("Serve = %s, %v, want the result", got, err)
		}
		g.wantCalls(t, "ada 0s", "ada 3s", "ada 5s", "ada 8s", "ada 10s")
		v.wantURLs(t, "e1", "e2")
	})
	bridgetest.RunBubble(t, "others for ever", func(t *testing.T) {
		g := newGateServer(func(n int, _ *legacytest.ServerCall) []string { return []string{fmt.Sprint(n)} })
		v := &visitor{action: "accept"}
		if _, err := g.visit(t, t.Context(), visiting("ada"), v); err == nil || !strings.Contains(err.Error(), "for the 9th time") {
			t.Errorf("Serve = %v, want an end of it", err)
		}
		v.wantURLs(t, "1", "2", "3", "4", "5", "6", "7", "8")
	})
	bridgetest.RunBubble(t, "declined", func(t *testing.T) {
		g := newGateServer(stubborn)
		if _, err := g.visit(t, t.Context(), visiting("ada"), &visitor{action: "decline"}); err == nil || !strings.Contains(err.Error(), "log in first; the user declined") {
			t.Errorf("Serve = %v, want that the user declined", err)
		}
		g.wantCalls(t, "ada 0s")
	})
}

func TestM2L22ACancelledCallIsNotSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGateServer(stubborn)
		ctx, cancel := context.WithCancelCause(t.Context())
		left := errors.New("the client has left")
		time.AfterFunc(6*time.Second, func() { cancel(left) })
		if _, err := g.visit(t, ctx, visiting("ada"), &visitor{action: "accept"}); err != left || time.Since(g.begin) != 6*time.Second {
			t.Errorf("Serve = %v after %v, want its end with the call", err, time.Since(g.begin))
		}
		time.Sleep(time.Minute)
		g.wantCalls(t, "ada 0s", "ada 3s", "ada 5s")
	})
}

// Others use the lane meanwhile, also where a parked call keeps it: nothing waits
// upstream. The call goes back to the session that demanded the visit.
func TestM2L22AWaitingCallLeavesItsLane(t *testing.T) {
	for _, set := range []settings.Server{{}, {Isolation: settings.IsolateNothing}, {Lanes: settings.Lanes{Stdio: 2}}} {
		bridgetest.RunBubble(t, fmt.Sprintf("%d lanes, kept %v", max(1, set.Lanes.Stdio), set.Isolation == settings.IsolateNothing), func(t *testing.T) {
			opts := Options{Options: upstream.Options{Settings: set}}
			var demanded *legacytest.Server
			g := newGateServer(nil)
			g.demand = func(n int, c *legacytest.ServerCall) []string {
				switch {
				case c.Who() == "busy": // in the first lane, at first
					return nil
				case demanded == nil:
					demanded = c.Server
				case demanded != c.Server:
					t.Errorf("call %d of %s came on another session than the one that wanted the visit", n, c.Who())
				}
				return []string{"e1"}[min(n/5, 1):]
			}
			b := newAsker(t, opts, func(a *legacytest.Server) {
				a.Call = func(c *legacytest.ServerCall) string {
					if c.Who() == "busy" {
						time.Sleep(500 * time.Millisecond)
					}
					return g.call(c)
				}
			})
			v := &visitor{action: "accept", after: 3 * time.Second}
			var calls sync.WaitGroup
			serve := func(who string) {
				calls.Go(func() {
					if got, err := body(b.Serve(t.Context(), visiting(who), &backtest.Client{Answer: v.ask})); err != nil || !strings.Contains(got, "welcome") {
						t.Errorf("Serve for %s = %s, %v", who, got, err)
					}
				})
			}
			serve("busy")
			synctest.Wait()
			serve("ada")
			time.Sleep(2 * time.Second)
			serve("busy") // while the user looks at the page
			calls.Wait()
			if set.Lanes.Stdio == 2 {
				g.wantCalls(t, "ada 0s", "busy 500ms", "busy 2.5s", "ada 3s", "ada 5s")
			} else {
				g.wantCalls(t, "busy 500ms", "ada 500ms", "busy 2.5s", "ada 3.5s", "ada 5.5s")
			}
		})
	}
}

// A session that is lost takes what it would say with it: a new one is asked at
// once.
func TestM2L22ALostSessionIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGateServer(func(n int, _ *legacytest.ServerCall) []string { return []string{"e1"}[min(n/4, 1):] })
		g.said = func(n int, c *legacytest.ServerCall) {
			if n == 1 {
				time.AfterFunc(4*time.Second, func() { c.CloseConn() })
			}
		}
		v := &visitor{action: "accept"}
		if got, err := g.visit(t, t.Context(), visiting("ada"), v); err != nil || !strings.Contains(got, "welcome") {
			t.Errorf("Serve = %s, %v, want the result", got, err)
		}
		g.wantCalls(t, "ada 0s", "ada 3s", "ada 4s", "ada 5s")
		v.wantURLs(t, "e1")
	})
}

// A profile of single requests keeps the session for the visit, which may be the
// session's, and hears there that it is done. It ends with the call.
func TestM2L22ASingleRequestKeepsItsSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var opened []*legacytest.Server
		g := newGateServer(func(n int, _ *legacytest.ServerCall) []string { return []string{"e1"}[min(n/3, 1):] })
		g.said = func(n int, c *legacytest.ServerCall) {
			if n == 1 {
				time.AfterFunc(4*time.Second, func() { c.Complete("e1") })
			}
		}
		b := newAsker(t, Options{}, func(a *legacytest.Server) {
			opened = append(opened, a)
			a.Call = g.call
		})
		req := visiting("ada")
		req.Profile.Single = true
		v := &visitor{action: "accept", after: 3 * time.Second}
		if got, err := body(b.Serve(t.Context(), req, &backtest.Client{Answer: v.ask})); err != nil || !strings.Contains(got, "welcome") {
			t.Errorf("Serve = %s, %v", got, err)
		}
		g.wantCalls(t, "ada 0s", "ada 3s", "ada 4s")
		synctest.Wait()
		if len(opened) != 1 {
			t.Fatalf("%d sessions were opened, want one", len(opened))
		}
		if !opened[0].IsOver() {
			t.Error("the session goes on after its call")
		}
	})
}
