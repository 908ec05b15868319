package back

import (
	"context"
	"encoding/json"
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
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A Go server that asks for roots in its InitializedHandler serves nothing before
// it is answered, not even what needs no roots.
func TestM2L23AServerThatBlocksOnItsRoots(t *testing.T) {
	for _, tt := range []struct{ name, capabilities string }{
		{"the client has none", `{}`},
		{"the client declares roots", hasRoots},
	} {
		bridgetest.RunBubble(t, "M2L-23 "+tt.name, func(t *testing.T) {
			answered := make(chan struct{})
			var got string
			b := newAsker(t, Options{}, func(a *legacytest.Server) {
				a.OnNotification("notifications/initialized", func() {
					got = string(a.Ask("roots/list", `{}`).Result)
					close(answered)
				})
				a.On = map[string]func(wire.Message) string{"tools/list": func(wire.Message) string {
					<-answered
					return `{"tools":[]}`
				}}
			})
			begin := time.Now()
			req := ask("tools/list", "")
			req.Profile.Capabilities = json.RawMessage(tt.capabilities)
			if _, err := body(b.Serve(t.Context(), req, &backtest.Client{Answer: backtest.NeverAnswers})); err != nil || time.Since(begin) > 0 {
				t.Errorf("tools/list: %v after %v, want it served at once", err, time.Since(begin))
			}
			if got != `{"roots":[]}` {
				t.Errorf("the server heard %s, want an empty list", got)
			}
		})
	}
}

func TestM2L23StaticRoots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var asked []string
		var last *legacytest.Server
		note := func(m wire.Message) {
			mu.Lock()
			defer mu.Unlock()
			asked = append(asked, string(m.Result))
		}
		b := newAsker(t, Options{Options: upstream.Options{Settings: settings.Server{Roots: []string{"file:///config"}}}}, func(a *legacytest.Server) {
			last = a
			a.OnNotification("notifications/initialized", func() { note(a.Ask("roots/list", `{}`)) })
			a.Call = func(c *legacytest.ServerCall) string {
				note(c.Ask("roots/list", `{}`))
				return said("done")
			}
			a.OnNotification("notifications/roots/list_changed", func() { t.Error("static roots were said to have changed") })
		})
		for _, capabilities := range []string{`{}`, hasRoots} { // a profile each
			req := rooted("ada")
			req.Profile.Scope += capabilities
			req.Profile.Capabilities = json.RawMessage(capabilities)
			if _, err := body(b.Serve(t.Context(), req, &backtest.Client{Answer: backtest.NeverAnswers})); err != nil {
				t.Error(err)
			}
			if !strings.Contains(last.Declared(), `"roots":{"listChanged":true}`) {
				t.Errorf("declared %s, want roots", last.Declared())
			}
		}
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		if len(asked) != 4 {
			t.Errorf("the server asked %d times, want 4", len(asked))
		}
		for _, got := range asked {
			if got != `{"roots":[{"uri":"file:///config"}]}` {
				t.Errorf("the server heard %s, want the config's roots", got)
			}
		}
	})
}

// rooted returns a call of a client that has roots.
func rooted(who string) *mcp.Request {
	r := askable(who)
	r.Profile.Capabilities = json.RawMessage(hasRoots)
	return r
}

// rootsServer asks for roots when it starts and whenever it is told to, and notes
// the answers. One to an earlier question than the last answered is of no use: the
// goroutines that ask may come to note them in any order.
type rootsServer struct {
	mu    sync.Mutex
	heard []string
	last  int // the id of the question that was answered last
}

func (r *rootsServer) play(a *legacytest.Server) {
	ask := func() {
		id, reply := a.SendRequest("roots/list", `{}`)
		m := <-reply
		text := string(m.Result)
		if m.Error != nil {
			text = m.Error.Message
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		if id > r.last {
			r.last, r.heard = id, append(r.heard, text)
		}
	}
	a.OnNotification("notifications/initialized", ask)
	a.OnNotification("notifications/roots/list_changed", ask)
	a.Call = func(*legacytest.ServerCall) string {
		time.Sleep(time.Millisecond) // answers that were read are noted by then
		r.mu.Lock()
		defer r.mu.Unlock()
		return said(r.heard[len(r.heard)-1])
	}
}

func TestM2L23TheFirstCallPutsTheServerRight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &rootsServer{}
		b := newAsker(t, Options{}, r.play)
		x := &backtest.Client{Answer: backtest.Answers(map[string]string{"roots/list": adasRoots})}
		list := rooted("ada")
		list.Method = "tools/list"
		if _, err := body(b.Serve(t.Context(), list, x)); err != nil {
			t.Error(err)
		}
		if got, err := body(b.Serve(t.Context(), rooted("ada"), x)); err != nil || got != said(adasRoots) {
			t.Errorf("the first call found %s, %v, want the client's roots", got, err)
		}
		if got, err := body(b.Serve(t.Context(), rooted("ada"), &backtest.Client{Answer: backtest.NeverAnswers})); err != nil || got != said(adasRoots) {
			t.Errorf("the second call found %s, %v, want no more questions", got, err)
		}
	})
}

