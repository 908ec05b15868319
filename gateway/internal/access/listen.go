package access

import (
	"context"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/trust/policy"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// Subscription returns the subscription of a request for mail, limited to topics that the
// policy allows: nothing else is subscribed to at the server.
func (c *Control) Subscription(req *mcp.Request, mail *fanout.Mailbox, o mcp.SubscribeOptions, sub mcp.Subscription) mcp.Subscription {
	if c == nil {
		return sub
	}
	n := &narrowed{Subscription: sub, c: c, sender: c.senderOf(req), stream: o.Stream, method: req.Method, begin: time.Now()}
	n.sender.info = nil // a subscription does not keep the request's text
	n.client = mcp.ClientName(req.ClientInfo)
	if c.hidesResources() {
		mail.Hide(func(ev fanout.Event) bool { return !n.follows(ev.URI) })
	}
	return n
}

// A narrowed subscription has only topics that its client may subscribe to.
type narrowed struct {
	mcp.Subscription
	c      *Control
	sender sender
	client string
	method string
	stream bool
	begin  time.Time
	open   bool // the stream has a line in the audit log; set by Add
}

// Add implements [mcp.Subscription]. It narrows the filter of a stream; the acknowledgment
// says so. The resources of sessions were admitted one by one.
//
// Spec: 2026-07-28, basic/patterns/subscriptions, Acknowledgment.
func (n *narrowed) Add(ctx context.Context, want mcp.Filter) (mcp.Filter, error) {
	if n.stream && n.c.hidesResources() {
		want.URIs = n.allowed(want.URIs)
	}
	begin := time.Now()
	honored, err := n.Subscription.Add(ctx, want)
	n.record(ctx, begin, want, err)
	return honored, err
}

// Follows reports whether the sender of a request may follow a resource.
func (c *Control) Follows(req *mcp.Request, uri string) bool {
	if c == nil || !c.hidesResources() {
		return true
	}
	by := (&sender{share: req.Share, identity: req.Identity}).caller()
	return c.follows(&by, uri)
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
	return n.c.follows(&caller, uri)
}

// record writes a line for a stream, or for a resource of a session.
func (n *narrowed) record(ctx context.Context, begin time.Time, want mcp.Filter, err error) {
	if n.c.opts.Audit == nil || !n.stream && len(want.URIs) == 0 || n.stream && n.method != spec.MethodListen {
		return
	}
	n.open = n.stream && err == nil
	q := request{c: n.c, sender: n.sender, client: n.client, method: n.method, begin: begin}
	if o := mcp.ObservedIn(ctx); o != nil { // a request of its own, in a session
		q.sender.origin = n.c.originOf(o.Arrival, o.Trace, o.Meta)
	}
	if q.op, _ = policy.Read(n.method, nil, nil); !n.stream {
		q.op = policy.Use(n.method, policy.Resource, want.URIs[0])
	}
	if p := n.c.opts.Policy; p != nil { // it was admitted: this finds the rule
		caller := n.sender.caller()
		q.decision = p.Decide(&caller, &q.op)
	}
	q.recordIn(ctx, err)
}

// Close implements [mcp.Subscription].
func (n *narrowed) Close() {
	n.Subscription.Close()
	if !n.open {
		return
	}
	n.open = false
	e := Ended{Kind: "stream", Share: n.sender.share, Era: n.sender.era, Client: n.client, Address: n.sender.address, Request: n.sender.request, Trace: n.sender.trace, Opened: n.begin}
	if of, ok := n.Subscription.(interface{ EndReason() string }); ok {
		e.Reason = of.EndReason()
	}
	n.c.Ended(&e)
}

// listen serves a listen request that has a stream of its own upstream. Admit and
// Subscription have decided on it and recorded it.
func (h *handler) listen(ctx context.Context, req *mcp.Request, caller mcp.Caller) (*mcp.Result, error) {
	if !h.c.decidesOnNames() {
		return h.next.Serve(ctx, req, caller)
	}
	by := (&sender{share: req.Share, identity: req.Identity}).caller()
	asked := *req
	asked.Params = h.c.narrowFilter(&by, req.Params)
	return h.next.Serve(ctx, &asked, &updates{caller, h.c, &by})
}

// narrowFilter returns the params of a listen request without the resources that the client
// may not subscribe to. A policy that denies by default also removes unknown members.
func (c *Control) narrowFilter(by *policy.Caller, params []byte) []byte {
	filter := wire.Get(params, "notifications")
	var edits []wire.Edit
	for k, v := range wire.Members(filter) {
		switch name := k.String(); name {
		case "resourceSubscriptions":
			edits = append(edits, wire.Edit{Name: name, Value: c.followed(by, v)})
		case "toolsListChanged", "promptsListChanged", "resourcesListChanged", spec.FilterTaskIDs:
		default:
			if c.opts.Policy != nil && !c.opts.Policy.AllowsByDefault() {
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

// followed returns an array of the URIs that the client may subscribe to.
func (c *Control) followed(by *policy.Caller, uris []byte) []byte {
	left := []byte{'['}
	for uri := range wire.Elements(uris) {
		if uri[0] == '"' && c.follows(by, wire.Unquote(uri)) {
			left = append(append(left, uri...), ',')
		}
	}
	return wire.CloseArray(left)
}

// updates is the Caller of a listen stream of the client's own. It does not forward changes
// of resources that the client may not subscribe to, because their URIs are information.
type updates struct {
	mcp.Caller
	c  *Control
	by *policy.Caller
}

// Notify implements [mcp.Caller].
func (u *updates) Notify(ctx context.Context, n mcp.Notification) error {
	if n.Method == spec.NotifyResourceUpdated && u.c.hidesUpdate(u.by, n.Params) {
		return nil
	}
	return u.Caller.Notify(ctx, n)
}

// hidesUpdate reports whether a client may not follow the resource of an update.
func (c *Control) hidesUpdate(by *policy.Caller, params []byte) bool {
	uri, ok := wire.GetString(params, "uri")
	return ok && !c.follows(by, uri)
}
