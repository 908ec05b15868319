package peer

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/downstream"
)

// dials counts connects, and says what becomes of them.
type dials struct {
	n    atomic.Int64
	mu   sync.Mutex
	next func(ctx context.Context) (net.Conn, error)
}

func (d *dials) set(next func(ctx context.Context) (net.Conn, error)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.next = next
}

func (d *dials) connect(ctx context.Context, _, _ string) (net.Conn, error) {
	d.n.Add(1)
	d.mu.Lock()
	next := d.next
	d.mu.Unlock()
	return next(ctx)
}

func refuse(context.Context) (net.Conn, error) {
	return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
}

func stall(ctx context.Context) (net.Conn, error) {
	select {
	case <-time.After(dialTimeout):
		return nil, &net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded}
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// stopped is a process that is stopped: its kernel connects, and nothing answers.
func stopped(context.Context) (net.Conn, error) {
	near, far := net.Pipe()
	go func() { // ends with the connection
		for buf := make([]byte, 1024); ; {
			if _, err := far.Read(buf); err != nil {
				_ = far.Close()
				return
			}
		}
	}()
	return near, nil
}

// answering returns connects to a group's hello, and to a call that takes long.
func answering(g *Group, takes time.Duration) func(context.Context) (net.Conn, error) {
	return func(context.Context) (net.Conn, error) {
		near, far := net.Pipe()
		l := &oneConn{conn: far, done: make(chan struct{})}
		s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			e, err := g.Open(r)
			switch {
			case err != nil:
				Refuse(w, err)
			case r.URL.Path == HelloPath:
				g.ServeHello(w, r, e)
			default:
				time.Sleep(takes)
				_, _ = w.Write([]byte("served"))
			}
		}), ConnState: func(_ net.Conn, state http.ConnState) {
			if state == http.StateClosed {
				close(l.done)
			}
		}}
		go func() { _ = s.Serve(l) }() // ends with the connection
		return near, nil
	}
}

type oneConn struct {
	conn net.Conn
	used atomic.Bool
	done chan struct{}
}

func (l *oneConn) Accept() (net.Conn, error) {
	if !l.used.Swap(true) {
		return l.conn, nil
	}
	<-l.done
	return nil, net.ErrClosed
}
func (l *oneConn) Close() error   { return nil }
func (l *oneConn) Addr() net.Addr { return l.conn.LocalAddr() }

// wantServed checks that a replica that is there again is asked again, and serves.
func wantServed(t *testing.T, g *Group) {
	t.Helper()
	time.Sleep(2 * dialEvery)
	_, _ = call(g)
	time.Sleep(2 * dialEvery)
	if got, err := call(g); got != "served" {
		t.Errorf("when it is there again: %q, %v", got, err)
	}
}

// call forwards a request, and returns what became of it.
func call(g *Group) (string, error) {
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodPost, "/mcp/files", strings.NewReader("{}"))
	err := g.Forward(w, r, Forward{To: holder, Path: "/mcp/files", WriteTimeout: time.Second})
	return w.Body.String(), err
}

func isGone(err error) bool {
	gone := (*GoneError)(nil)
	return errors.As(err, &gone)
}

func isSilent(err error) bool {
	silent := (*SilentError)(nil)
	return errors.As(err, &silent)
}

// A replica that refuses connects is gone at once, and is not asked more than once a second
// whatever the number of requests.
func TestGateGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &dials{next: refuse}
		g := newGroup(t, edge, testKey)
		g.connect = d.connect
		var wg sync.WaitGroup
		for range 500 {
			wg.Go(func() {
				if _, err := call(g); !isGone(err) {
					t.Errorf("= %v, want that it is gone", err)
				}
			})
		}
		wg.Wait()
		if n := d.n.Load(); n != 1 {
			t.Errorf("%d connects for 500 requests, want 1", n)
		}
		for range 1000 {
			time.Sleep(10 * time.Millisecond)
			began := time.Now()
			if _, err := call(g); !isGone(err) || time.Since(began) > 0 {
				t.Fatalf("= %v after %v", err, time.Since(began))
			}
		}
		synctest.Wait()
		if n := d.n.Load(); n < 5 || n > 11 {
			t.Errorf("%d connects in 10 s, want one a second", n)
		}
		d.set(answering(newGroup(t, holder, testKey), 0))
		time.Sleep(dialEvery)
		_, _ = call(g)
		time.Sleep(dialEvery)
		if got, err := call(g); got != "served" {
			t.Errorf("when it is there again: %q, %v", got, err)
		}
	})
}