// A client whose roots have changed is asked for them with its next call. What the server has of
// another client is not touched, and a server that never asked is told at once.
func TestG14ChangedRootsReachTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &rootsServer{}
		b := newAsker(t, Options{}, r.play)
		roots, asked := adasRoots, 0
		x := &backtest.Client{Answer: func(context.Context, mcp.InputRequest) (mcp.InputResponse, error) {
			asked++
			return mcp.InputResponse{Result: []byte(roots)}, nil
		}}
		call := func(wantAsked int) {
			t.Helper()
			if got, err := body(b.Serve(t.Context(), rooted("ada"), x)); err != nil || got != said(roots) || asked != wantAsked {
				t.Errorf("a call found %s, %v, and asked %d times, want %s and %d", got, err, asked, roots, wantAsked)
			}
		}
		b.RootsChanged(rooted("ada")) // there is no session yet
		call(1)
		roots = `{"roots":[{"uri":"file:///moved"}]}`
		b.RootsChanged(rooted("ada"))
		call(2)
		call(2)
		bob := rooted("bob")
		bob.Session = "another client of the session"
		b.RootsChanged(bob)
		call(2)
	})
}

// Roots that change while the client is asked for them are asked for once more: the answer may be
// that of before.
func TestG14RootsThatChangeMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &rootsServer{}
		b := newAsker(t, Options{}, r.play)
		asked := 0
		x := &backtest.Client{Answer: func(context.Context, mcp.InputRequest) (mcp.InputResponse, error) {
			if asked++; asked == 2 {
				defer b.RootsChanged(rooted("ada"))
			}
			return mcp.InputResponse{Result: []byte(adasRoots)}, nil
		}}
		for _, want := range []int{1, 2, 3, 3} {
			if _, err := body(b.Serve(t.Context(), rooted("ada"), x)); err != nil || asked != want {
				t.Errorf("a call asked %d times so far, %v; want %d", asked, err, want)
			}
			if want == 1 {
				b.RootsChanged(rooted("ada"))
			}
		}
	})
}

func TestG14ServerThatNeverAskedIsToldOfRoots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told := 0
		b := newAsker(t, Options{}, func(a *legacytest.Server) {
			a.OnNotification("notifications/roots/list_changed", func() { told++ })
			a.Call = func(*legacytest.ServerCall) string { return said("done") }
		})
		if _, err := body(b.Serve(t.Context(), rooted("ada"), &backtest.Client{Answer: backtest.NeverAnswers})); err != nil {
			t.Fatal(err)
		}
		b.RootsChanged(rooted("ada"))
		synctest.Wait()
		if told != 1 {
			t.Errorf("the server was told %d times, want once", told)
		}
	})
}

// Whoever leaves while it is asked for its roots does not leave the server with
// the provisional ones.
func TestM2L23ACallThatEndsUnansweredChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &rootsServer{}
		b := newAsker(t, Options{}, r.play)
		ctx, leave := context.WithTimeout(t.Context(), time.Minute/2)
		defer leave()
		if _, err := b.Serve(ctx, rooted("leaves"), &backtest.Client{Answer: backtest.NeverAnswers}); err == nil {
			t.Error("a call was sent whose client was being asked for roots")
		}
		x := &backtest.Client{Answer: backtest.Answers(map[string]string{"roots/list": adasRoots})}
		if got, err := body(b.Serve(t.Context(), rooted("ada"), x)); err != nil || got != said(adasRoots) {
			t.Errorf("the next call found %s, %v, want its client's roots", got, err)
		}
	})
}

// While one client thinks about its roots, others wait for a moment only.
func TestM2L23OthersGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &rootsServer{}
		b := newAsker(t, Options{}, r.play)
		request := func() *mcp.Request {
			req := rooted("ada")
			req.Profile.Capabilities = json.RawMessage(`{"roots":{}}`) // needs no lane
			return req
		}
		var slow sync.WaitGroup
		slow.Go(func() {
			_, _ = body(b.Serve(t.Context(), request(), &backtest.Client{Answer: answersAfter(time.Minute, adasRoots)}))
		})
		synctest.Wait()
		begin := time.Now()
		if _, err := body(b.Serve(t.Context(), request(), &backtest.Client{Answer: backtest.NeverAnswers})); err != nil || time.Since(begin) > rootsTimeout+time.Millisecond {
			t.Errorf("another call took %v, %v, want at most %v", time.Since(begin), err, rootsTimeout)
		}
		slow.Wait()
	})
}

