package router

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/replicastest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/settings"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/trust/auth"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	modernback "github.com/mcpbridge/mcpbridge/modern/back"
)

// A deployment is some replicas with a server, whose engine the test has.
type deployment struct {
	patient time.Duration // for so long a call is sent again that a replica without a processor has refused
	starved bool          // one was refused for longer
	*replicastest.Broker
	all  []*replica
	peer *modernPeer
}

// newDeployment returns n replicas before a modern server.
func newDeployment(t *testing.T, n int, change func(*Options)) *deployment {
	t.Helper()
	d := &deployment{Broker: replicastest.New(), peer: newModernPeer(t)}
	for range n {
		d.start(t, change)
	}
	for _, r := range d.all {
		eventually(t, func() bool { return len(r.peers.View().Members) == n })
	}
	return d
}

// start adds a replica.
func (d *deployment) start(t *testing.T, change func(*Options)) *replica {
	t.Helper()
	r := newReplica(t, d.Broker, newPeer(t), func(o *Options) {
		o.Servers = []ServerOptions{{Name: "peer", Open: func(c mcp.Changes) (mcp.Back, error) {
			return modernback.New(modernback.Options{Options: upstream.Options{Name: "peer", URL: d.peer.URL, Changes: c, Logger: o.Logger, Settings: settings.Server{Linger: time.Millisecond},
				ClientInfo: []byte(`{"name":"mcpbridge","version":"test"}`)}})
		}}}
		if change != nil {
			change(o)
		}
	})
	d.all = append(d.all, r)
	return r
}

// drain tells all that a replica ends, and waits until they know.
func (d *deployment) drain(t *testing.T, r *replica) {
	t.Helper()
	self := r.peers.Self()
	self.Draining = true
	r.engine.Update(self)
	for _, other := range d.all {
		eventually(t, func() bool {
			m, lives := other.peers.View().Member(self.Instance)
			return !lives || m.Draining
		})
	}
	r.g.Drain()
}

// end ends a replica as a shutdown does, and waits until the others know.
func (d *deployment) end(t *testing.T, r *replica) {
	t.Helper()
	r.g.EndStreams()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := r.g.EndConnections(ctx); err != nil {
		t.Errorf("EndConnections() = %v", err)
	}
	if err := r.engine.Leave(ctx); err != nil {
		t.Error(err)
	}
	r.listener.Listener.Close()
	for i, other := range d.all {
		if other == r {
			d.all = append(d.all[:i:i], d.all[i+1:]...)
			break
		}
	}
	for _, other := range d.all {
		eventually(t, func() bool { _, lives := other.peers.View().Member(r.peers.Self().Instance); return !lives })
	}
}

func (r *replica) sessions() int { return r.g.Snapshot().Sessions }

const listToolsBody = `{"jsonrpc":"2.0","id":7,"method":"tools/list"}`

// works reports that a session is served by all replicas. On a busy machine one may be silent for
// longer than the others wait; who is told so tries again.
func (d *deployment) works(t *testing.T, session, when string) {
	t.Helper()
	for i, r := range d.all {
		var a answer
		eventually(t, func() bool {
			a = r.send(t, http.MethodPost, listToolsBody, sessionHeaders(session))
			return a.status != http.StatusServiceUnavailable || a.header.Get("Retry-After") == ""
		})
		if a.status != 200 || !strings.Contains(a.body, `"tools"`) {
			t.Errorf("%s: tools/list at replica %d = %d %s", when, i, a.status, a.body)
		}
	}
}

