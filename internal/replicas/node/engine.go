package node

import (
	"context"
	"fmt"

	"github.com/mcpbridge/mcpbridge/internal/replicas"
	"github.com/mcpbridge/mcpbridge/internal/replicas/dnspeers"
	"github.com/mcpbridge/mcpbridge/internal/replicas/engineurl"
	"github.com/mcpbridge/mcpbridge/internal/replicas/member"
	"github.com/mcpbridge/mcpbridge/internal/replicas/natskv"
	"github.com/mcpbridge/mcpbridge/internal/replicas/rediskv"
)

// openEngine returns the engine that the options name.
func (n *Node) openEngine() (replicas.Engine, error) {
	if n.opts.Peers != "" {
		names, err := dnspeers.Names(n.opts.Peers)
		return dnspeers.New(dnspeers.Options{Names: names, Hello: n.hello, Logger: n.opts.Logger, Observer: n.opts.Observer}), err
	}
	store, err := n.openStore()
	if err != nil {
		return nil, err
	}
	return member.New(store, member.Options{Logger: n.opts.Logger, Observer: n.opts.Observer}), nil
}

// hello asks who is at an address. It is called after Join, when there is a group.
func (n *Node) hello(ctx context.Context, addr string) (replicas.Replica, error) {
	return n.group.Hello(ctx, addr)
}

func (n *Node) openStore() (member.Store, error) {
	o := n.opts
	u, err := engineurl.Parse(o.Engine)
	if err != nil {
		return nil, fmt.Errorf("the engine %w", err)
	}
	if u.Kind != engineurl.NATS {
		return rediskv.Open(rediskv.Options{URL: u, TLS: o.EngineTLS, Prefix: o.Prefix, Name: "mcpbridge-" + n.self.Instance, Logger: o.Logger}), nil
	}
	return natskv.Open(natskv.Options{
		URL: u, TLS: o.EngineTLS, Credentials: o.Credentials, Prefix: o.Prefix,
		Name: "mcpbridge " + n.self.Instance, Logger: o.Logger,
	})
}
