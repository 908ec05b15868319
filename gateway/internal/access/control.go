package access

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/names"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/trust/audit"
	"github.com/mcpbridge/mcpbridge/internal/trust/pin"
	"github.com/mcpbridge/mcpbridge/internal/trust/policy"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// Options configure a Control. Fields that are nil or zero have no effect.
type Options struct {
	Server  string
	Policy  *policy.Policy
	Limiter *policy.Limiter
	Pins    *pin.Pins
	Audit   *audit.Log
	// Names are what clients see of the server. Policy, Limiter, Pins and Audit have the
	// server's own names.
	Names   *names.Map
	Metrics mcp.Metrics // nil counts nothing
}

// A Control controls the access to one server. It is safe for concurrent use. A nil
// *Control controls nothing.
type Control struct {
	opts    Options
	clients mcp.ClientNames // of the audit log
	hidden  hidden
}

// New returns a Control, or nil if the options have no effect.
func New(o Options) *Control {
	if o.Policy == nil && o.Limiter == nil && o.Pins == nil && o.Audit == nil && o.Names == nil {
		return nil
	}
	if o.Metrics == nil {
		o.Metrics = mcp.NoMetrics{}
	}
	return &Control{opts: o}
}

// Open refuses a request for the server's description if its sender may not use the server
// at all.
func (c *Control) Open(req *mcp.Request) error { return c.open(req, nil, true) }

// OpenRelay is Open for m, an initialize that is forwarded unchanged. It records only a
// refusal: an allowed initialize may turn out not to be forwarded.
func (c *Control) OpenRelay(req *mcp.Request, m *wire.Message) error { return c.open(req, m, false) }

// open decides on a request that begins the use of the server. recorded says whether the record
// has it if it is allowed.
func (c *Control) open(req *mcp.Request, m *wire.Message, recorded bool) error {
	if c == nil {
		return nil
	}
	if err := c.unwritten(req.Method); err != nil {
		return err
	}
	q := request{c: c, sender: c.senderOf(req), method: req.Method}
	err := q.open(m)
	if err != nil || recorded {
		q.record(err)
	}
	return err
}

// Description returns a description that must not be cached for other clients.
func (c *Control) Description(d *mcp.Description) *mcp.Description {
	if c == nil || c.opts.Policy == nil || d == nil || !d.Cache.Public {
		return d
	}
	private := *d
	private.Cache.Public = false
	return &private
}

// Admits reports whether Admit decides on a request: on those that open a subscription,
// subscriptions/listen and resources/subscribe, before their fronts begin to respond.
// Others are decided on when they are served.
func (c *Control) Admits(req *mcp.Request) bool {
	return c != nil && (req.Method == spec.MethodListen || req.Method == spec.MethodSubscribe) && req.Params != nil
}

// Admit decides on a request for which Admits returns true.
func (c *Control) Admit(req *mcp.Request) error {
	if !c.Admits(req) {
		return nil
	}
	if err := c.unwritten(req.Method); err != nil {
		return err
	}
	q := request{c: c, sender: c.senderOf(req), method: req.Method}
	err := q.admit(req.Params, req.Extra, req.Plain)
	q.ticket.Give()
	if err != nil {
		q.record(err)
	}
	return err
}

// refuse returns the error for a request that the policy denies.
func (c *Control) refuse(op *policy.Operation, d policy.Decision) error {
	what := op.Method
	if _, name := op.About(); name != "" {
		what += " of " + strconv.Quote(mcp.Shorten(name))
	}
	r := &mcp.Refusal{Status: statusDenied, Barred: true}
	if len(d.Scopes) == 0 {
		r.Err = wire.Errorf(spec.CodeInvalidRequest, "the policy of server %q denies you %s; ask who runs mcpbridge for access", c.opts.Server, what)
		return r
	}
	r.Status, r.Scopes = statusForbidden, d.Scopes
	r.Err = wire.Errorf(spec.CodeInvalidRequest, "the policy of server %q denies you %s without scopes that your token lacks; get one with all of these: %v", c.opts.Server, what, d.Scopes)
	return r
}

// follows reports whether a client may follow a resource.
func (c *Control) follows(by *policy.Caller, uri string) bool {
	return c.opts.Names.ShowsResource(uri) && (c.opts.Policy == nil || c.opts.Policy.Subscribable(by, uri))
}

// hidesResources reports whether a client may be kept from some resources.
func (c *Control) hidesResources() bool {
	return c.opts.Names.HidesResources() || c.opts.Policy != nil && c.opts.Policy.HidesResources()
}

// decidesOnNames reports whether it matters what a request is about, so that it must not be
// ambiguous.
func (c *Control) decidesOnNames() bool { return c.opts.Policy != nil || c.opts.Names != nil }

// unwritten refuses a request that would have a line in the audit log, while the log is
// required and lines can't be written.
func (c *Control) unwritten(method string) error {
	if method == spec.MethodPing || !c.opts.Audit.Refuses() {
		return nil
	}
	c.opts.Metrics.Limit(c.opts.Server, "audit")
	return &mcp.Refusal{
		Status: statusUnwritten, Barred: true, Later: true, RetryAfter: time.Second,
		Err: wire.Errorf(spec.CodeInternal, "requests to server %q are refused while the audit log can't be written; try again, and ask who runs mcpbridge to make room for the log: audit.required", c.opts.Server),
	}
}

// The HTTP statuses of refusals. If more scopes would help it is 403, as the specification
// requires. Others are JSON-RPC errors like those of a server: several SDKs end a session
// with all its calls at an unknown status. A modern client has no session to lose.
//
// Spec: 2026-07-28, basic/authorization, Runtime Insufficient Scope Errors.
const (
	statusDenied    = 200
	statusForbidden = 403
	statusTooMany   = 429 // for modern clients
	statusUnwritten = 503
)

// unpinned returns the error for a call of a tool that was not accepted, or for a request while
// it is not known what was.
func (c *Control) unpinned(tool string, why error) error {
	if !errors.Is(why, pin.ErrNotAccepted) {
		return &mcp.Refusal{Status: statusDenied, Barred: true, Err: wire.Errorf(spec.CodeInternal,
			"which tools of server %q were accepted can't be read at the moment; try again; if that lasts, who runs mcpbridge can see why in its log", c.opts.Server)}
	}
	return &mcp.Refusal{Status: statusDenied, Barred: true, Err: wire.Errorf(spec.CodeInvalidRequest,
		"the definition of tool %q of server %q was not accepted; who runs mcpbridge can look at it: mcpbridge pin %s", mcp.Shorten(tool), c.opts.Server, c.opts.Server)}
}

// exceeded returns the error for a request beyond a rate, and counts it. Where there is no
// header for it, the error's data has the seconds to wait.
func (c *Control) exceeded(era spec.Era, e *policy.ExceededError) error {
	c.opts.Metrics.Limit(c.opts.Server, e.Key)
	seconds, unit := max(1, int64((e.Wait+time.Second-1)/time.Second)), "seconds"
	if seconds == 1 {
		unit = "second"
	}
	we := wire.Errorf(spec.CodeInternal, "%s to server %q; try again in %d %s, or raise %s of the server", e.What, c.opts.Server, seconds, unit, e.Key)
	we.Data = fmt.Appendf(nil, `{"retryAfter":%d}`, seconds)
	if era == spec.Legacy {
		return &mcp.Refusal{Status: statusDenied, Barred: true, Err: we}
	}
	return &mcp.Refusal{Status: statusTooMany, Barred: true, Later: true, RetryAfter: e.Wait, Err: we}
}
