package router

import (
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/settings"
	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// eachBack runs an attack in a world of servers of each era.
func eachBack(t *testing.T, attack func(w *world)) {
	for _, back := range []spec.Era{spec.Legacy, spec.Modern} {
		t.Run(back.String(), func(t *testing.T) { attack(newWorld(t, back, settings.IsolatePrincipal)) })
	}
}

// A session id that leaks, from a log of a proxy or a crash report, is worth nothing to
// another principal: it opens nothing, and what is tried with it neither ends the session
// nor keeps it alive (CWE-639).
func TestSessionTheft(t *testing.T) {
	t.Parallel()
	eachBack(t, func(w *world) { legSessionID(w, spec.Legacy) })
	t.Run("does not keep it alive", func(t *testing.T) {
		w := newWorldWith(t, spec.Legacy, settings.IsolatePrincipal, func(o *Options) { o.SessionIdle = 2 * time.Second })
		a := w.client(alice, spec.Legacy)
		thief := &tenant{w: w, t: t, who: bob, era: spec.Legacy, path: a.path, session: a.session}
		w.eventually(t, "the session ended", func() bool {
			thief.ask("ping", "", "")
			return w.g.Snapshot().Sessions == 0
		})
	})
	t.Run("among two ids", func(t *testing.T) {
		w := newWorld(t, spec.Legacy, settings.IsolatePrincipal)
		a, b := w.client(alice, spec.Legacy), w.client(bob, spec.Legacy)
		for _, ids := range [][]string{{a.session, b.session}, {b.session, a.session}} {
			h := b.headers("", "")
			h["Mcp-Session-Id"] = ids
			got := w.send(t, http.MethodPost, b.body("tools/call", `"name":"whoami"`), h)
			if strings.Contains(got.body, `"`+a.upstreamSession().name+`"`) {
				t.Errorf("with the ids %q bob reaches alice's session: %s", ids, got.body)
			}
		}
	})
}

// An id that the attacker chose, or has been given, is not the one of the session that the
// victim opens (CWE-384).
func TestSessionFixation(t *testing.T) {
	t.Parallel()
	eachBack(t, func(w *world) { legFixation(w, spec.Legacy) })
}

// What a client brings back is its word: no byte of a requestState can be another.
func TestForgedRequestState(t *testing.T) {
	t.Parallel()
	eachBack(t, func(w *world) {
		a := w.client(alice, spec.Modern)
		rd := a.tool("ask", elicitArgs).round(w.t)
		for at := 0; at < len(rd.State); at += 1 + len(rd.State)/40 {
			forged := rd
			other := byte('A')
			if rd.State[at] == other {
				other = 'B'
			}
			forged.State = rd.State[:at] + string(other) + rd.State[at+1:]
			if got := a.ask("tools/call", "ask", forged.answering("Mallory")); got.code() != spec.CodeInvalidParams || strings.Contains(got.body, "Mallory") {
				w.t.Fatalf("byte %d changed: %d %s, want -32602", at, got.status, got.body)
			}
		}
		for _, state := range []string{"", "~", "1.", rd.State + "A", rd.State[:len(rd.State)-1], " " + rd.State} {
			forged := rd
			forged.State = state
			if got := a.ask("tools/call", "ask", forged.answering("Mallory")); got.code() != spec.CodeInvalidParams {
				w.t.Errorf("state %q: %d %s, want -32602", state, got.status, got.body)
			}
		}
		if got := a.ask("tools/call", "ask", rd.answering("Ada")); !strings.Contains(got.body, "Ada") {
			w.t.Errorf("the state as it was given = %s", got.body)
		}
	})
}

// A state is answered once, however many try at the same time: a question that was answered
// with yes is not answered again with the same yes (CWE-294). What modern servers make of
// theirs is up to them.
func TestReplayedRequestState(t *testing.T) {
	t.Parallel()
	w := newWorld(t, spec.Legacy, settings.IsolatePrincipal)
	a := w.client(alice, spec.Modern)
	rd := a.tool("ask", elicitArgs).round(t)
	var answered atomic.Int32
	var wg sync.WaitGroup
	for range 8 {
		c := *a
		wg.Go(func() {
			if got := c.ask("tools/call", "ask", rd.answering("Ada")); strings.Contains(got.body, "Ada") {
				answered.Add(1)
			}
		})
	}
	wg.Wait()
	if n := answered.Load(); n != 1 {
		t.Errorf("%d of 8 retries were answered, want one", n)
	}
	if got := a.ask("tools/call", "ask", rd.answering("Ada")); got.code() != spec.CodeInvalidParams {
		t.Errorf("a later one = %s, want -32602", got.body)
	}
	t.Run("in a later round", func(t *testing.T) {
		call := func(r *round, name string) answer {
			params := strings.Replace(elicits, `"ask"`, `"ask twice"`, 1)
			if r != nil {
				params = strings.Replace(r.answering(name), `"ask"`, `"ask twice"`, 1)
			}
			return a.ask("tools/call", "ask twice", params)
		}
		first := call(nil, "").round(t)
		second := call(&first, "Ada").round(t)
		old := second
		old.State = first.State
		if got := call(&old, "Mallory"); got.code() != spec.CodeInvalidParams {
			t.Errorf("the state of the first round in the second = %s, want -32602", got.body)
		}
		if got := call(&second, "Eve"); !strings.Contains(got.body, "Ada") || !strings.Contains(got.body, "Eve") || strings.Contains(got.body, "Mallory") {
			t.Errorf("the call = %s, want the answers of each round", got.body)
		}
	})
}

// A state is good for whom, where, and for what it was given.
func TestForeignRequestState(t *testing.T) {
	t.Parallel()
	eachBack(t, func(w *world) { legState(w, spec.Modern) })
	t.Run("of another request", func(t *testing.T) {
		w := newWorld(t, spec.Legacy, settings.IsolatePrincipal)
		a := w.client(alice, spec.Modern)
		rd := a.tool("ask", elicitArgs).round(t)
		forged := rd
		forged.State = "forged"
		want := a.tool("whoami", forged.retry(nil))
		a.ids--
		w.same("the state of another request", a.tool("whoami", rd.retry(nil)), want)
	})
	t.Run("of another gateway", func(t *testing.T) {
		for _, back := range []spec.Era{spec.Legacy, spec.Modern} {
			w, elsewhere := newWorld(t, back, settings.IsolatePrincipal), newWorld(t, back, settings.IsolatePrincipal)
			rd := w.client(alice, spec.Modern).tool("ask", elicitArgs).round(t)
			if got := elsewhere.client(alice, spec.Modern).ask("tools/call", "ask", rd.answering("Ada")); got.code() != spec.CodeInvalidParams {
				t.Errorf("%s: a state of another gateway = %s, want -32602", back, got.body)
			}
		}
	})
}

// The gateway has a credential for each server, which its clients have not: what one server
// has handed out is not presented to another by it (CWE-441).
func TestConfusedDeputy(t *testing.T) {
	t.Parallel()
	eachBack(t, func(w *world) { legStateOfAnotherServer(w, spec.Modern) })
	eachBack(t, func(w *world) {
		here, there := w.clientOf(alice, spec.Legacy, "peer"), w.clientOf(alice, spec.Legacy, other)
		for _, c := range []*tenant{here, there} {
			wrong := *c
			wrong.path = map[string]string{here.path: there.path, there.path: here.path}[c.path]
			unknown := wrong
			unknown.session = "1unknown-ABCDEFGHIJKLMNOPQRSTUVWXYZ"
			w.same("the session of "+c.path+" at "+wrong.path, wrong.ask("ping", "", ""), unknown.ask("ping", "", ""))
			if got := c.ask("ping", "", ""); got.status != 200 {
				w.t.Errorf("the session at its own server = %d %s", got.status, got.body)
			}
		}
	})
}

// A client's own credential goes to no server, whatever it is called (CWE-522).
func TestA01CredentialStaysHere(t *testing.T) {
	t.Parallel()
	w := newWorld(t, spec.Legacy, settings.IsolatePrincipal)
	seen := make(chan http.Header, 64)
	inner := w.legacy.Config.Handler
	w.legacy.Config.Handler = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		seen <- r.Header.Clone()
		inner.ServeHTTP(rw, r)
	})
	for _, front := range []spec.Era{spec.Legacy, spec.Modern} {
		w.client(alice, front).tool("whoami", "")
	}
	if len(seen) == 0 {
		t.Fatal("nothing reached the server")
	}
	for len(seen) > 0 {
		for name, values := range <-seen {
			if strings.Contains(strings.Join(values, " "), tokenOf(alice)) || name == "Authorization" {
				t.Errorf("the server was sent %s: %q", name, values)
			}
		}
	}
}
