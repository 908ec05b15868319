package gateway

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/limits"
	"github.com/mcpbridge/mcpbridge/internal/observation/metrics"
	"github.com/mcpbridge/mcpbridge/internal/release"
	"github.com/mcpbridge/mcpbridge/internal/replicas/node"
)

// Replicas make a [Gateway] one of several that serve the same clients: any of them serves
// any request. Exactly one of Engine and Peers is set.
type Replicas struct {
	// Engine is the URL of a NATS with JetStream (nats:// or tls://), or of a Redis (redis://,
	// redis+sentinel:// or redis+cluster://, and rediss… with TLS), that knows the replicas.
	// Several hosts are separated by commas.
	Engine string
	// EngineTLS is for connections to the engine. Nil means that the scheme of its URL
	// decides, and the authorities of the system.
	EngineTLS *tls.Config
	// Credentials is a file of credentials for NATS. Empty means none.
	Credentials string
	// Prefix begins the names of buckets or keys at the engine. Empty means "mcpbridge".
	Prefix string
	// Peers is dns:// and the host:port, several by comma, whose addresses are the replicas.
	// Without an engine requests are forwarded to where they belong, and that is all.
	Peers string

	// Keys are secrets of at least 16 bytes by which replicas know each other: the first
	// signs, all are accepted. StateKeys are derived from them if there are none.
	Keys []string
	// Listen is the host:port where other replicas connect, and Advertise how they reach
	// it. Empty means the address that is listened on.
	Listen, Advertise string
	// ServerTLS is for connections of other replicas, and ClientTLS for those to them. Nil
	// means no TLS.
	ServerTLS, ClientTLS *tls.Config
	// Trusts reports whether the certificate of a connection that ServerTLS has accepted is
	// still good, for each request. Nil means that it is as long as the connection is open.
	Trusts func(*tls.ConnectionState) bool
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
	case (r.Engine == "") == (r.Peers == ""):
		return nil, errors.New("mcpbridge: Replicas: want exactly one of Engine and Peers")
	}
	seen := counts.Replicas()
	n, err := node.New(node.Options{
		Engine: r.Engine, EngineTLS: r.EngineTLS, Credentials: r.Credentials, Prefix: cmp.Or(r.Prefix, "mcpbridge"), Peers: r.Peers,
		Keys: r.Keys, Listen: r.Listen, Advertise: r.Advertise, ServerTLS: r.ServerTLS, ClientTLS: r.ClientTLS, Trusts: r.Trusts,
		MaxNew: o.Limits[limits.NewConnections.Key], Reached: func(l *limits.Limit) { counts.Limit("", l.Key) },
		Version: release.Version(), Logger: cmp.Or(o.Logger, discard), Forwards: seen, Observer: seen,
	})
	if err != nil {
		return nil, fmt.Errorf("mcpbridge: %w", err)
	}
	return n, nil
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
	out := &ReplicaSnapshot{Self: v.Self.Instance, Away: v.Away}
	for _, r := range v.Members {
		out.Members = append(out.Members, ReplicaMember{Instance: r.Instance, Addr: r.Addr, Version: r.Version, Draining: r.Draining})
	}
	return out
}

// replaceKeys has other keys count.
func (g *Gateway) replaceKeys(o *Options) error {
	if g.node == nil || o.Replicas == nil {
		return nil
	}
	return g.node.Replace(o.Replicas.Keys)
}
