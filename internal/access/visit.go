package access

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/audit"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/policy"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A sender is who sent a request, and how.
type sender struct {
	share    mcp.Share
	identity *mcp.Identity
	era      spec.Era
	session  string
	info     []byte // the client's name and version, JSON
}

func senderOf(req *mcp.Request) sender {
	return sender{share: req.Share, identity: req.Identity, era: req.Era, session: req.Session, info: req.ClientInfo}
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

// A visit is one request on its way to the server.
type visit struct {
	c        *Control
	sender   sender
	client   string // name and version of the client, if sender.info is not kept
	method   string
	op       policy.Operation
	decision policy.Decision
	ticket   policy.Ticket
	verdict  string    // for the audit log; empty if the request is allowed
	begin    time.Time // zero if the request is not recorded
}

// open decides whether the sender may use the server at all.
func (v *visit) open(m *wire.Message) error {
	v.start()
	p := v.c.opts.Policy
	if p == nil {
		return nil
	}
	if m != nil {
		if err := policy.CheckEnvelope(m.Extra); err != nil {
			return v.odd(err)
		}
	}
	caller := v.sender.caller()
	if v.decision = p.Open(&caller); v.decision.Allowed {
		return nil
	}
	v.op.Method = v.method
	return v.denied()
}

func (v *visit) start() {
	if v.c.opts.Audit != nil {
		v.begin = time.Now()
	}
}

// admit decides on a request, and counts it. The caller must give the ticket back.
func (v *visit) admit(params, extra []byte, plain wire.Plain) (err error) {
	v.start()
	o := &v.c.opts
	if v.op, err = policy.ReadParsed(v.method, params, extra, plain); err != nil {
		if o.Policy != nil || o.Limiter != nil || o.Pins != nil {
			return v.odd(err)
		}
		v.op = policy.Operation{Method: v.method} // it is only recorded
	}
	if o.Policy != nil {
		caller := v.sender.caller()
		if v.decision = o.Policy.Decide(&caller, &v.op); !v.decision.Allowed {
			return v.denied()
		}
	}
	tool := ""
	if kind, name := v.op.About(); kind == policy.Tool {
		tool = name
	}
	if tool != "" && o.Pins != nil && o.Pins.Refuses(tool) {
		v.verdict = "deny"
		return v.c.notAccepted(tool)
	}
	if o.Limiter == nil || v.op.Free() {
		return nil
	}
	return v.enter(tool)
}

// enter counts a request.
func (v *visit) enter(tool string) (err error) {
	v.ticket, err = v.c.opts.Limiter.Take(v.sender.share, tool)
	if e := (*policy.ExceededError)(nil); errors.As(err, &e) {
		v.verdict = "limit"
		return v.c.exceeded(e)
	}
	return err
}

// denied refuses a request that the policy does not allow.
func (v *visit) denied() error {
	v.verdict = "deny"
	return v.c.refuse(&v.op, v.decision)
}

// odd refuses a request that is ambiguous.
func (v *visit) odd(err error) error {
	v.verdict = "deny"
	return &mcp.Refusal{Status: statusDenied, Err: wire.Errorf(spec.CodeInvalidParams, "%s can't be held against the policy of server %q: %v; send it as the specification writes it", v.method, v.c.opts.Server, err)}
}

// record writes the line of the audit log. err is the request's error.
func (v *visit) record(err error) { v.recordIn(context.Background(), err) }

func (v *visit) recordIn(ctx context.Context, err error) {
	if v.begin.IsZero() || v.method == spec.MethodPing {
		return
	}
	kind, name := v.op.About()
	r := audit.Record{
		Time: v.begin, Principal: string(v.sender.share.Principal), Client: cmp.Or(v.client, mcp.ClientName(v.sender.info)), Session: v.sender.session,
		Server: v.c.opts.Server, Era: v.sender.era.String(), Method: v.method, Kind: kind.String(), Name: name,
		Decision: "allow", Rule: v.decision.Rule, Outcome: mcp.OutcomeName(ctx, err), Took: time.Since(v.begin),
	}
	if v.verdict != "" {
		r.Decision, r.Reason = v.verdict, mcp.WireError(err).Message
	}
	v.c.opts.Audit.Write(&r)
}
