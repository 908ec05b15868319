package router

import (
	"fmt"
	"net/http"

	"github.com/mcpbridge/mcpbridge/gateway/internal/admission"
	"github.com/mcpbridge/mcpbridge/gateway/internal/forward"
	"github.com/mcpbridge/mcpbridge/internal/downstream"
	"github.com/mcpbridge/mcpbridge/internal/limits"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/origin"
)

// A table is what a Gateway serves by: its servers, and what concerns the requests to all of
// them. It is read-only; [Gateway.Reload] puts another in its place.
type table struct {
	opts    Options
	servers map[string]*server
	order   []string
	mux     *http.ServeMux
	origins origin.Policy
	proxies admission.Proxies
	bodies  admission.Bodies
	lengths mcp.Lengths
	depth   int // how deeply messages may nest
	errors  downstream.ErrorFilter
	guard   *admission.Guard // of paths that are no server's
}

// now returns the table that requests are served by.
func (g *Gateway) now() *table { return g.table.Load() }

// newTable builds a table with all servers that are new in it, and starts nothing. If it
// fails, none of them is left.
func (g *Gateway) newTable(opts Options) (t *table, fresh []*server, err error) {
	t = &table{
		opts: opts, servers: make(map[string]*server), mux: http.NewServeMux(),
		origins: origin.Policy{Hosts: origin.Hosts{Machine: opts.MachineName, Allowed: opts.AllowedHosts}, Allowed: opts.AllowedOrigins},
		proxies: opts.TrustedProxies,
		bodies:  admission.Bodies{Max: opts.Limits.Of(limits.Body), Timeout: opts.BodyTimeout},
		lengths: mcp.LengthsOf(opts.Limits), depth: opts.Limits.Int(limits.Depth),
		errors: downstream.ErrorFilter{Secrets: opts.Secrets, Debug: opts.DebugErrors},
	}
	defer func() {
		if err != nil {
			abandon(fresh)
		}
	}()
	if t.guard, err = newGuard(g, "", opts.authElsewhere(), "", opts.Audit); err != nil {
		return nil, nil, err
	}
	for _, so := range opts.Servers {
		s, err := g.served(t, &opts, so)
		if err != nil {
			return nil, fresh, err
		}
		if !so.Kept {
			fresh = append(fresh, s)
		}
		t.servers[so.Name] = s
		t.order = append(t.order, so.Name)
	}
	if opts.Default != "" && t.servers[opts.Default] == nil {
		return nil, fresh, fmt.Errorf("there is no server %q, which is to be served without a name", opts.Default)
	}
	return t, fresh, g.publish(t)
}

// served returns the server of a table that so describes: a new one, unless it is kept. A new one
// keeps opts, which are the table's, and not the table: it may outlive that.
func (g *Gateway) served(t *table, opts *Options, so ServerOptions) (*server, error) {
	if t.servers[so.Name] != nil {
		return nil, fmt.Errorf("two servers are called %q", so.Name)
	}
	if so.Kept {
		if s := g.now().servers[so.Name]; s != nil {
			return s, checkMembers(s, so.Group)
		}
		return nil, fmt.Errorf("server %s: it is to be kept, and there is none", so.Name)
	}
	s, err := newServer(g, opts, so)
	if err != nil {
		return nil, fmt.Errorf("server %s: %w", so.Name, err)
	}
	return s, nil
}

// publish has a table's mux serve its endpoints, and their metadata.
func (g *Gateway) publish(t *table) error {
	for _, at := range []forward.Endpoint{forward.Streamable, forward.Events, forward.Messages} {
		g.route(t, at)
	}
	t.mux.HandleFunc("/", t.serveNowhere)
	return t.publishMetadata()
}

// unnamed returns the server that is also served without a name; nil if there is none.
func (t *table) unnamed() *server {
	if t.opts.Default == "" && len(t.order) == 1 {
		return t.servers[t.order[0]]
	}
	return t.servers[t.opts.Default]
}

// inOrder returns the servers in the order they were given.
func (t *table) inOrder() []*server {
	servers := make([]*server, len(t.order))
	for i, name := range t.order {
		servers[i] = t.servers[name]
	}
	return servers
}

// scopeOf returns what the scopes of a server begin with; empty if there is none.
func (t *table) scopeOf(name string) string {
	if s := t.servers[name]; s != nil {
		return s.profiles.Scope()
	}
	return ""
}

// has reports whether a server is one of the table's.
func (t *table) has(s *server) bool { return t.servers[s.name] == s }