// A replica that does not answer connects may come back for three seconds, and is gone then.
func TestGateSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &dials{next: stall}
		g := newGroup(t, edge, testKey)
		g.connect = d.connect
		began := time.Now()
		if _, err := call(g); !isSilent(err) || time.Since(began) != dialTimeout {
			t.Fatalf("the first = %v after %v", err, time.Since(began))
		}
		silent := time.Now()
		for time.Since(silent) < 10*time.Second {
			began := time.Now()
			_, err := call(g)
			if took := time.Since(began); took > 0 || isSilent(err) != (time.Since(silent) < silentFor) || isGone(err) == isSilent(err) {
				t.Fatalf("after %v: %v in %v", time.Since(silent), err, took)
			}
			time.Sleep(50 * time.Millisecond)
		}
		if n := d.n.Load(); n > 11 {
			t.Errorf("%d connects in 10 s", n)
		}
		d.set(answering(newGroup(t, holder, testKey), 0))
		wantServed(t, g)
	})
}

// served returns a group that another replica has served.
func served(t *testing.T) (*dials, *Group) {
	t.Helper()
	d, g := &dials{next: answering(newGroup(t, holder, testKey), 0)}, newGroup(t, edge, testKey)
	g.connect = d.connect
	if got, err := call(g); got != "served" {
		t.Fatalf("before: %q, %v", got, err)
	}
	return d, g
}

// A replica that was silent for a moment, and of which nobody asked anything since, is asked before it
// is told to be gone.
func TestGateSilentForAMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, g := served(t)
		d.set(stall)
		g.client.CloseIdleConnections()
		if _, err := call(g); !isSilent(err) {
			t.Fatalf("while it is silent: %v", err)
		}
		d.set(answering(newGroup(t, holder, testKey), 0))
		time.Sleep(time.Minute)
		if got, err := call(g); got != "served" {
			t.Errorf("when it is there again: %q, %v", got, err)
		}
	})
}

func failing(err error) func(context.Context) (net.Conn, error) {
	return func(context.Context) (net.Conn, error) { return nil, &net.OpError{Op: "dial", Err: err} }
}

// ownFaults are those of the machine on which a replica runs, which says nothing of another one.
var ownFaults = map[string]error{
	"no descriptor":               os.NewSyscallError("socket", syscall.EMFILE),
	"no port":                     os.NewSyscallError("connect", syscall.EADDRNOTAVAIL),
	"the name server is not well": &net.DNSError{Err: "server misbehaving", Name: "b", IsTemporary: true},
}

// What this machine can't do by itself is not told as the end of the other replica, however long it lasts:
// its sessions and calls live. It is asked as soon as that is over.
func TestGateOfAMachineThatCantConnect(t *testing.T) {
	for name, fault := range ownFaults {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d, g := served(t)
				fresh := newGroup(t, edge, testKey) // which has not reached it before
				fresh.connect = d.connect
				d.set(failing(fault))
				g.client.CloseIdleConnections()
				for range 200 {
					for _, g := range []*Group{g, fresh} {
						if _, err := call(g); !isSilent(err) {
							t.Fatalf("= %v, want that it is to be tried again", err)
						}
					}
					if err := g.Greet(t.Context(), holder); err == nil {
						t.Fatal("the replica was greeted that was not asked")
					}
					time.Sleep(50 * time.Millisecond)
				}
				d.set(answering(newGroup(t, holder, testKey), 0))
				for _, g := range []*Group{g, fresh} {
					if got, err := call(g); got != "served" {
						t.Errorf("once it can connect: %q, %v", got, err)
					}
				}
			})
		})
	}
}

