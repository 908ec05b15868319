package peer

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/http1"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/replicas"
	"github.com/mcpbridge/mcpbridge/internal/transport"
)

// HelloPath is where a replica says who it is: to one that knows only its address.
const HelloPath = "/peer/hello"

// Options configure a Group.
type Options struct {
	// Engine knows the replicas. Required.
	Engine replicas.Engine
	// Keys sign envelopes: the first one signs, all are accepted. At least one, each of at
	// least 16 characters.
	Keys []string
	// TLS is how other replicas are reached; nil for HTTP without TLS. Without a ServerName
	// the host of a replica's address is what its certificate has to name.
	TLS *tls.Config
	// Plaintext has replicas reached without TLS that tell that they have none.
	Plaintext bool
	// DialTimeout bounds a connect to another replica, and the answer to a hello. 750 ms if 0.
	DialTimeout time.Duration
	Logger      *slog.Logger // nil discards
	Metrics     Metrics      // nil counts nothing
}

// Metrics count what is forwarded. Safe for concurrent use.
type Metrics interface {
	// Forwarded counts a forwarded request: "ok", "gone" or "silent" if its replica can't be
	// reached, "refused" if that does not accept the envelope, "unanswered", "cut" within the
	// response, or "left" if its client has left.
	Forwarded(outcome string)
}

// A Group is what one replica knows of the others, and reaches them by. It is safe for
// concurrent use.
type Group struct {
	sealer
	secure  bool // replicas are reached over TLS
	plain   bool // but those that have none
	client  *http1.Transport
	connect func(ctx context.Context, network, addr string) (net.Conn, error)
	gates   gates
	timeout time.Duration // Options.DialTimeout
	log     *slog.Logger
	metrics Metrics // may be nil
	// hindered tells that this machine can't connect.
	hindered transport.WarnLimiter

	live    context.Context // ends with Close
	end     context.CancelFunc
	running sync.WaitGroup // hellos in the background
}

// New returns a Group. It starts nothing.
func New(o Options) (*Group, error) {
	if o.Engine == nil {
		return nil, errors.New("peer: no engine")
	}
	ring, err := newKeyring(o.Keys)
	if err != nil {
		return nil, fmt.Errorf("peer: %w", err)
	}
	g := &Group{sealer: sealer{engine: o.Engine}, secure: o.TLS != nil, plain: o.Plaintext, timeout: cmp.Or(o.DialTimeout, dialTimeout), log: o.Logger, metrics: o.Metrics}
	g.connect = (&net.Dialer{Timeout: g.timeout, KeepAliveConfig: keepAlive}).DialContext
	if g.keys.Store(ring); g.log == nil {
		g.log = slog.New(slog.DiscardHandler)
	}
	g.live, g.end = context.WithCancel(context.Background())
	g.client = http1.NewTransport(g.newTransport(o.TLS))
	return g, nil
}

// Engine is the one of the Options.
func (g *Group) Engine() replicas.Engine { return g.engine }

// Self is this replica.
func (g *Group) Self() replicas.Replica { return g.engine.View().Self }

// View is what was last heard of the replicas.
func (g *Group) View() *replicas.View { return g.engine.View() }

// Member returns the living replica of an instance, unless it is this one.
func (g *Group) Member(instance string) (replicas.Replica, bool) {
	v := g.engine.View()
	if instance == v.Self.Instance {
		return replicas.Replica{}, false
	}
	return v.Member(instance)
}

// Close closes the connections to other replicas. Call it after all requests have ended.
func (g *Group) Close() {
	g.end()
	g.running.Wait()
	g.client.CloseIdleConnections()
}

// report logs and counts that a replica can't be reached, or can again.
func (g *Group) report(to replicas.Replica, err error) {
	if err == nil {
		g.log.Info("replica answers again", "replica", to.Instance, "addr", to.Addr)
		return
	}
	g.log.Warn("replica can't be reached", "replica", to.Instance, "addr", to.Addr, "err", err)
}

// URL returns where a path is at another replica.
func (g *Group) URL(to replicas.Replica, path string) string {
	return g.scheme(to) + "://" + to.Addr + path
}

// RoundTripper returns what sends requests of this replica, or of those that sender names, to
// another one. Nil for sender means an anonymous one. Errors are a [*GoneError] or
// [*SilentError] if the other can't be reached. A request whose replica gives no sign of life before the
// response begins ends.
func (g *Group) RoundTripper(to replicas.Replica, sender func(*http.Request) mcp.Sender) http.RoundTripper {
	return &roundTripper{g, to, sender}
}

type roundTripper struct {
	g      *Group
	to     replicas.Replica
	sender func(*http.Request) mcp.Sender
}

// RoundTrip implements [http.RoundTripper].
func (t *roundTripper) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(r.Context())
	resp, err := t.roundTrip(ctx, cancel, r)
	if err != nil {
		cancel(nil)
		return nil, err
	}
	resp.Body = &endedBody{resp.Body, cancel}
	return resp, nil
}

func (t *roundTripper) roundTrip(ctx context.Context, cancel context.CancelCauseFunc, r *http.Request) (*http.Response, error) {
	out := r.Clone(ctx)
	out.URL.Scheme, out.URL.Host = t.g.scheme(t.to), t.to.Addr
	if out.Header == nil {
		out.Header = make(http.Header)
	}
	e := &Envelope{}
	if t.sender != nil {
		e.fill(t.sender(r))
	}
	if err := e.digestOf(out); err != nil {
		return nil, err
	}
	t.g.seal(e, t.to, out)
	gate := t.g.gates.of(t.g, t.to)
	if err := gate.enter(ctx); err != nil {
		return nil, err
	}
	defer gate.doubt(ctx, cancel)()
	resp, err := t.g.sendPast(pass{t: gate}, out)
	if err != nil && context.Cause(ctx) == errNoSign {
		return nil, errNoSign
	}
	return resp, err
}

// An endedBody is a body whose context ends with it.
type endedBody struct {
	io.ReadCloser
	end context.CancelCauseFunc
}

// Close implements [io.Closer].
func (b *endedBody) Close() error {
	err := b.ReadCloser.Close()
	b.end(nil)
	return err
}

// CloseIdleConnections does nothing: the connections are the Group's.
func (t *roundTripper) CloseIdleConnections() {}