// Sessions on a modern server go on while their replicas are replaced one after another, with
// all that they follow; each end of a stream is followed by a cue.
func TestHandover(t *testing.T) {
	t.Parallel()
	d := newDeployment(t, 3, nil)
	d.peer.answers["tools/list"] = `{"resultType":"complete","tools":[],"ttlMs":0,"cacheScope":"private"}`
	first := d.all[0]
	session := first.initialize(t)
	if a := d.all[1].send(t, http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"note://a"}}`, sessionHeaders(session)); a.status != 200 || a.code() != 0 {
		t.Fatalf("subscribe = %+v", a)
	}
	for n := range 4 {
		holder := d.holder(t)
		stream := d.all[(n+1)%len(d.all)].open(t, http.MethodGet, "", sessionHeaders(session))
		t.Cleanup(func() { stream.Body.Close() })
		if stream.StatusCode != 200 {
			t.Fatalf("GET = %d", stream.StatusCode)
		}
		if n > 0 {
			f := &frames{t, stream, bufio.NewReader(stream.Body)}
			for data := f.next(); !strings.Contains(data, "note://a"); data = f.next() {
				if data == "" {
					t.Fatal("the stream has ended without a cue")
				}
			}
		}
		d.works(t, session, fmt.Sprint("before ", n))
		d.drain(t, holder)
		eventually(t, func() bool { return holder.sessions() == 0 })
		d.works(t, session, fmt.Sprint("while it is draining ", n))
		d.end(t, holder)
		d.works(t, session, fmt.Sprint("after ", n))
		next := d.start(t, nil)
		eventually(t, func() bool { return len(next.peers.View().Members) == 3 })
		for _, r := range d.all {
			eventually(t, func() bool { return len(r.peers.View().Members) == 3 })
		}
		d.works(t, session, fmt.Sprint("with another replica ", n))
	}
	if a := d.all[0].send(t, http.MethodDelete, "", sessionHeaders(session)); a.status != http.StatusNoContent {
		t.Errorf("DELETE = %+v", a)
	}
	for _, r := range d.all {
		if a := r.send(t, http.MethodPost, listToolsBody, sessionHeaders(session)); a.status != http.StatusNotFound || a.code() != -32001 {
			t.Errorf("after its end: %+v", a)
		}
	}
}

// The open stream of a GET keeps no session, though its handler stays over HTTP/2: it ends, and the client
// opens the next one elsewhere.
func TestHandoverUnderAStreamOfHTTP2(t *testing.T) {
	t.Parallel()
	d := newDeployment(t, 2, nil)
	a, b := d.all[0], d.all[1]
	s := httptest.NewUnstartedServer(a.g)
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	session := a.initialize(t)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+"/mcp/peer", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header = sessionHeaders(session)
	stream, err := s.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Body.Close()
	if stream.StatusCode != http.StatusOK || stream.ProtoMajor != 2 {
		t.Fatalf("GET = %s %d, want a stream of HTTP/2", stream.Proto, stream.StatusCode)
	}
	d.drain(t, a)
	eventually(t, func() bool { return a.sessions() == 0 && b.sessions() == 1 })
	if _, err := io.ReadAll(stream.Body); err != nil {
		t.Errorf("the stream ended with %v", err)
	}
}

// holder returns the replica that has the one session.
func (d *deployment) holder(t *testing.T) *replica {
	t.Helper()
	for _, r := range d.all {
		if r.sessions() == 1 {
			return r
		}
	}
	t.Fatal("no replica has the session")
	return nil
}

// Clients that call all the time lose neither a call nor their session while each replica is
// replaced.
func TestHandoverUnderLoad(t *testing.T) {
	t.Parallel()
	d := newDeployment(t, 3, nil)
	d.peer.answers["tools/list"] = `{"resultType":"complete","tools":[],"ttlMs":0,"cacheScope":"private"}`
	var mu sync.RWMutex // guards live, and is held while one of them is called
	live := d.all
	var next atomic.Int64
	call := func(session string) answer {
		mu.RLock()
		defer mu.RUnlock()
		return live[int(next.Add(1))%len(live)].send(t, http.MethodPost, listToolsBody, sessionHeaders(session))
	}
	stop := make(chan struct{})
	var clients sync.WaitGroup
	var calls atomic.Int64
	for n := range 12 {
		session := d.all[n%3].initialize(t)
		clients.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if a := insist(func() answer { return call(session) }); a.status != 200 || a.code() != 0 {
					t.Errorf("call of session %d = %d %s", n, a.status, a.body)
					return
				}
				calls.Add(1)
			}
		})
	}
	for range 3 {
		old := d.all[0]
		before := calls.Load()
		d.drain(t, old)
		eventually(t, func() bool { return old.sessions() == 0 && calls.Load() > before+20 })
		mu.Lock()
		live = d.all[1:] // the balancer has noticed
		mu.Unlock()
		d.end(t, old)
		r := d.start(t, nil)
		eventually(t, func() bool { return len(r.peers.View().Members) == 3 })
		for _, other := range d.all {
			eventually(t, func() bool { return len(other.peers.View().Members) == 3 })
		}
		mu.Lock()
		live = d.all
		mu.Unlock()
	}
	close(stop)
	clients.Wait()
	if calls.Load() < 100 {
		t.Errorf("%d calls", calls.Load())
	}
}

// insist sends a call again that was refused since a replica had no processor: nothing was done.
func insist(call func() answer) answer {
	a := call()
	for end := time.Now().Add(patience); starved(a) && time.Now().Before(end); a = call() {
		time.Sleep(100 * time.Millisecond)
	}
	return a
}

// A session is not handed over while one of its calls runs.
func TestHandoverWaitsForCalls(t *testing.T) {
	t.Parallel()
	d := newDeployment(t, 2, nil)
	hold := make(chan struct{})
	d.peer.mu.Lock()
	d.peer.answers["tools/call"] = `{"resultType":"complete","content":[{"type":"text","text":"done"}]}`
	d.peer.hold = map[string]chan struct{}{"tools/call": hold}
	d.peer.mu.Unlock()
	session := d.all[0].initialize(t)
	answers := make(chan answer, 1)
	go func() {
		answers <- d.all[1].send(t, http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":{}}}`, sessionHeaders(session))
	}()
	eventually(t, func() bool { return len(d.peer.sent("tools/call")) == 1 })
	d.drain(t, d.all[0])
	time.Sleep(100 * time.Millisecond)
	if got := d.all[0].sessions(); got != 1 {
		t.Errorf("%d sessions while a call runs, want 1", got)
	}
	close(hold)
	if a := <-answers; a.status != 200 || !strings.Contains(a.body, "done") {
		t.Errorf("the call = %+v", a)
	}
	eventually(t, func() bool { return d.all[0].sessions() == 0 && d.all[1].sessions() == 1 })
}

