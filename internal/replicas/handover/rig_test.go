package handover

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/dev/replicastest"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/replicas"
	legacyfront "github.com/mcpbridge/mcpbridge/legacy/front"
)

const (
	serverName = "docs"
	alice      = mcp.Principal("alice")
)

// A rig has replicas that reach each other without sockets.
type rig struct {
	t      *testing.T
	broker *replicastest.Broker

	mu sync.Mutex // guards by
	by map[string]*replica
}

// A replica is a Group with the front of its one server.
type replica struct {
	*Group
	engine *replicastest.Engine
	front  *legacyfront.Front
	counts bridgetest.Counts // of Metrics
	logs   bridgetest.Logs
	name   string

	mu       sync.Mutex // guards the fields below
	stateful bool
	heir     string // of all sessions; empty: the one that the view picks
	took     []legacyfront.SessionID
	// answer, if it is not nil, answers requests to it: an error is one of the network,
	// errPass has the Group answer.
	answer func(http.ResponseWriter, *http.Request) error
}

// newRig returns replicas that know each other.
func newRig(t *testing.T, names ...string) *rig {
	rig := &rig{t: t, broker: replicastest.New(), by: make(map[string]*replica)}
	for _, name := range names {
		rig.add(name, legacyfront.Options{})
	}
	rig.settle()
	return rig
}

// settle waits until all know of each other.
func (rig *rig) settle() {
	time.Sleep(2 * replicas.Heartbeat)
	synctest.Wait()
}

// add adds a replica, whose front has some options.
func (rig *rig) add(name string, o legacyfront.Options) *replica {
	rig.t.Helper()
	r := &replica{name: name, engine: rig.broker.Join(rig.t, name, name)}
	o.Name, o.Instance = serverName, name
	o.Handler, o.Describer, o.Subscriber = nobody{}, nobody{}, nobody{}
	o.Admit = func(*mcp.Request) error { return nil }
	var err error
	if r.front, err = legacyfront.New(o); err != nil {
		rig.t.Fatal(err)
	}
	r.Group = rig.group(r, r.engine)
	rig.t.Cleanup(func() {
		r.Close()
		_ = r.front.Close(context.Background())
	})
	rig.mu.Lock()
	defer rig.mu.Unlock()
	rig.by[name] = r
	return r
}

func (rig *rig) group(r *replica, e replicas.Engine) *Group {
	rig.t.Helper()
	g, err := New(Options{
		Engine: e, Logger: slog.New(&r.logs), Metrics: r,
		URL: func(to replicas.Replica, path string) string { return "http://" + to.Addr + path },
		RoundTripper: func(to replicas.Replica, _ func(*http.Request) mcp.Sender) http.RoundTripper {
			return &network{rig, r.name, to.Instance}
		},
	})
	if err != nil {
		rig.t.Fatal(err)
	}
	return g
}

// HandedOver implements Metrics.
func (r *replica) HandedOver(outcome, reason string, n int) {
	for range n {
		r.counts.Add(outcome + reason)
	}
}

func (r *replica) set(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f()
}

// server is the replica's one server.
func (r *replica) server() Server {
	return Server{
		Name: serverName, Front: r.front,
		Stateless: func() bool { r.mu.Lock(); defer r.mu.Unlock(); return !r.stateful },
		Heir: func(h legacyfront.Handover) replicas.Replica {
			r.mu.Lock()
			defer r.mu.Unlock()
			if to, lives := r.engine.View().Member(r.heir); lives {
				return to
			}
			return r.engine.View().Pick(string(h.ID))
		},
		Took: func(h legacyfront.Handover) { r.set(func() { r.took = append(r.took, h.ID) }) },
	}
}

// open opens a session, which the front adopts as it does one of another replica.
func (r *replica) open(t *testing.T, id string) legacyfront.SessionID {
	t.Helper()
	h := handoverOf(id)
	if err := r.front.Adopt(h); err != nil {
		t.Fatal(err)
	}
	return h.ID
}

// has reports whether a session is here. One that is being handed over is awaited.
func (r *replica) has(id legacyfront.SessionID) bool {
	release, d := r.front.Hold(string(id), alice)
	if d != nil {
		return d.Wait(context.Background()) == ""
	}
	if release != nil {
		release()
	}
	return release != nil
}

// drain has all know that this replica ends.
func (rig *rig) drain(r *replica) {
	self := r.engine.View().Self
	self.Draining = true
	r.engine.Update(self)
	rig.settle()
}

// leave begins to hand over. done is closed when Leave has returned.
func (r *replica) leave(t *testing.T, p Pace) (done chan struct{}) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	done = make(chan struct{})
	go func() {
		defer close(done)
		r.Leave(ctx, []Server{r.server()}, p)
	}()
	t.Cleanup(func() {
		stop()
		<-done
	})
	return done
}

// A pace says how far a test has come to the end of a replica.
type pace struct{ hurry, ending chan struct{} }

func newPace() pace { return pace{make(chan struct{}), make(chan struct{})} }

func (p pace) options() Pace { return Pace{Hurry: p.hurry, Ending: p.ending} }

// atEnd is the Pace of a replica that takes no new sessions.
func atEnd() Pace {
	p := newPace()
	close(p.hurry)
	close(p.ending)
	return p.options()
}

func handoverOf(id string) legacyfront.Handover {
	return legacyfront.Handover{
		ID: legacyfront.SessionID(id), Name: "name of " + id, Opener: mcp.Sender{Share: mcp.Share{Principal: alice}},
		Revision: "2025-11-25", Capabilities: []byte(`{"roots":{}}`), ClientInfo: []byte(`{"name":"client"}`), Opened: 1234,
	}
}

var errPass = errors.New("the group answers")

// A network carries requests from one replica to another.
type network struct {
	rig      *rig
	from, to string
}

// RoundTrip implements http.RoundTripper.
func (n *network) RoundTrip(r *http.Request) (*http.Response, error) {
	n.rig.mu.Lock()
	to, w := n.rig.by[n.to], httptest.NewRecorder()
	n.rig.mu.Unlock()
	if to == nil {
		return nil, fmt.Errorf("%s joins, and does not listen yet", n.to)
	}
	if r.URL.Path != Path+serverName || r.URL.Host != n.to {
		return nil, fmt.Errorf("nothing is at %v", r.URL)
	}
	to.mu.Lock()
	answer := to.answer
	to.mu.Unlock()
	if answer != nil {
		if err := answer(w, r); err != errPass {
			return w.Result(), err
		}
	}
	in := httptest.NewRequest(r.Method, r.URL.String(), r.Body)
	to.Serve(w, in.WithContext(r.Context()), n.from, to.server())
	return w.Result(), nil
}

// callTime is how long a call takes: long enough for its reply to be a stream.
const callTime = 3 * time.Second

// nobody is what stands behind a front in these tests.
type nobody struct{}

func (nobody) Serve(context.Context, *mcp.Request, mcp.Caller) (*mcp.Result, error) {
	time.Sleep(callTime)
	return mcp.NewResult([]byte(`{"content":[]}`), nil), nil
}

func (nobody) Describe(context.Context, *mcp.Request) (*mcp.Description, error) {
	return &mcp.Description{Capabilities: []byte(`{}`)}, nil
}

func (nobody) Subscribe(*mcp.Request, *fanout.Mailbox, mcp.SubscribeOptions) (mcp.Subscription, error) {
	return nobody{}, nil
}

func (nobody) Add(_ context.Context, want mcp.Filter) (mcp.Filter, error) { return want, nil }
func (nobody) Remove(...string)                                           {}
func (nobody) Close()                                                     {}
