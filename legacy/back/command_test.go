package back

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/legacytest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/wake"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A child is one process of a command, in memory: what it says is up to its script.
type child struct {
	transport.Conn
	peer   *legacytest.ConnPeer
	unread atomic.Int64 // bytes that it has not read
	once   sync.Once
	gone   chan struct{}
	words  string
	ending time.Duration // that Close takes
}

func (c *child) Unread() (int, bool)   { return int(c.unread.Load()), true }
func (c *child) Done() <-chan struct{} { return c.gone }

func (c *child) Err() error {
	return &transport.ExitError{Name: "scripted", Status: "exit status 1", Stderr: []string{c.words}}
}

// exit ends the child by itself.
func (c *child) exit(words string) {
	c.once.Do(func() {
		c.words = words
		_ = c.peer.Conn.Close()
		close(c.gone)
	})
}

// Close lets the script read what was written before.
func (c *child) Close() error {
	time.Sleep(c.ending)
	err := c.Conn.Close()
	c.once.Do(func() { close(c.gone) })
	return err
}

// serves answers the handshake.
func serves(c *child) { c.peer.Handshake(legacytest.Everything) }

// refuses answers initialize with an error.
func refuses(c *child) {
	m := c.peer.Want("initialize")
	c.peer.Write(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32022,"message":"no such revision"}}`, m.ID)
}

// reads takes initialize and says nothing.
func reads(c *child) { c.peer.Want("initialize") }

// exits ends on initialize.
func exits(c *child) {
	c.peer.Want("initialize")
	c.exit("unexpected message")
}

// A commandRig is a Back of a command whose processes follow scripts in turn.
type commandRig struct {
	*Back
	launcher *transport.Launcher
	children []*child
	most     int // that were alive at once
	running  sync.WaitGroup
}

func newCommandRig(t *testing.T, scripts ...func(*child)) *commandRig {
	r := &commandRig{}
	r.launcher = transport.NewLauncher(func() (transport.Conn, error) {
		if len(r.children) == len(scripts) {
			t.Errorf("start %d, want no more than %d", len(r.children)+1, len(scripts))
			return nil, errors.New("no script")
		}
		near, far := transport.NewPipe()
		c := &child{Conn: near, peer: legacytest.NewConnPeer(t, far), gone: make(chan struct{})}
		script := scripts[len(r.children)]
		r.children = append(r.children, c)
		r.most = max(r.most, r.alive())
		r.running.Go(func() { script(c) })
		return c, nil
	}, nil)
	r.Back = newTestBack(t, Options{Launcher: r.launcher})
	return r
}

func (r *commandRig) alive() (n int) {
	for _, c := range r.children {
		select {
		case <-c.gone:
		default:
			n++
		}
	}
	return n
}

// asked has a process kept that was asked server/discover before.
func (r *commandRig) asked(t *testing.T) *child {
	t.Helper()
	p, err := r.launcher.Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p.SetLastID(1)
	r.launcher.Keep(p)
	return r.children[0]
}

// end ends everything, so that scripts end, too.
func (r *commandRig) end(t *testing.T) {
	t.Helper()
	if err := r.Close(t.Context()); err != nil {
		t.Error(err)
	}
	r.launcher.Close()
	r.running.Wait()
}

func TestU02CommandThatWasAsked(t *testing.T) {
	for _, tt := range []struct {
		name   string
		first  func(*child)
		second func(*child) // nil: none is started
		took   time.Duration
	}{
		{"goes on with initialize", serves, nil, 0},
		{"is slow once it has read initialize", func(c *child) { c.peer.HandshakeAfter(4 * time.Second) }, nil, 4 * time.Second},
		{"is silent once it has read initialize", reads, serves, 5 * time.Second},
		{"exits on initialize", exits, serves, 0},
		{"refuses both", refuses, serves, 0},
	} {
		bridgetest.RunBubble(t, tt.name, func(t *testing.T) {
			scripts := []func(*child){tt.first}
			if tt.second != nil {
				scripts = append(scripts, tt.second)
			}
			r := newCommandRig(t, scripts...)
			defer r.end(t)
			r.asked(t)
			begun := time.Now()
			if _, err := r.Describe(t.Context(), ask("server/discover", "")); err != nil {
				t.Errorf("Describe = %v", err)
			}
			if took := time.Since(begun).Round(100 * time.Millisecond); took != tt.took {
				t.Errorf("described after %v, want %v", took, tt.took)
			}
			first := ""
			if tt.second != nil {
				first = spec.MethodInitialize
			}
			if len(r.children) != len(scripts) || r.most != 1 || r.launcher.First() != first {
				t.Errorf("%d processes, %d at once, first %q, want %d, 1, %q", len(r.children), r.most, r.launcher.First(), len(scripts), first)
			}
		})
	}
}

// What a process has not read is no reason to end it.
func TestU02UnreadIsNoSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newCommandRig(t, func(c *child) {
			time.Sleep(9 * time.Second)
			c.unread.Store(0)
			serves(c)
		})
		defer r.end(t)
		r.asked(t).unread.Store(100)
		if _, err := r.Describe(t.Context(), ask("server/discover", "")); err != nil || len(r.children) != 1 {
			t.Errorf("Describe = %v with %d processes, want the one that was slow to start", err, len(r.children))
		}
	})
}

// A process that refuses the first request it gets is left to be asked the other one.
func TestU01RefusedInitializeLeavesTheProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newCommandRig(t, refuses)
		defer r.end(t)
		_, err := r.Describe(t.Context(), ask("server/discover", ""))
		if !errors.Is(err, mcp.ErrOtherEra) || !strings.Contains(err.Error(), "no such revision") {
			t.Errorf("Describe = %v, want the refusal, and that the era is in doubt", err)
		}
		p, err := r.launcher.Dial(t.Context())
		if err != nil || p.LastID() != 1 || len(r.children) != 1 {
			t.Fatalf("Dial = %v, %v with %d processes, want the one that refused", p, err, len(r.children))
		}
		_ = p.Close()
	})
}

// One that has not answered yet when initialize comes may only be slow: its refusal of
// that is no reason to end it.
func TestU01SlowToAnswerIsAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newCommandRig(t, refuses)
		defer r.end(t)
		p, err := r.launcher.Dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		p.SetLastID(1)
		p.SetSilent(true)
		r.launcher.Keep(p)
		if _, err := r.Describe(t.Context(), ask("server/discover", "")); !errors.Is(err, mcp.ErrOtherEra) {
			t.Errorf("Describe = %v, want the era in doubt", err)
		}
		if !r.launcher.HasRefused() || r.launcher.First() != "" || len(r.children) != 1 {
			t.Errorf("refused %v, first %q, %d processes, want the process kept to be asked", r.launcher.HasRefused(), r.launcher.First(), len(r.children))
		}
	})
}

// Before a process is started, the sessions that nobody uses end.
func TestM2L02IdleSessionsMakeWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newCommandRig(t, serves, serves)
		defer r.end(t)
		for _, scope := range []string{"one", "two", "two"} {
			req := ask("server/discover", "")
			req.Profile.Scope = scope
			if _, err := r.Describe(t.Context(), req); err != nil {
				t.Fatal(err)
			}
		}
		if len(r.children) != 2 || r.most != 1 {
			t.Errorf("%d processes, %d at once, want one after the other", len(r.children), r.most)
		}
	})
}

// A process that dies beside one in use gets its client an error that says what to do; the
// server is there all the same.
func TestU02OneProcessAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locked := func(c *child) { c.exit("another process has the lock") }
		r := newCommandRig(t, serves, locked, serves)
		defer r.end(t)
		_, release, err := r.session(t.Context(), mcp.Profile{Scope: "one"}, false)
		if err != nil {
			t.Fatal(err)
		}
		req := ask("server/discover", "")
		req.Profile.Scope = "two"
		_, err = r.Describe(t.Context(), req)
		if err == nil || !strings.Contains(err.Error(), "isolation: shared") || !strings.Contains(err.Error(), "has the lock") || !strings.Contains(err.Error(), `server "scripted"`) {
			t.Errorf("Describe = %v, want the server, the cause, and the key that helps", err)
		}
		if err := r.Err(); err != nil {
			t.Errorf("Err() = %v, want a server that is up", err)
		}
		release()
		if _, err := r.Describe(t.Context(), req); err != nil || len(r.children) != 3 {
			t.Errorf("Describe = %v with %d processes, want one in the place of the first", err, len(r.children))
		}
	})
}

// A process that dies while another is ending is started again.
func TestU02DisturbedStartIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newCommandRig(t, func(*child) {}, func(c *child) { time.Sleep(time.Second); c.exit("in use") }, serves)
		defer r.end(t)
		other, err := r.launcher.Dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(500*time.Millisecond, func() { _ = other.Close() })
		if _, err := r.Describe(t.Context(), ask("server/discover", "")); err != nil || len(r.children) != 3 {
			t.Errorf("Describe = %v with %d processes, want the third to serve", err, len(r.children))
		}
	})
}

// A dial that is given up leaves no process.
func TestCommandGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newCommandRig(t, reads)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := r.Describe(ctx, ask("server/discover", "")); err == nil {
			t.Error("Describe succeeded")
		}
		r.end(t)
		if n := r.alive(); n != 0 {
			t.Errorf("%d processes left", n)
		}
	})
}

// A client that leaves while its own session is being opened leaves no process behind, and
// the server is not blamed.
func TestS02ClientLeavesDuringTheHandshake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newCommandRig(t, reads, serves)
		defer r.end(t)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		req := ask("initialize", "")
		m := wire.Message{ID: wire.NumberID(7), Method: "initialize", Text: []byte(`{"jsonrpc":"2.0","id":7,"method":"initialize","params":{}}`)}
		if _, _, err := r.OpenRelay(ctx, req, &m, &nobody{}); !errors.Is(err, context.Canceled) {
			t.Errorf("Link = %v, want that its client left", err)
		}
		synctest.Wait()
		if n := r.alive(); n != 0 {
			t.Errorf("%d processes left", n)
		}
		begun := time.Now()
		if _, err := r.Describe(t.Context(), ask("server/discover", "")); err != nil || time.Since(begun) > 0 {
			t.Errorf("Describe = %v after %v, want the next client served at once", err, time.Since(begun))
		}
	})
}

// Who only asks what a server is has no process started beside that of a session which is
// linked for the same principal: a client that has waited in vain may have opened it.
func TestM2L05DescribedByALinkedSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newCommandRig(t, func(c *child) {
			m := c.peer.Want("initialize")
			c.peer.Result(m.ID, legacytest.InitializeResult("2025-11-25", legacytest.Everything))
		}, serves)
		defer r.end(t)
		m := wire.Message{ID: wire.NumberID(7), Method: "initialize", Text: []byte(`{"jsonrpc":"2.0","id":7,"method":"initialize","params":{}}`)}
		own := ask("initialize", "")
		own.Profile.Scope = "test/own"
		l, _, err := r.OpenRelay(t.Context(), own, &m, &nobody{})
		if err != nil {
			t.Fatal(err)
		}
		d, err := r.Describe(t.Context(), ask("server/discover", ""))
		if err != nil || len(r.children) != 1 || !mcp.Declares(d.Capabilities, "tools") {
			t.Errorf("Describe = %+v, %v with %d processes, want what the session was told", d, err, len(r.children))
		}
		other := ask("server/discover", "")
		other.Principal = "somebody else"
		if _, err := r.Describe(t.Context(), other); err != nil || len(r.children) != 2 {
			t.Errorf("Describe = %v with %d processes, want another's answer to be its own", err, len(r.children))
		}
		l.Close()
	})
}

// nobody hears nothing, and has something open.
type nobody struct{}

func (*nobody) Message(context.Context, []byte, bool) error { return nil }
func (*nobody) Rest() (time.Duration, bool, bool)           { return 0, false, false }
func (*nobody) Retire(time.Duration) bool                   { return false }

// openOwn opens a session of a client's own, with a clientInfo, that has had nothing open
// since now.
func (r *commandRig) openOwn(t *testing.T, info string) mcp.Relay {
	t.Helper()
	m := wire.Message{ID: wire.NumberID(7), Method: "initialize", Text: []byte(`{"jsonrpc":"2.0","id":7,"method":"initialize","params":{}}`)}
	req := ask("initialize", "")
	req.Profile.Scope = fmt.Sprint("test/own/", len(r.children))
	req.Profile.ClientInfo = []byte(info)
	l, _, err := r.OpenRelay(t.Context(), req, &m, &resting{since: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	go func() { // as a front does; ends with the session
		<-l.Done()
		l.Close()
	}()
	return l
}

const (
	ada = `{"name":"ada","version":"1"}`
	bob = `{"name":"bob","version":"1"}`
)

// A client that opens a session anew has left the one that it has ended, and the one in which
// it has had nothing open for 1 s. Its process has ended before another is started.
func TestM2L02LeftSessionsEndFirst(t *testing.T) {
	for _, tt := range []struct {
		name, second string
		ends         bool
		after        time.Duration
		most         int
	}{
		{"ended", ada, true, 100 * time.Millisecond, 1},
		{"ended, then another client", bob, true, 0, 1},
		{"left", ada, false, 1500 * time.Millisecond, 1},
		{"between two requests", ada, false, 900 * time.Millisecond, 2},
		{"another client", bob, false, 20 * time.Minute, 2},
	} {
		bridgetest.RunBubble(t, tt.name, func(t *testing.T) {
			r := newCommandRig(t, relays, relays)
			defer r.end(t)
			first := r.openOwn(t, ada)
			r.children[0].ending = 150 * time.Millisecond
			if tt.ends {
				first.Close()
			}
			time.Sleep(tt.after)
			begun, want := time.Now(), time.Duration(0)
			if tt.most == 1 {
				want = 150 * time.Millisecond
			}
			r.openOwn(t, tt.second)
			took := time.Since(begun)
			if tt.ends {
				took += tt.after
			}
			if r.most != tt.most || took != want {
				t.Errorf("%d processes at once, opened %v after the first was left, want %d and %v", r.most, took, tt.most, want)
			}
			if alive := wake.Closed(first.Done()); alive == (tt.most == 2) {
				t.Errorf("the first session has ended: %v", alive)
			}
		})
	}
}

// A process that may have state of a client does not end because another is needed, unless
// the command allows one only, and the client that needs it has left it.
func TestM2L02StateStaysBesideNewcomers(t *testing.T) {
	calls := func(c *child) { answers(c, spec.MethodToolsCall) }
	locked := func(c *child) { c.exit("another process has the lock") }
	for _, tt := range []struct {
		name, newcomer string
		scripts        []func(*child)
		ends, refused  bool
	}{
		{"same client", ada, []func(*child){calls, relays}, false, false},
		{"another client", bob, []func(*child){calls, relays}, false, false},
		{"same client, locks", ada, []func(*child){calls, locked, relays}, true, false},
		{"another client, locks", bob, []func(*child){calls, locked}, false, true},
	} {
		bridgetest.RunBubble(t, tt.name, func(t *testing.T) {
			r := newCommandRig(t, tt.scripts...)
			defer r.end(t)
			req := ask(spec.MethodToolsCall, `{"name":"x"}`)
			req.ClientInfo = []byte(ada)
			if _, err := r.Serve(t.Context(), req, nil); err != nil {
				t.Fatal(err)
			}
			m := wire.Message{ID: wire.NumberID(7), Method: "initialize", Text: []byte(`{"jsonrpc":"2.0","id":7,"method":"initialize","params":{}}`)}
			own := ask("initialize", "")
			own.Profile.Scope, own.Profile.ClientInfo = "test/own", []byte(tt.newcomer)
			l, _, err := r.OpenRelay(t.Context(), own, &m, &nobody{})
			if (err != nil) != tt.refused || wake.Closed(r.children[0].gone) != tt.ends {
				t.Errorf("the newcomer = %v, and the first process has ended: %v; want refused %v, ended %v", err, wake.Closed(r.children[0].gone), tt.refused, tt.ends)
			}
			if tt.refused && !strings.Contains(fmt.Sprint(err), "another process has the lock") {
				t.Errorf("refused with %v, want the server's own words", err)
			}
			if l != nil {
				l.Close()
			}
		})
	}
}

// relays answers a client's own handshake.
func relays(c *child) {
	m := c.peer.Want("initialize")
	c.peer.Result(m.ID, legacytest.InitializeResult("2025-11-25", legacytest.Everything))
}

// resting is a client that has nothing open.
type resting struct {
	nobody
	since time.Time
}

func (r *resting) Rest() (time.Duration, bool, bool) { return time.Since(r.since), true, true }
func (r *resting) Retire(least time.Duration) bool   { return time.Since(r.since) >= least }