// A call that waits for its response is not ended because this machine can't ask whether its replica lives.
func TestACallOutlastsWhatAMachineCantDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &dials{next: answering(newGroup(t, holder, testKey), time.Minute)}
		g := newGroup(t, edge, testKey)
		g.connect = d.connect
		time.AfterFunc(10*time.Second, func() { d.set(failing(ownFaults["no descriptor"])) })
		if got, err := call(g); got != "served" {
			t.Errorf("= %q, %v, want its response", got, err)
		}
		time.Sleep(time.Minute) // until the call ends there
	})
}

// What the network says of the way to a replica is no word of that one, which may come back as a silent
// one; that its name is no more is one.
func TestGateWithoutAWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, g := served(t)
		d.set(failing(os.NewSyscallError("connect", syscall.ENETUNREACH)))
		g.client.CloseIdleConnections()
		for begun := time.Now(); time.Since(begun) < silentFor; time.Sleep(50 * time.Millisecond) {
			if _, err := call(g); !isSilent(err) {
				t.Fatalf("after %v: %v, want that it may come back", time.Since(begun), err)
			}
		}
		d.set(answering(newGroup(t, holder, testKey), 0))
		wantServed(t, g)
		d.set(failing(&net.DNSError{Err: "no such host", Name: "b", IsNotFound: true}))
		g.client.CloseIdleConnections()
		if _, err := call(g); !isGone(err) {
			t.Errorf("without its name: %v, want that it is gone", err)
		}
	})
}

// Whoever waits for a replica that was silent, or has refused connects, learns that it answers again though
// nobody sends it anything.
func TestReaches(t *testing.T) {
	for name, fault := range map[string]func(context.Context) (net.Conn, error){"silent": stall, "gone": refuse} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d, g := served(t)
				if !g.Reaches(holder) {
					t.Error("it does not reach who has served it")
				}
				d.set(fault)
				g.client.CloseIdleConnections()
				if _, err := call(g); err == nil || g.Reaches(holder) {
					t.Fatalf("= %v, and it reaches the replica: %v", err, g.Reaches(holder))
				}
				for range 100 {
					time.Sleep(100 * time.Millisecond)
					if g.Reaches(holder) {
						t.Fatal("it reaches who does not answer")
					}
				}
				d.set(answering(newGroup(t, holder, testKey), 0))
				began := time.Now()
				for !g.Reaches(holder) && time.Since(began) < time.Minute {
					time.Sleep(100 * time.Millisecond)
				}
				if took := time.Since(began); took > dialEvery+dialTimeout+100*time.Millisecond {
					t.Errorf("it reaches the replica again after %v", took)
				}
			})
		})
	}
}

// Nothing is sent to a process that is stopped, for which its kernel connects; a request that waits
// for a living process is waited for.
func TestGateStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, g := served(t)
		d.set(stopped)
		began := time.Now()
		if _, err := call(g); !isSilent(err) || time.Since(began) != dialTimeout {
			t.Errorf("= %v after %v", err, time.Since(began))
		}
		if _, err := call(g); !isSilent(err) {
			t.Errorf("the next = %v", err)
		}
		time.Sleep(silentFor)
		if _, err := call(g); !isGone(err) {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		d := &dials{next: answering(newGroup(t, holder, testKey), 5*time.Minute)}
		g := newGroup(t, edge, testKey)
		g.connect = d.connect
		if got, err := call(g); got != "served" {
			t.Errorf("a call of five minutes = %q, %v", got, err)
		}
		if n := d.n.Load(); n > 302 { // pipes are not kept: each hello has one
			t.Errorf("%d connects in five minutes", n)
		}
	})
}

// A process that is stopped while it serves a request is not waited for without end either.
func TestGateStoppedLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &dials{next: answering(newGroup(t, holder, testKey), 5*time.Minute)}
		g := newGroup(t, edge, testKey)
		g.connect = d.connect
		began := time.Now()
		time.AfterFunc(time.Minute, func() { d.set(stopped) })
		unanswered := (*UnansweredError)(nil)
		if _, err := call(g); !errors.As(err, &unanswered) || time.Since(began) > time.Minute+silentFor+dialEvery {
			t.Errorf("= %v after %v", err, time.Since(began))
		}
		time.Sleep(5 * time.Minute) // until the call ends there
	})
}

