package access

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/names"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/trust/audit"
	"github.com/mcpbridge/mcpbridge/internal/trust/policy"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A sender is who sent a request, and how.
type sender struct {
	share    mcp.Share
	identity *mcp.Identity
	era      spec.Era
	session  string
	info     []byte // the client's name and version, JSON
	passage  *mcp.Passage
	origin
}

func (c *Control) senderOf(req *mcp.Request) sender {
	return sender{
		share: req.Share, identity: req.Identity, era: req.Era, session: req.Session, info: req.ClientInfo, passage: req.Passage,
		origin: c.originOf(req.Arrival, req.Trace, req.Meta),
	}
}

// caller returns the sender for rules.
func (s *sender) caller() policy.Caller {
	c := policy.Caller{Principal: string(s.share.Principal)}
	if s.identity != nil {
		c.Scopes, c.Claims = s.identity.Scopes, s.identity.Claims
	}
	return c
}

var errNoID = errors.New("a request has no id")

// A request is a request of a client on its way to the server.
type request struct {
	c        *Control
	sender   sender
	client   string // name and version of the client, if sender.info is not kept
	method   string
	op       policy.Operation // by the server's own names
	params   []byte           // with the server's own name; nil if that is what the client has sent
	decision policy.Decision
	ticket   policy.Ticket
	verdict  string    // for the audit log; empty if the request is allowed
	begin    time.Time // zero if the request is not recorded
	times    int       // how many of the same the line is about; zero for one
}

// open decides whether the sender may use the server at all.
func (q *request) open(m *wire.Message) error {
	q.start()
	if !q.c.decidesOnNames() {
		return nil
	}
	if m != nil {
		if err := policy.CheckEnvelope(m.Extra); err != nil {
			return q.ambiguous(err)
		}
	}
	p := q.c.opts.Policy
	if p == nil {
		return nil
	}
	caller := q.sender.caller()
	if q.decision = p.Open(&caller); q.decision.Allowed {
		return nil
	}
	q.op.Method = q.method
	return q.denied()
}

func (q *request) start() {
	if q.c.opts.Audit != nil {
		q.begin = time.Now()
	}
}

// admit decides on a request, and counts it. The caller must give the ticket back.
func (q *request) admit(params, extra []byte, plain wire.Plain) (err error) {
	q.start()
	o := &q.c.opts
	if q.op, err = policy.ReadParsed(q.method, params, extra, plain); err != nil {
		if q.c.decidesOnNames() || o.Limiter != nil || o.Pins != nil {
			return q.ambiguous(err)
		}
		q.op = policy.Operation{Method: q.method} // it is only recorded
	}
	if err = q.resolve(params); err != nil {
		return err
	}
	if o.Policy != nil {
		caller := q.sender.caller()
		if q.decision = o.Policy.Decide(&caller, &q.op); !q.decision.Allowed {
			return q.denied()
		}
	}
	tool := ""
	if kind, name := q.op.About(); kind == policy.Tool {
		tool = name
	}
	if o.Pins != nil && (tool != "" || q.method == spec.MethodToolsList) {
		if err := o.Pins.Refusal(tool); err != nil {
			q.verdict = "deny"
			return q.c.unpinned(tool, err)
		}
	}
	if o.Limiter == nil || q.op.Free() {
		return nil
	}
	return q.enter(tool)
}

// resolve takes what the client calls something to what the server calls it. What is hidden is
// refused as what the server does not have.
func (q *request) resolve(params []byte) error {
	if q.c.opts.Names == nil {
		return nil
	}
	own, renamed, ok := q.c.opts.Names.Own(q.op)
	if !ok {
		return q.hidden()
	}
	if renamed {
		q.op = own
		_, name := own.About()
		q.params = names.Params(q.method, params, name)
	}
	return nil
}

// hidden refuses a request about what clients do not see.
func (q *request) hidden() error {
	q.verdict = "deny"
	return &mcp.Refusal{Status: statusDenied, Barred: true, Err: names.Unknown(q.sender.era, &q.op)}
}

// forServer returns the client's request as the server gets it.
func (q *request) forServer(req *mcp.Request) *mcp.Request {
	if q.params == nil {
		return req
	}
	sent := *req
	sent.Params, sent.Plain = q.params, wire.Plain{}
	return &sent
}

// enter counts a request.
func (q *request) enter(tool string) (err error) {
	q.ticket, err = q.c.opts.Limiter.Take(q.sender.share, tool)
	if e := (*policy.ExceededError)(nil); errors.As(err, &e) {
		q.verdict = "limit"
		return q.c.exceeded(q.sender.era, e)
	}
	return err
}

// denied refuses a request that the policy does not allow.
func (q *request) denied() error {
	q.verdict = "deny"
	return q.c.refuse(&q.op, q.decision)
}

// ambiguous refuses a request that is ambiguous.
func (q *request) ambiguous(err error) error {
	q.verdict = "deny"
	against := "the policy of server"
	if q.c.opts.Policy == nil && q.c.opts.Names != nil {
		against = "what is shown of server"
	}
	return &mcp.Refusal{Status: statusDenied, Barred: true, Err: wire.Errorf(spec.CodeInvalidParams, "%s can't be held against %s %q: %v; send it as the specification writes it", q.method, against, q.c.opts.Server, err)}
}

// record writes the line of the audit log. err is the request's error.
func (q *request) record(err error) { q.recordIn(context.Background(), err) }

func (q *request) recordIn(ctx context.Context, err error) {
	if q.begin.IsZero() || q.method == spec.MethodPing || q.isTold() {
		return
	}
	kind, name := q.op.About()
	r := audit.Record{
		Address: q.sender.address, Request: q.sender.request, Trace: q.sender.trace,
		Time: q.begin, Principal: string(q.sender.share.Principal), Client: cmp.Or(q.client, q.c.clients.Of(q.sender.info)), Session: q.sender.session,
		Server: q.c.opts.Server, Group: q.sender.passage.At(q.c.opts.Server), Era: q.sender.era.String(), Method: q.method, Kind: kind.String(), Name: name,
		Decision: "allow", Rule: q.decision.Rule, Outcome: mcp.OutcomeName(ctx, err), Took: time.Since(q.begin), Times: q.times,
	}
	if q.verdict != "" {
		r.Decision, r.Reason = q.verdict, mcp.WireError(err).Message
	}
	q.c.opts.Audit.Write(&r)
}

// isTold reports whether a request that is allowed has no line here: a member of the group has
// written it, or the group writes one for a list of all members.
func (q *request) isTold() bool {
	if q.verdict != "" {
		return false
	}
	if q.sender.passage.At(q.c.opts.Server) != "" {
		return spec.Lists(q.method)
	}
	return q.sender.passage.IsTold()
}
