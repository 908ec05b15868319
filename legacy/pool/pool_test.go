package pool

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/legacytest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/wake"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	"github.com/mcpbridge/mcpbridge/legacy/link"
)

func TestM2L02IdleSessionsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, peers := pipeRig(t, Options{Idle: time.Minute})
		gone := make(chan struct{})
		go func() {
			(<-peers).Run()
			close(gone)
		}()
		for range 3 { // use starts the clock anew
			if err := r.list(t.Context(), "a"); err != nil {
				t.Fatal(err)
			}
			time.Sleep(50 * time.Second)
		}
		if wake.Closed(gone) {
			t.Fatal("the session ended though it was used every 50s")
		}
		time.Sleep(11 * time.Second)
		if synctest.Wait(); !wake.Closed(gone) {
			t.Error("the session is open after Idle")
		}
	})
}

func TestM2L02InUseIsNotIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, peers := pipeRig(t, Options{Idle: time.Minute})
		var err error
		go func() { err = r.list(t.Context(), "a") }()
		p := <-peers
		p.Handshake(legacytest.Everything)
		m := p.Want("tools/list")
		time.Sleep(30 * time.Minute)
		p.Result(m.ID, `{"tools":[]}`)
		synctest.Wait()
		if err != nil {
			t.Errorf("a call of 30 minutes = %v", err)
		}
	})
}

// A session taken into use at the moment its idle timer fired stays.
func TestM2L02TimerMeetsUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, peers := pipeRig(t, Options{Idle: time.Minute})
		go runNext(peers, 1)
		if err := r.list(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute - time.Second)
		s, release := r.hold(t, "a")
		defer release()
		time.Sleep(2 * time.Second)
		if !s.Alive() {
			t.Error("the session ended while in use")
		}
	})
}

func TestM2L02Eviction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, peers := pipeRig(t, Options{MaxSessions: 2})
		over := make(chan string, 3)
		go func() {
			for _, name := range []string{"a", "b", "c"} {
				p := <-peers
				go func() {
					p.Run()
					over <- name
				}()
			}
		}()
		for _, scope := range []string{"a", "b", "a", "c"} {
			if err := r.list(t.Context(), scope); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if len(over) != 1 || <-over != "b" {
			t.Error("the least recently used session was not the one that ended")
		}
		if n, all := r.Len(), len(r.Sessions("")); n != 2 || all != 2 {
			t.Errorf("Len = %d of %d sessions, want 2", n, all)
		}
	})
}

func TestM2L02FullPoolSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, peers := pipeRig(t, Options{MaxSessions: 1})
		go runNext(peers, 1)
		_, release := r.hold(t, "a")
		settle()
		err := r.list(t.Context(), "other")
		if err == nil || !strings.Contains(err.Error(), `server "scripted"`) || !strings.Contains(err.Error(), "limits.sessions") {
			t.Errorf("a request beyond MaxSessions = %v", err)
		}
		release()
		go runNext(peers, 1)
		if err := r.list(t.Context(), "other"); err != nil {
			t.Errorf("a request after a release = %v", err)
		}
	})
}

// A server that does not answer its DELETE must not hold up the shutdown.
func TestM2L02ShutdownIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := legacytest.NewMemoryServer(t)
		p.On["tools/list"] = func(w http.ResponseWriter, _ *http.Request, m wire.Message) {
			legacytest.AnswerJSON(w, m.ID, `{"tools":[]}`)
		}
		p.On["DELETE"] = func(_ http.ResponseWriter, r *http.Request, _ wire.Message) { <-r.Context().Done() }
		r := httpRig(t, p)
		if err := r.list(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		start := time.Now()
		if err := r.Close(ctx); err == nil {
			t.Error("Close = nil, want a time-out")
		}
		if took := time.Since(start); took != 50*time.Millisecond {
			t.Errorf("Close took %v", took)
		}
	})
}

// httpRig returns a rig whose sessions are over HTTP.
func httpRig(t *testing.T, p *legacytest.HTTPServer) *rig {
	var e *link.Endpoint
	r := newRig(t, Options{}, func(_ context.Context, l *link.Link) error {
		l.OverHTTP(e)
		return nil
	})
	r.server.URL, r.server.RoundTripper = p.URL, p.RoundTripper
	e = link.NewEndpoint(r.server)
	p.On["ping"] = func(w http.ResponseWriter, _ *http.Request, m wire.Message) { legacytest.AnswerJSON(w, m.ID, `{}`) }
	return r
}

func TestCloseEndsCallsInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, peers := pipeRig(t, Options{})
		var err error
		go func() { err = r.request(t.Context(), "a", "tools/call", false) }()
		p := <-peers
		p.Handshake(legacytest.Everything)
		p.Want("tools/call")
		if err := r.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if err == nil || !strings.Contains(err.Error(), "shutting down") {
			t.Errorf("a call during Close = %v", err)
		}
		if !p.IsEnded() {
			t.Error("the connection is open after Close")
		}
		if err := r.list(t.Context(), "a"); err == nil {
			t.Error("a request after Close = nil error")
		}
	})
}

// Sessions whose one client has left end at once if nobody uses them, and else when nobody does.
// Those of others stay.
func TestG14ReleasedSessionsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, peers := pipeRig(t, Options{})
		open := func(scope string) (Session, func()) {
			t.Helper()
			go func() { (<-peers).Run() }() // ends with the session
			s, release, err := r.Get(t.Context(), mcp.Profile{Scope: scope}, false)
			if err != nil {
				t.Fatal(err)
			}
			return s, release
		}
		idle, leave := open("a")
		leave()
		lane, leaveLane := open(OnLane(mcp.Profile{Scope: "a"}, 1).Scope)
		other, leave := open("b")
		leave()
		r.Release("a")
		synctest.Wait()
		if idle.Alive() || !lane.Alive() || !other.Alive() {
			t.Errorf("alive: idle %v, in use %v, of another %v; want the idle one ended", idle.Alive(), lane.Alive(), other.Alive())
		}
		leaveLane()
		synctest.Wait()
		if lane.Alive() || !other.Alive() {
			t.Errorf("alive: %v, of another %v; want the one ended that is not used any more", lane.Alive(), other.Alive())
		}
	})
}