// The answer to a hello is another replica's, or none.
func TestHello(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &dials{next: answering(newGroup(t, holder, testKey), 0)}
		g := newGroup(t, edge, testKey)
		g.connect = d.connect
		if got, err := g.Hello(t.Context(), holder.Addr); err != nil || got != holder {
			t.Errorf("Hello() = %+v, %v, want %+v", got, err, holder)
		}
		d.set(answering(newGroup(t, holder, otherKey), 0))
		if got, err := g.Hello(t.Context(), "127.0.0.1:3"); err == nil {
			t.Errorf("of another key: %+v", got)
		}
		d.set(func(context.Context) (net.Conn, error) {
			near, far := net.Pipe()
			go func() { // ends with the request
				defer far.Close()
				_, _ = far.Read(make([]byte, 4096))
				_, _ = far.Write([]byte("HTTP/1.1 200 OK\r\nContent-Length: 23\r\n\r\n{\"instance\":\"BBBBBBBB\"}"))
			}()
			return near, nil
		})
		if got, err := g.Hello(t.Context(), "127.0.0.1:4"); err == nil {
			t.Errorf("without a proof: %+v", got)
		}
	})
}

// A client that leaves ends its request at once.
func TestForwardClientLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &dials{next: stopped}
		g := newGroup(t, edge, testKey)
		g.connect = d.connect
		ctx, leave := context.WithCancel(t.Context())
		time.AfterFunc(100*time.Millisecond, leave)
		began := time.Now()
		r := httptest.NewRequest(http.MethodGet, "/mcp/files", nil).WithContext(ctx)
		if err := g.Forward(httptest.NewRecorder(), r, Forward{To: holder, Path: "/mcp/files"}); err != downstream.ErrClientLeft || time.Since(began) != 100*time.Millisecond {
			t.Errorf("= %v after %v", err, time.Since(began))
		}
	})
}

// A proxy that connects for a replica which is gone has nothing forwarded to it: the request may be
// sent again. Who connects has not said that the replica is gone.
func TestGateBehindAProxy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, g := served(t)
		var sent sync.Map
		d.set(func(context.Context) (net.Conn, error) {
			near, far := net.Pipe()
			go func() { // ends with the first read
				defer far.Close()
				p := make([]byte, 4096)
				n, _ := far.Read(p)
				sent.Store(string(p[:n]), true)
			}()
			return near, nil
		})
		for range 3 {
			if _, err := call(g); !isSilent(err) {
				t.Errorf("= %v, want that it does not answer", err)
			}
		}
		sent.Range(func(text, _ any) bool {
			if !strings.HasPrefix(text.(string), "GET "+HelloPath+" ") {
				t.Errorf("the proxy was sent %q", text)
			}
			return true
		})
		d.set(answering(newGroup(t, holder, testKey), 0))
		time.Sleep(dialEvery)
		_, _ = call(g)
		time.Sleep(dialEvery)
		if got, err := call(g); got != "served" {
			t.Errorf("when it is there again: %q, %v", got, err)
		}
	})
}

// A replica that answers a hello, and then closes the connection since it ends, is sent nothing on it.
func TestGateEnding(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hold := newGroup(t, holder, testKey)
		ending := func(context.Context) (net.Conn, error) {
			near, far := net.Pipe()
			l := &oneConn{conn: far, done: make(chan struct{})}
			s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				e, err := hold.Open(r)
				if err != nil || r.URL.Path != HelloPath {
					t.Errorf("%s %s was sent, %v", r.Method, r.URL.Path, err)
					return
				}
				hold.ServeHello(w, r, e)
			}), ConnState: func(_ net.Conn, state http.ConnState) {
				if state == http.StateClosed {
					close(l.done)
				}
			}}
			s.SetKeepAlivesEnabled(false)
			go func() { _ = s.Serve(l) }() // ends with the connection
			return near, nil
		}
		g := newGroup(t, edge, testKey)
		g.connect = (&dials{next: ending}).connect
		if _, err := call(g); !isSilent(err) {
			t.Errorf("= %v, want that it does not answer", err)
		}
	})
}