// Lanes of a profile learn what one of them was told, and ask nobody.
func TestM2L23OtherLanesAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var servers []*rootsServer
		var asked int
		b := newAsker(t, Options{Options: upstream.Options{Settings: settings.Server{Lanes: settings.Lanes{Stdio: 2, HTTP: 2}}}, OneClient: true}, func(a *legacytest.Server) {
			r := &rootsServer{}
			servers = append(servers, r)
			r.play(a)
			call := a.Call
			a.Call = func(c *legacytest.ServerCall) string {
				switch c.Who() {
				case "slow":
					time.Sleep(time.Second)
				case "moves":
					c.Ask("roots/list", `{}`)
				}
				return call(c)
			}
		})
		roots := adasRoots
		x := &backtest.Client{Answer: func(context.Context, mcp.InputRequest) (mcp.InputResponse, error) {
			asked++
			return mcp.InputResponse{Result: []byte(roots)}, nil
		}}
		serve := func(who string) {
			if _, err := body(b.Serve(t.Context(), rooted(who), x)); err != nil {
				t.Error(err)
			}
		}
		serve("ada")
		var slow sync.WaitGroup
		slow.Go(func() { serve("slow") })
		synctest.Wait()
		serve("second lane")
		if len(servers) != 2 || servers[1].heard[0] != adasRoots || asked != 1 {
			t.Fatalf("%d servers, clients asked %d times, want the second lane's to get the last answer", len(servers), asked)
		}
		slow.Wait()
		roots = `{"roots":[{"uri":"file:///moved"}]}`
		serve("moves")
		synctest.Wait()
		if asked != 2 {
			t.Errorf("clients were asked %d times, want 2: the other lane is told what is known", asked)
		}
		if h := servers[1].heard; h[len(h)-1] != roots {
			t.Errorf("the second lane's server heard %q, want the changed roots", h)
		}
	})
}

// A session that clients share has the roots of one of them only as long as that one
// calls: the next is asked for its own, and one that can't be asked has none.
func TestM2L23RootsOfOneAreNotAnothers(t *testing.T) {
	const bobs = `{"roots":[{"uri":"file:///bob"}]}`
	synctest.Test(t, func(t *testing.T) {
		r := &rootsServer{}
		b := newAsker(t, Options{}, func(a *legacytest.Server) {
			r.play(a)
			a.On = map[string]func(wire.Message) string{"tools/list": func(wire.Message) string {
				time.Sleep(time.Millisecond)
				r.mu.Lock()
				defer r.mu.Unlock()
				return `{"tools":[],"roots":` + r.heard[len(r.heard)-1] + `}`
			}}
		})
		asked := 0
		has := func(roots string) *backtest.Client {
			return &backtest.Client{Answer: func(context.Context, mcp.InputRequest) (mcp.InputResponse, error) {
				asked++
				return mcp.InputResponse{Result: []byte(roots)}, nil
			}}
		}
		of := func(req *mcp.Request, name string) *mcp.Request {
			req.ClientInfo = json.RawMessage(`{"name":"` + name + `","version":"1"}`)
			return req
		}
		list := func(name string) *mcp.Request {
			req := of(rooted(name), name)
			req.Method, req.Params = "tools/list", nil
			return req
		}
		for i, step := range []struct {
			req   *mcp.Request
			x     *backtest.Client
			want  string
			asked int
		}{
			{of(rooted("ada"), "ada"), has(adasRoots), said(adasRoots), 1},
			{of(rooted("ada"), "ada"), has(adasRoots), said(adasRoots), 1},
			{list("ada"), has(adasRoots), `{"tools":[],"roots":` + adasRoots + `}`, 1},
			{of(rooted("bob"), "bob"), has(bobs), said(bobs), 2},
			{of(rooted("ada"), "ada"), has(adasRoots), said(adasRoots), 3},
			{list("bob"), &backtest.Client{Answer: backtest.NeverAnswers}, `{"tools":[],"roots":{"roots":[]}}`, 3},
			{of(rooted("bob"), "bob"), has(bobs), said(bobs), 4},
			{of(askable("eve"), "eve"), &backtest.Client{Answer: backtest.NeverAnswers}, said(`{"roots":[]}`), 4},
			{of(askable("eve"), "eve"), &backtest.Client{Answer: backtest.NeverAnswers}, said(`{"roots":[]}`), 4},
		} {
			if got, err := body(b.Serve(t.Context(), step.req, step.x)); err != nil || got != step.want || asked != step.asked {
				t.Errorf("step %d: %s, %v, %d clients asked; want %s, %d", i, got, err, asked, step.want, step.asked)
			}
		}
	})
}
