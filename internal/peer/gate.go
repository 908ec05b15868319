package peer

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/replicas"
)

const (
	// dialTimeout is the default of Options.DialTimeout.
	dialTimeout = 750 * time.Millisecond
	// dialEvery is the least time between two connects to a replica that is gone or silent.
	dialEvery = time.Second
	// silentFor is how long a silent replica may come back: after that it counts as gone.
	silentFor = 3 * time.Second
)

// A GoneError says that a replica does not exist any more, or refuses to be connected to.
type GoneError struct {
	Instance string
	Replaced bool // another replica answers at its address: it does not exist
	Unserved bool // it answers, and has not the server
}

func (e *GoneError) Error() string { return "replica " + e.Instance + " is gone" }

// A SilentError says that a replica does not answer, and may do so again.
type SilentError struct{ Instance string }

func (e *SilentError) Error() string { return "replica " + e.Instance + " does not answer" }

// A RefusingError says that a replica does not accept what this one sends, or does not prove
// that it is one. It has done nothing.
type RefusingError struct{ reason string }

func (e *RefusingError) Error() string { return e.reason }

// keepAlive has a machine that is gone noticed even where nothing is sent.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 5 * time.Second, Interval: 2 * time.Second, Count: 3}

// newTransport returns what connects to other replicas.
func (g *Group) newTransport(conf *tls.Config) *http.Transport {
	return &http.Transport{
		DialContext:            g.dialPeer,
		TLSClientConfig:        conf,
		TLSHandshakeTimeout:    g.timeout,
		MaxIdleConnsPerHost:    64,
		IdleConnTimeout:        90 * time.Second,
		MaxResponseHeaderBytes: 1 << 20,
		DisableCompression:     true,
	}
}

// gates are what is known of how other replicas are reached, by instance.
type gates struct {
	mu sync.Mutex
	by map[string]*gate
}

// A gate lets requests pass to one replica, or says that it can't be reached.
type gate struct {
	g    *Group
	to   replicas.Replica
	turn chan struct{} // capacity 1: taken by the connect under way

	// mu guards the fields below. It is not held while something is sent.
	mu     sync.Mutex
	proved bool          // it has answered a hello, which takes a key
	denied error         // why it did not, though somebody answers
	gone   bool          // it has refused the last connect
	other  bool          // another replica has answered the last request
	mute   bool          // it connects, and has not answered the last hello
	silent time.Time     // since when it does not answer; zero if it does
	asked  time.Time     // when the last hello began, or the last connect failed
	failed time.Time     // when the last hello or connect failed
	own    bool          // the last one failed by this machine's fault: it says nothing of the replica
	hello  chan struct{} // closed once the hello under way has ended; nil if there is none
}

type gateKey struct{}

// A pass is how a connect passes a gate: a hello does, whatever that says.
type pass struct {
	t     *gate
	hello bool
}

// sendPast sends a request to the replica behind a gate, whatever that says.
func (g *Group) sendPast(p pass, r *http.Request) (*http.Response, error) {
	t := p.t
	resp, err := g.client.RoundTrip(r.WithContext(context.WithValue(r.Context(), gateKey{}, p)))
	if err != nil {
		return nil, t.notSent(err)
	}
	if resp.Header.Get(unserved) != "" {
		_ = resp.Body.Close() // it has no more than that
		return nil, &GoneError{Instance: t.to.Instance, Unserved: true}
	}
	if resp.Header.Get(Header) == "" {
		return resp, nil
	}
	_ = resp.Body.Close() // it has no more than the status
	if resp.StatusCode == http.StatusMisdirectedRequest {
		t.note(errGone, true) // its address is another's
		return nil, &GoneError{Instance: t.to.Instance, Replaced: true}
	}
	return nil, t.refusal(resp.Header.Get(Header))
}

