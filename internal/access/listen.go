package access

import (
	"context"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/policy"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// Subscription returns the subscription of a request for mail with what the policy leaves
// of it: it asks the server for nothing that its subscriber may not follow.
func (c *Control) Subscription(req *mcp.Request, mail *fanout.Mailbox, o mcp.SubscribeOptions, sub mcp.Subscription) mcp.Subscription {
	if c == nil {
		return sub
	}
	n := &narrowed{Subscription: sub, c: c, sender: senderOf(req), stream: o.Stream, method: req.Method}
	n.sender.info = nil // the request, and its text, need not stay
	n.client = mcp.ClientName(req.ClientInfo)
	if c.opts.Policy != nil && c.opts.Policy.HidesResources() {
		mail.Hide(func(ev fanout.Event) bool { return !n.follows(ev.URI) })
	}
	return n
}

// A narrowed subscription has the topics that its subscriber may follow.
type narrowed struct {
	mcp.Subscription
	c      *Control
	sender sender
	client string
	method string
	stream bool
}

// Add implements [mcp.Subscription]. A stream gets what is left of its filter, and its
// acknowledgment says so. The resources of others were admitted one by one.
//
// Spec: 2026-07-28, basic/patterns/subscriptions, Acknowledgment.
func (n *narrowed) Add(ctx context.Context, want mcp.Filter) (mcp.Filter, error) {
	if n.stream && n.c.opts.Policy != nil {
		want.URIs = n.allowed(want.URIs)
	}
	begin := time.Now()
	honored, err := n.Subscription.Add(ctx, want)
	n.record(ctx, begin, want, err)
	return honored, err
}

func (n *narrowed) allowed(uris []string) []string {
	var left []string
	for _, uri := range uris {
		if n.follows(uri) {
			left = append(left, uri)
		}
	}
	return left
}

func (n *narrowed) follows(uri string) bool {
	caller := n.sender.caller()
	return n.c.opts.Policy.Subscribable(&caller, uri)
}

// record writes a line for a stream, or for a resource that a session follows.
func (n *narrowed) record(ctx context.Context, begin time.Time, want mcp.Filter, err error) {
	if n.c.opts.Audit == nil || !n.stream && len(want.URIs) == 0 || n.stream && n.method != spec.MethodListen {
		return
	}
	v := visit{c: n.c, sender: n.sender, client: n.client, method: n.method, begin: begin}
	if v.op, _ = policy.Read(n.method, nil, nil); !n.stream {
		v.op = policy.Use(n.method, policy.Resource, want.URIs[0])
	}
	if p := n.c.opts.Policy; p != nil { // it was admitted: this says by which rule
		caller := n.sender.caller()
		v.decision = p.Decide(&caller, &v.op)
	}
	v.recordIn(ctx, err)
}

// listen serves a listen request that gets a stream of its own upstream. It was decided on
// and recorded by Admit and Subscription.
func (h *handler) listen(ctx context.Context, req *mcp.Request, x mcp.Caller) (*mcp.Result, error) {
	p := h.c.opts.Policy
	if p == nil {
		return h.next.Serve(ctx, req, x)
	}
	caller := (&sender{share: req.Share, identity: req.Identity}).caller()
	asked := *req
	asked.Params = narrowFilter(p, &caller, req.Params)
	return h.next.Serve(ctx, &asked, &updates{x, p, &caller})
}

// narrowFilter returns the params of a listen request without the resources that its
// caller may not follow. What a policy that denies by default does not know of is not
// allowed by it.
func narrowFilter(p *policy.Policy, c *policy.Caller, params []byte) []byte {
	filter := wire.Get(params, "notifications")
	var edits []wire.Edit
	for k, v := range wire.Members(filter) {
		switch name := k.String(); name {
		case "resourceSubscriptions":
			edits = append(edits, wire.Edit{Name: name, Value: followed(p, c, v)})
		case "toolsListChanged", "promptsListChanged", "resourcesListChanged", spec.FilterTaskIDs:
		default:
			if !p.AllowsByDefault() {
				edits = append(edits, wire.Edit{Name: name})
			}
		}
	}
	if len(edits) == 0 {
		return params
	}
	filter = wire.AppendEdited(nil, filter, edits...)
	return wire.AppendEdited(nil, params, wire.Edit{Name: "notifications", Value: filter})
}

// followed returns an array of those URIs of another that the caller may follow.
func followed(p *policy.Policy, c *policy.Caller, uris []byte) []byte {
	left := []byte{'['}
	for uri := range wire.Elements(uris) {
		if uri[0] == '"' && p.Subscribable(c, wire.Unquote(uri)) {
			left = append(append(left, uri...), ',')
		}
	}
	return wire.CloseArray(left)
}

// updates are what a server tells on a listen stream of the client's own: a change of a
// resource that the client may not follow is not passed on, since its URI says something.
type updates struct {
	mcp.Caller
	policy *policy.Policy
	caller *policy.Caller
}

// Notify implements [mcp.Caller].
func (u *updates) Notify(ctx context.Context, n mcp.Notification) error {
	if n.Method == spec.NotifyResourceUpdated && hidden(u.policy, u.caller, n.Params) {
		return nil
	}
	return u.Caller.Notify(ctx, n)
}

// hidden reports whether the resource of an update may not be followed.
func hidden(p *policy.Policy, c *policy.Caller, params []byte) bool {
	uri, ok := wire.GetString(params, "uri")
	return ok && !p.Subscribable(c, uri)
}