// The limits of who goes on with a session apply: what is too much ends with its replica.
func TestHandoverIsBounded(t *testing.T) {
	t.Parallel()
	d := newDeployment(t, 2, func(o *Options) { o.bound("client_sessions", 1) })
	a, b := d.all[0], d.all[1]
	own := b.initialize(t)
	stream := b.open(t, http.MethodGet, "", sessionHeaders(own)) // so that it is in use
	defer stream.Body.Close()
	session := a.initialize(t)
	d.drain(t, a)
	eventually(t, func() bool { return strings.Contains(a.logs.String(), "not handed over") })
	d.peer.mu.Lock()
	d.peer.answers["tools/list"] = `{"resultType":"complete","tools":[],"ttlMs":0,"cacheScope":"private"}`
	d.peer.mu.Unlock()
	d.works(t, session, "as long as its replica lives")
	d.end(t, a)
	if got := b.send(t, http.MethodPost, listToolsBody, sessionHeaders(session)); got.status != http.StatusNotFound || got.code() != -32001 {
		t.Errorf("after the end of its replica: %+v", got)
	}
	if got := b.send(t, http.MethodPost, listToolsBody, sessionHeaders(own)); got.status != 200 {
		t.Errorf("the other session: %+v", got)
	}
}

// A session that was handed over is its principal's alone, wherever it is asked for.
func TestHandedOverSessionIsItsPrincipals(t *testing.T) {
	t.Parallel()
	tokens := func(o *Options) {
		known, err := auth.NewTokens([]auth.StaticToken{{Name: alice, Token: tokenOf(alice)}, {Name: bob, Token: tokenOf(bob)}})
		if err != nil {
			t.Fatal(err)
		}
		o.Auth = known
	}
	d := newDeployment(t, 3, tokens)
	d.peer.answers["tools/list"] = `{"resultType":"complete","tools":[],"ttlMs":0,"cacheScope":"private"}`
	as := func(who, session string) http.Header {
		h := sessionHeaders(session)
		h.Set("Authorization", "Bearer "+tokenOf(who))
		return h
	}
	first := d.all[0]
	session := first.send(t, http.MethodPost, initializeBody, as("alice", "")).header.Get(spec.HeaderSession)
	check := func(when string) {
		t.Helper()
		for i, r := range d.all {
			if a := r.send(t, http.MethodPost, listToolsBody, as("alice", session)); a.status != 200 {
				t.Errorf("%s: alice at %d: %+v", when, i, a)
			}
			if a := r.send(t, http.MethodPost, listToolsBody, as("bob", session)); a.status != http.StatusNotFound {
				t.Errorf("%s: bob at %d: %+v", when, i, a)
			}
			if a := r.send(t, http.MethodDelete, "", as("bob", session)); a.status != http.StatusNotFound {
				t.Errorf("%s: bob ends it at %d: %+v", when, i, a)
			}
		}
	}
	d.drain(t, first)
	eventually(t, func() bool { return first.sessions() == 0 })
	check("draining")
	d.end(t, first)
	check("gone")
}

// Nothing is asked of the engine for calls: neither of sessions whose replicas live, nor again
// and again of one that went on elsewhere, or nowhere.
func TestHandoverAsksTheEngineOnce(t *testing.T) {
	t.Parallel()
	d := newDeployment(t, 3, nil)
	d.peer.answers["tools/list"] = `{"resultType":"complete","tools":[],"ttlMs":0,"cacheScope":"private"}`
	first := d.all[0]
	session, lost := first.initialize(t), "1"+first.peers.Self().Instance+"-LOST"
	asked := d.Reads
	for range 20 {
		d.works(t, session, "before")
	}
	if n := asked(); n != 0 {
		t.Errorf("%d records were asked for while the session's replica lives", n)
	}
	d.drain(t, first)
	eventually(t, func() bool { return first.sessions() == 0 })
	d.end(t, first)
	before, begun := asked(), time.Now()
	for range 20 {
		d.works(t, session, "after")
		for _, r := range d.all {
			if a := r.send(t, http.MethodPost, listToolsBody, sessionHeaders(lost)); a.status != http.StatusNotFound {
				t.Errorf("no such session: %+v", a)
			}
		}
	}
	again := 2 * int(time.Since(begun)/time.Second) // for the one that nobody has, by each replica
	if n := asked() - before; n > 12+again {
		t.Errorf("%d records were asked for in 80 calls of two sessions, want a few", n)
	}
}