// refusal returns the error for an envelope that was refused. why is what the response says.
func (t *gate) refusal(why string) error {
	if why == anew {
		t.g.client.CloseIdleConnections() // they may have the same certificate
		return &SilentError{t.to.Instance}
	}
	if strings.HasPrefix(why, "v=") {
		return &RefusingError{"replica " + t.to.Instance + " is of a version that does not understand the envelope; compare the versions of mcpbridge"}
	}
	return &RefusingError{"replica " + t.to.Instance + " refuses the envelope; compare replicas.keys, and the clocks"}
}

func newGate(g *Group, to replicas.Replica) *gate {
	return &gate{g: g, to: to, turn: make(chan struct{}, 1)}
}

// of returns the gate of a replica.
func (gs *gates) of(g *Group, to replicas.Replica) *gate {
	v := g.engine.View()
	gs.mu.Lock()
	defer gs.mu.Unlock()
	if t := gs.by[to.Instance]; t != nil && t.to.Addr == to.Addr {
		return t
	}
	if gs.by == nil {
		gs.by = make(map[string]*gate)
	}
	for instance := range gs.by {
		if _, lives := v.Member(instance); !lives {
			delete(gs.by, instance)
		}
	}
	t := newGate(g, to)
	gs.by[to.Instance] = t
	return t
}

// Reaches reports whether a replica can be reached, by what is known. One that can't is asked again in the
// background, at most once in dialEvery.
func (g *Group) Reaches(to replicas.Replica) bool {
	done, err := g.gates.of(g, to).look()
	return done == nil && err == nil
}

// enter returns nil if the replica can be reached, by what is known. Otherwise the replica is
// asked again in the background, at most once in dialEvery. The first request waits until the
// replica has proved that it has a key: who can write to the engine alone gets nobody's
// credentials. So does one after a time in which nobody asked a silent replica.
func (t *gate) enter(ctx context.Context) error {
	done, err := t.look()
	if done == nil {
		return err
	}
	select {
	case <-done:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if done, err = t.look(); done != nil {
		return &SilentError{t.to.Instance} // this replica ends, or can't connect
	}
	return err
}

// look returns what is known of the replica. If that is nothing, or too old, done is closed once it is.
func (t *gate) look() (done <-chan struct{}, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	err = t.closedLocked()
	unknown := err == nil && !t.proved || t.staleLocked()
	if t.hello == nil && (unknown || err != nil && time.Since(t.asked) >= dialEvery) {
		t.beginHelloLocked()
	}
	if unknown {
		return t.hello, nil
	}
	return nil, err
}

// staleLocked reports whether the replica was silent, and was not asked since: it is asked before
// anybody is told that it is gone.
func (t *gate) staleLocked() bool {
	return t.denied == nil && !t.gone && !t.silent.IsZero() && time.Since(t.silent) >= silentFor && time.Since(t.failed) >= 2*dialEvery+t.g.timeout
}

// closedLocked returns why nothing is sent to the replica; nil if it is.
func (t *gate) closedLocked() error {
	switch {
	case t.denied != nil:
		return t.denied
	case t.gone, !t.silent.IsZero() && time.Since(t.silent) >= silentFor:
		return &GoneError{Instance: t.to.Instance, Replaced: t.other}
	case !t.silent.IsZero():
		return &SilentError{t.to.Instance}
	}
	return nil
}

// errGone is what is noted of a replica whose address is another's.
var errGone = errors.New("another replica answers")

// note takes how a connect or a hello has ended. A connect says nothing of a replica that does
// not answer: the kernel connects for a process that is stopped. Nor does what this machine can't do.
func (t *gate) note(err error, hello bool) {
	t.mu.Lock()
	was := t.closedLocked()
	t.own = isOwn(err)
	own := t.own
	switch {
	case own:
	case err == nil:
		t.succeededLocked(hello)
	default:
		t.failedLocked(err, hello)
	}
	is := t.closedLocked()
	t.mu.Unlock()
	switch {
	case own:
		t.g.hindered.Warn(t.g.log, "connecting to a replica", "replica", t.to.Instance, "addr", t.to.Addr, "err", err)
	case (was == nil) != (is == nil) && t.to.Instance != "":
		t.g.report(t.to, err)
	}
}

func (t *gate) succeededLocked(hello bool) {
	t.gone, t.other = false, false
	if hello {
		t.proved, t.denied = true, nil
	}
	if t.mute = t.mute && !hello; !t.mute {
		t.silent = time.Time{}
	}
}

func (t *gate) failedLocked(err error, hello bool) {
	t.asked, t.other = time.Now(), errors.Is(err, errGone)
	t.failed = t.asked
	refusing := (*RefusingError)(nil)
	switch {
	case errors.As(err, &refusing):
		t.denied = refusing
	case errors.Is(err, context.Canceled):
	case isRefused(err):
		t.denied, t.gone, t.proved = nil, true, false // what answers there next may be another
	default:
		t.denied, t.gone, t.mute = nil, false, t.mute || hello
		t.proved = t.proved && isTimeout(err)
		if t.silent.IsZero() {
			t.silent = time.Now()
		}
	}
}

// isRefused reports whether err says that nobody, or somebody else, is at the address of a replica. What
// the network says otherwise, as that there is no way to it, may be over in a moment.
func isRefused(err error) bool {
	lookup := (*net.DNSError)(nil)
	return errors.Is(err, errGone) || errors.Is(err, syscall.ECONNREFUSED) || errors.As(err, &lookup) && lookup.IsNotFound
}

func isTimeout(err error) bool {
	var timeout interface{ Timeout() bool }
	return errors.As(err, &timeout) && timeout.Timeout()
}

// isOwn reports whether err says nothing of a replica: this machine lacks what a connect takes, or its name
// server can't say where the replica is.
func isOwn(err error) bool {
	if lookup := (*net.DNSError)(nil); errors.As(err, &lookup) {
		return !lookup.IsNotFound && !lookup.Timeout()
	}
	return slices.ContainsFunc(lacking, func(lack error) bool { return errors.Is(err, lack) })
}

// lacking are what connects fail by for want of something here.
var lacking = []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.EADDRNOTAVAIL}

