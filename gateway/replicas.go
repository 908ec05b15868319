package gateway

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/limits"
	"github.com/mcpbridge/mcpbridge/internal/observation/metrics"
	"github.com/mcpbridge/mcpbridge/internal/release"
	"github.com/mcpbridge/mcpbridge/internal/replicas"
	"github.com/mcpbridge/mcpbridge/internal/replicas/node"
)

// Replicas make a [Gateway] one of several that serve the same clients: any of them serves
// any request. Exactly one of Engine and Peers is set.
type Replicas struct {
	// Engine knows the replicas: it is a nats.Engine of package gateway/replicas/nats, or a
	// redis.Engine of package gateway/replicas/redis.
	Engine Engine
	// Peers is dns:// and the host:port, several by comma, whose addresses are the replicas.
	// Without an engine requests are forwarded to where they belong, and that is all.
	Peers string

	// Keys are secrets of at least 16 bytes by which replicas know each other: the first
	// signs, all are accepted. StateKeys are derived from them if there are none.
	Keys []string
	// Listen is the host:port where other replicas connect, and Advertise how they reach
	// it. Empty means the address that is listened on.
	Listen, Advertise string
	// Heartbeat is how often this replica tells that it lives, with an Engine: from a second to
	// 10 s. Zero means a second. After three of them others take it for dead; of two replicas,
	// the slower counts. Set it above a second only once all replicas have a version that knows it.
	Heartbeat time.Duration
	// ServerTLS is for connections of other replicas, and ClientTLS for those to them. Nil
	// means no TLS.
	ServerTLS, ClientTLS *tls.Config
	// Plaintext accepts connections without TLS, too, and reaches replicas without it that tell
	// that they have none: for the time in which TLS is introduced, or removed.
	Plaintext bool
	// Trusts reports whether the certificate of a connection that ServerTLS has accepted is
	// still good, for each request. Nil means that it is as long as the connection is open.
	Trusts func(*tls.ConnectionState) bool
}

// An Engine keeps few small facts for all [Replicas], outside of them. Packages nats and redis
// below gateway/replicas have one each, so that a program carries the client of none that it
// does not use. There are no others: [New] refuses what they have not opened.
type Engine interface {
	// Open is called by New. It connects in the background, and says only what can never work.
	Open(instance string, log *slog.Logger) (any, error)
}

// A Placement says which replica serves the calls of a profile.
type Placement string

// The placements.
const (
	PlaceAny Placement = "any" // the one that is asked
	PlaceOne Placement = "one" // the one that holds the profile
)

// newNode returns nil without Replicas.
func newNode(o *Options, counts *metrics.Metrics) (*node.Node, error) {
	r := o.Replicas
	switch {
	case r == nil:
		return nil, nil
	case (r.Engine == nil) == (r.Peers == ""):
		return nil, fmt.Errorf("mcpbridge: Replicas: want exactly one of Engine and Peers; for an Engine import %s or %s", replicas.NATS.Package(), replicas.Redis.Package())
	}
	if u, err := replicas.ParseURL(r.Peers); err == nil {
		return nil, fmt.Errorf("mcpbridge: Replicas: Peers has the URL of an engine; import %s, and set Engine to its Engine with this URL", u.Kind.Package())
	}
	if err := r.checkHeartbeat(); err != nil {
		return nil, err
	}
	seen := counts.Replicas()
	n, err := node.New(node.Options{
		Engine: r.Engine, Peers: r.Peers,
		Keys: r.Keys, Listen: r.Listen, Advertise: r.Advertise, Heartbeat: r.Heartbeat, ServerTLS: r.ServerTLS, ClientTLS: r.ClientTLS, Plaintext: r.Plaintext, Trusts: r.Trusts,
		MaxNew: o.Limits[limits.NewConnections.Key], Reached: func(l *limits.Limit) { counts.Limit("", l.Key) },
		Version: release.Version(), Logger: cmp.Or(o.Logger, discard), Forwards: seen, Observer: seen,
	})
	if err != nil {
		return nil, fmt.Errorf("mcpbridge: %w", err)
	}
	return n, nil
}

func (r *Replicas) checkHeartbeat() error {
	switch every := cmp.Or(r.Heartbeat, replicas.Heartbeat); {
	case every < replicas.Heartbeat || every > replicas.SlowestHeartbeat:
		return fmt.Errorf("mcpbridge: Replicas: Heartbeat is %v; set it to %v at least, and %v at most", every, replicas.Heartbeat, replicas.SlowestHeartbeat)
	case every != replicas.Heartbeat && r.Engine == nil:
		return fmt.Errorf("mcpbridge: Replicas: Heartbeat is for an Engine, and there is none; leave it out")
	}
	return nil
}

// deriveStateKeys sets StateKeys, if there are none, to what follows from the keys of replicas.
func (o *Options) deriveStateKeys() (err error) {
	if o.Replicas == nil || len(o.StateKeys) > 0 {
		return nil
	}
	o.StateKeys, err = node.StateKeys(o.Replicas.Keys)
	return err
}

// Join tells the other [Replicas] of this one, and serves their requests. It returns when
// they have heard of it: serve clients after that. Without Replicas it does nothing.
//
// An engine that is away is no error: it is tried until Shutdown.
func (g *Gateway) Join(ctx context.Context) error {
	if g.node == nil {
		return nil
	}
	return g.node.Join(ctx, g.inner.PeerHandler())
}

// Drain tells the other [Replicas] that this one is about to end, and hands over to them the
// sessions that they can go on with. It goes on serving.
func (g *Gateway) Drain() {
	if g.node != nil {
		g.node.Drain()
		g.inner.Drain()
	}
}

// A ReplicaSnapshot says what a [Gateway] has heard of the replicas.
type ReplicaSnapshot struct {
	Self    string // instance
	Members []ReplicaMember
	// Away is since when the engine can't be reached; zero if it is there.
	Away time.Time
	// Ready says that this replica has found that it can serve with the others: it is once, and
	// stays so. Degraded has why it is not, or serves less than it could; empty if all is well.
	Ready    bool
	Degraded []string
}

// A ReplicaMember is a replica that lives.
type ReplicaMember struct {
	Instance, Addr, Version string
	Draining                bool
}

// replicas returns nil without Replicas.
func (g *Gateway) replicas() *ReplicaSnapshot {
	if g.node == nil {
		return nil
	}
	v := g.node.Engine().View()
	stands := g.node.Standing()
	out := &ReplicaSnapshot{Self: v.Self.Instance, Away: v.Away, Ready: stands.Ready, Degraded: stands.Reasons}
	for _, r := range v.Members {
		out.Members = append(out.Members, ReplicaMember{Instance: r.Instance, Addr: r.Addr, Version: r.Version, Draining: r.Draining})
	}
	return out
}

// tellServers tells the other replicas which servers this one has.
func (g *Gateway) tellServers(o *Options) {
	if g.node == nil {
		return
	}
	if len(o.Servers) > replicas.MaxServers {
		cmp.Or(o.Logger, discard).Warn("the other replicas are told of the first servers alone: requests to the rest find none there while their configurations differ", "servers", len(o.Servers), "told", replicas.MaxServers)
	}
	g.node.Serves(func(yield func(string) bool) {
		for i := range o.Servers {
			if !yield(o.Servers[i].Name) {
				return
			}
		}
	})
}

// replaceKeys has other keys count.
func (g *Gateway) replaceKeys(o *Options) error {
	if g.node == nil || o.Replicas == nil {
		return nil
	}
	return g.node.Replace(o.Replicas.Keys)
}
