package node

import (
	"cmp"
	"context"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/limits"
	"github.com/mcpbridge/mcpbridge/internal/peer"
	"github.com/mcpbridge/mcpbridge/internal/replicas"
	"github.com/mcpbridge/mcpbridge/internal/replicas/dnspeers"
	"github.com/mcpbridge/mcpbridge/internal/wake"
)

// Options configure a Node. Exactly one of Engine and Peers is set.
type Options struct {
	Engine Opener
	Peers  string // dns:// and names with ports

	Keys      []string
	Listen    string        // host:port
	Advertise string        // empty: the address that is listened on
	Heartbeat time.Duration // zero: a second; with an Engine alone
	ServerTLS *tls.Config
	ClientTLS *tls.Config
	// Plaintext has replicas served that come without TLS, and those reached that have none,
	// while TLS is introduced or removed.
	Plaintext bool
	// Trusts reports whether the certificate of an open connection still counts; nil: all do.
	Trusts func(*tls.ConnectionState) bool
	// MaxNew and Reached are those of the listener's httpserver.Options.
	MaxNew  int64
	Reached func(*limits.Limit)

	Version  string
	Logger   *slog.Logger
	Forwards peer.Metrics
	Observer replicas.Observer
}

// A Node is this process as one of several replicas.
type Node struct {
	opts   Options
	engine replicas.Engine
	group  *peer.Group

	standing judging

	mu       sync.Mutex // guards the fields below
	self     replicas.Replica
	listener *listener // nil before Listen
	joined   bool
}

// instanceLen is how many characters an instance has.
const instanceLen = 8

// New returns a Node that reaches its engine in the background. It listens to nobody yet.
func New(o Options) (*Node, error) {
	o.Observer = cmp.Or[replicas.Observer](o.Observer, replicas.Unobserved{})
	n := &Node{opts: o, self: replicas.Replica{Instance: rand.Text()[:instanceLen], Addr: replicas.Address(o.Advertise), Version: o.Version, Revision: replicas.Revision, TLS: o.ServerTLS != nil, Pace: replicas.Pace(o.Heartbeat)}}
	var err error
	if n.engine, err = n.openEngine(); err != nil {
		return nil, fmt.Errorf("replicas: %w", err)
	}
	n.engine.Update(n.self)
	n.group, err = peer.New(peer.Options{Engine: n.engine, Keys: o.Keys, TLS: o.ClientTLS, Plaintext: o.Plaintext, Logger: o.Logger, Metrics: o.Forwards})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("replicas: %w", err), n.engine.Close(context.Background()))
	}
	n.engine.Meet(n.group)
	return n, nil
}

// Group reaches the other replicas.
func (n *Node) Group() *peer.Group { return n.group }

// Engine knows the other replicas.
func (n *Node) Engine() replicas.Engine { return n.engine }

// Join listens, serves other replicas by h, and tells them of this one. It returns when they
// have heard of it, so that no client holds a session that they do not know.
func (n *Node) Join(ctx context.Context, h http.Handler) error {
	l, err := listen(ctx, n.opts, h)
	if err != nil {
		return fmt.Errorf("replicas: %w", err)
	}
	n.mu.Lock()
	if n.self.Addr == "" {
		n.self.Addr = l.Addr().String()
	}
	n.listener, n.joined = l, true
	self := n.self
	n.mu.Unlock()
	l.start()
	if err := n.engine.Join(ctx, self); err != nil {
		return fmt.Errorf("replicas: %w", err)
	}
	n.opts.Logger.Info("this is one of several replicas", "replica", self.Instance, "peer", l.Addr().String(), "advertise", self.Addr)
	n.beginJudging()
	return n.awaitHeard(ctx)
}

const (
	// notice is what an engine takes beyond a heartbeat until all have heard.
	notice = 100 * time.Millisecond
	// nameTimeout bounds the wait until a name has the address of this replica: as long as
	// name servers commonly keep what they have said.
	nameTimeout = 10 * time.Second
)

// awaitHeard returns when the others have heard of this replica.
func (n *Node) awaitHeard(ctx context.Context) error {
	pause := n.engine.View().Slowest.Every() + notice
	if e, ok := n.engine.(*dnspeers.Engine); ok {
		if !e.AwaitFound(ctx, nameTimeout) && ctx.Err() == nil {
			n.opts.Logger.Warn("the names in replicas.peers do not have the address of this replica: the others can't forward requests of its sessions before they do; a headless Service needs publishNotReadyAddresses", "after", nameTimeout)
		}
		pause += replicas.Heartbeat // they look the names up, too
	}
	return wake.Wait(ctx, pause)
}

// Drain tells the others that this replica takes no new work.
func (n *Node) Drain() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.joined || n.self.Draining {
		return
	}
	n.self.Draining = true
	n.engine.Update(n.self)
}

// Serves tells the others which servers this replica has.
func (n *Node) Serves(names iter.Seq[string]) {
	servers := replicas.ServersOf(names)
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.self.Servers != servers {
		n.self.Servers = servers
		n.engine.Update(n.self)
	}
}

// Leave waits for the requests of other replicas, and tells them that this one ends. When ctx
// ends, the requests are cut off.
func (n *Node) Leave(ctx context.Context) error {
	n.mu.Lock()
	l, joined := n.listener, n.joined
	n.joined = false
	n.mu.Unlock()
	if !joined {
		return nil
	}
	err := l.shutdown(ctx)
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), replicas.Heartbeat)
	defer cancel()
	if lerr := n.engine.Leave(last); lerr != nil {
		n.opts.Logger.Warn("the other replicas will notice by themselves that this one has ended", "error", lerr)
	}
	return err
}

// Close ends everything. Requests to other replicas must have ended.
func (n *Node) Close(ctx context.Context) error {
	err := n.Leave(ctx)
	n.standing.end()
	err = errors.Join(err, n.engine.Close(ctx)) // which asks the others by the group
	n.group.Close()
	return err
}

// Replace sets other keys.
func (n *Node) Replace(keys []string) error {
	if err := n.group.Replace(keys...); err != nil {
		return fmt.Errorf("replicas: %w", err)
	}
	return nil
}

// StateKeys derives secrets for requestStates from keys of replicas.
func StateKeys(keys []string) ([]string, error) {
	var out []string
	for _, key := range keys {
		derived, err := hkdf.Key(sha256.New, []byte(key), nil, "mcpbridge requestState", sha256.Size)
		if err != nil {
			return nil, fmt.Errorf("deriving a key: %v", err)
		}
		out = append(out, base64.RawStdEncoding.EncodeToString(derived))
	}
	return out, nil
}