// notSent returns the error for a request that got no response.
func (t *gate) notSent(err error) error {
	if op := (*net.OpError)(nil); !errors.As(err, &op) || op.Op != "dial" {
		return err
	}
	t.note(err, false) // a handshake; connects are noted already
	t.mu.Lock()
	defer t.mu.Unlock()
	switch closed := t.closedLocked(); {
	case closed != nil:
		return closed
	case isOwn(err):
		return &SilentError{t.to.Instance}
	}
	return err
}

// dialPeer connects to another replica. One connect at a time is under way, so that no more
// than one notices that the replica is gone. Without TLS the other proves on each connection that
// it is there.
func (g *Group) dialPeer(ctx context.Context, network, addr string) (net.Conn, error) {
	p, ok := ctx.Value(gateKey{}).(pass)
	if !ok {
		return nil, errors.New("peer: a connect without a gate")
	}
	t := p.t
	done, err := p.beginDial(ctx)
	if err != nil {
		return nil, err
	}
	c, err := g.connect(ctx, network, addr)
	if proves := err == nil && !p.hello && g.scheme(t.to) == "http"; proves {
		done()
		return g.proven(ctx, c, t)
	}
	if ctx.Err() == nil {
		t.note(err, false)
	}
	done()
	return c, err
}

// beginDial waits for the turn to connect, and returns what ends it.
func (p pass) beginDial(ctx context.Context) (done func(), err error) {
	t := p.t
	select {
	case t.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	done = func() { <-t.turn }
	if err := t.closed(); err != nil && !p.hello {
		done()
		return nil, err
	}
	return done, nil
}

func (t *gate) closed() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.closedLocked()
}
