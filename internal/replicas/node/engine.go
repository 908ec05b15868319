package node

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/mcpbridge/mcpbridge/internal/replicas"
	"github.com/mcpbridge/mcpbridge/internal/replicas/dnspeers"
	"github.com/mcpbridge/mcpbridge/internal/replicas/member"
)

// An Opener opens what an engine keeps, a member.Store, for the replica of an instance. It
// connects in the background. Public packages implement it, so it does not name the type.
type Opener interface {
	Open(instance string, log *slog.Logger) (any, error)
}

// openEngine returns the engine that the options name.
func (n *Node) openEngine() (replicas.Engine, error) {
	if n.opts.Peers != "" {
		names, err := dnspeers.Names(n.opts.Peers)
		return dnspeers.New(dnspeers.Options{Names: names, Hello: n.hello, Logger: n.opts.Logger, Observer: n.opts.Observer}), err
	}
	opened, err := n.opts.Engine.Open(n.self.Instance, n.opts.Logger)
	if err != nil {
		return nil, err
	}
	store, ok := opened.(member.Store)
	if !ok {
		return nil, fmt.Errorf("the engine %T is not one of mcpbridge; import %s or %s, and use its Engine", n.opts.Engine, replicas.NATS.Package(), replicas.Redis.Package())
	}
	return member.New(store, member.Options{Logger: n.opts.Logger, Observer: n.opts.Observer}), nil
}

// hello asks who is at an address. It is called after Join, when there is a group.
func (n *Node) hello(ctx context.Context, addr string) (replicas.Replica, error) {
	return n.group.Hello(ctx, addr)
}
