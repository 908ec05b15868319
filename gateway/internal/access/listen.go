package access

import (
	"cmp"
	"context"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/trust/policy"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// maxRefused bounds the lines of the audit log about resources that one request may not follow: the
// last one is about all others.
const maxRefused = 64

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
		want.URIs = n.allowed(ctx, want.URIs)
	}
	begin := time.Now()
	honored, err := n.Subscription.Add(ctx, want)
	n.record(ctx, begin, want, err)
	return honored, err
}

// Refused records that the sender of a request may not follow resources, for which Follows returns
// false. The request is told of here then.
func (c *Control) Refused(ctx context.Context, req *mcp.Request, uris []string) {
	if c == nil || c.opts.Audit == nil {
		return
	}
	q := request{c: c, sender: c.senderOf(req), method: req.Method}
	q.observedIn(ctx)
	q.recordRefused(uris)
	req.Passage.Pass()
}

// observedIn takes where a request comes from that is one of its own, in a session.
func (q *request) observedIn(ctx context.Context) {
	if o := mcp.ObservedIn(ctx); o != nil {
		q.sender.origin = q.c.originOf(o.Arrival, o.Trace, o.Meta)
	}
}

// recordRefused writes lines about resources that the sender may not follow.
func (q request) recordRefused(uris []string) {
	caller := q.sender.caller()
	q.verdict, q.begin = "deny", time.Now()
	for i, uri := range uris[:min(len(uris), maxRefused)] {
		if i == maxRefused-1 {
			q.times = len(uris) - i
		}
		q.op = policy.Use(q.method, policy.Resource, uri)
		if !q.c.opts.Names.ShowsResource(uri) {
			q.decision = policy.Decision{}
			q.record(q.hidden())
			continue
		}
		subscribe := policy.Use(spec.MethodSubscribe, policy.Resource, uri)
		q.decision = q.c.opts.Policy.Decide(&caller, &subscribe)
		q.record(q.c.refuse(&q.op, q.decision))
	}
}

// Follows reports whether the sender of a request may follow a resource.
func (c *Control) Follows(req *mcp.Request, uri string) bool {
	if c == nil || !c.hidesResources() {
		return true
	}
	by := (&sender{share: req.Share, identity: req.Identity}).caller()
	return c.follows(&by, uri)
}

// allowed returns the resources that the client may follow, and records the others.
func (n *narrowed) allowed(ctx context.Context, uris []string) []string {
	var left, refused []string
	for _, uri := range uris {
		if n.follows(uri) {
			left = append(left, uri)
		} else {
			refused = append(refused, uri)
		}
	}
	if n.c.opts.Audit != nil && n.method == spec.MethodListen {
		q := request{c: n.c, sender: n.sender, client: n.client, method: n.method}
		q.observedIn(ctx)
		q.recordRefused(refused)
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
	q.observedIn(ctx)
	if q.op, _ = policy.Read(n.method, nil, nil); !n.stream {
		q.sender.passage = cmp.Or(mcp.PassageIn(ctx), q.sender.passage) // of this request
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
