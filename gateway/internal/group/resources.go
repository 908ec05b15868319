package group

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/names"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/trust/policy"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// maxOthers bounds the members that are asked for a URI of which nothing is known.
const maxOthers = 8

// errSilent is why a member is asked no longer for what it may not have.
var errSilent = errors.New("it does not answer")

// serveRead serves resources/read. One that continues a call goes to who has begun it.
func (b *Back) serveRead(ctx context.Context, req *mcp.Request, c mcp.Caller) (*mcp.Result, error) {
	p, err := readParams(req, memberURI)
	if err != nil {
		return nil, err
	}
	if p.state == nil {
		return b.serveURI(ctx, req, &p, c, wire.Unquote(p.subject))
	}
	of, _, err := b.sealing.open(sealedState, wire.Unquote(p.state))
	if err != nil {
		_, err = b.sealing.stateOf(p.state, "") // says so
		return nil, err
	}
	m, err := b.roster.named(of)
	if err != nil {
		return nil, err
	}
	return b.askFor(ctx, &m, req, &p, c)
}

// askFor has a member serve a client's request about a URI.
func (b *Back) askFor(ctx context.Context, m *memberAt, req *mcp.Request, p *params, c mcp.Caller) (*mcp.Result, error) {
	sent, err := b.sealing.forMember(req, p, m, nil)
	if err != nil {
		return nil, err
	}
	return b.ask(ctx, m, req, sent, c)
}

// serveURI serves a request that reads something about a URI, or about a URI template, with the
// member that has it: that lists it, has handed it out, has a template for it, or knows it when
// asked.
func (b *Back) serveURI(ctx context.Context, req *mcp.Request, p *params, c mcp.Caller, uri string) (*mcp.Result, error) {
	var left time.Duration
	for again := true; ; again = false {
		begun := time.Now()
		i, err := b.findLister(ctx, req, uri)
		if err != nil {
			return nil, err
		}
		left = b.opts.Patience - time.Since(begun)
		if i < 0 {
			break
		}
		m, err := b.roster.at(i)
		if err != nil {
			return nil, err
		}
		res, err := b.askFor(ctx, &m, req, p, c)
		if err == nil || !again || !mayLack(ctx, err) || !b.uris.Outdate(&req.Profile, m.Name, spec.MethodResourcesList) {
			return res, err
		}
	}
	s := search{b: b, req: req, params: p, caller: c, asked: make([]bool, len(b.roster.names))}
	if i := b.uris.HandedBy(&req.Profile, b.roster.names, uri); i >= 0 && s.ask(ctx, i) {
		return s.res, s.err
	}
	matching := b.uris.Matching(&req.Profile, b.roster.names, uri)
	if len(matching) == 1 && s.ask(ctx, matching[0]) {
		return s.res, s.err
	}
	if s.guess(ctx, left, matching); s.res == nil && s.err == nil {
		return nil, s.notFound(uri)
	}
	return s.res, s.err
}

// mayLack reports whether a member that lists a URI and has answered with err may list it no longer. Any
// other error is the answer, and is not asked for twice.
func mayLack(ctx context.Context, err error) bool {
	isAnswer := errors.As(err, new(*mcp.Refusal)) || errors.As(err, new(*mcp.LoginError)) || mcp.MayTryLater(err) || mcp.WireError(err).Code == spec.CodeInternal
	return !isAnswer && ctx.Err() == nil
}

// findLister returns the place of the member that lists a URI, or a URI template of which
// something is to be completed; -1 if none does. Lists that are not known are read. The only
// member of a group may list everything.
func (b *Back) findLister(ctx context.Context, req *mcp.Request, uri string) (int, error) {
	if len(b.roster.names) == 1 {
		return 0, nil
	}
	isTemplate := req.Method == spec.MethodComplete
	i, sure := b.uris.Lister(&req.Profile, b.roster.names, uri, isTemplate)
	if sure {
		return i, nil
	}
	b.listings.learn(ctx, b.opts.Patience/2, req, spec.MethodResourcesList, spec.MethodResourcesTemplates)
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	i, _ = b.uris.Lister(&req.Profile, b.roster.names, uri, isTemplate)
	return i, nil
}

// A search asks one member after the other.
type search struct {
	b      *Back
	req    *mcp.Request
	params *params
	caller mcp.Caller
	asked  []bool
	silent []string // members that did not say whether they have it

	// The outcome, if there is one.
	res *mcp.Result
	err error
}

// ask asks a member, if it was not asked, and reports whether that ends the search: with what it
// has, or with a refusal that another member must not make up for. All other errors mean that it
// does not have it.
func (s *search) ask(ctx context.Context, i int) (ends bool) {
	if s.asked[i] {
		return false
	}
	s.asked[i] = true
	m, err := s.b.roster.at(i)
	if err == nil {
		s.res, err = s.b.askFor(ctx, &m, s.req, s.params, s.caller)
	}
	switch refusal := (*mcp.Refusal)(nil); {
	case err == nil:
		return true
	case context.Cause(ctx) == errSilent:
		s.silent = append(s.silent, s.b.roster.names[i])
		return true
	case ctx.Err() != nil, errors.As(err, new(*mcp.LoginError)), errors.As(err, &refusal) && refusal.Barred:
		s.err = err
		return true
	case mcp.WireError(err).Code == spec.CodeInternal:
		s.silent = append(s.silent, s.b.roster.names[i])
	}
	return false
}

// guess asks members until one ends the search: those that have a template, and then others that
// may have it, all within patience.
func (s *search) guess(ctx context.Context, patience time.Duration, matching []int) {
	ctx, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(patience, func() { cancel(errSilent) })
	defer timer.Stop()
	if !s.askAll(ctx, matching) {
		s.askOthers(ctx)
	}
	if s.res == nil {
		cancel(nil) // a result may still be read
	}
}

func (s *search) askAll(ctx context.Context, places []int) (ended bool) {
	return slices.ContainsFunc(places, func(i int) bool { return s.ask(ctx, i) })
}

// askOthers asks members that have the feature.
func (s *search) askOthers(ctx context.Context) {
	feature := spec.Capability(s.req.Method)
	for i, left := 0, maxOthers; i < len(s.asked) && left > 0; i++ {
		if s.asked[i] {
			continue
		}
		if m, err := s.b.roster.at(i); err == nil {
			d, err := m.Describe(ctx, s.req)
			if err == nil && !mcp.Declares(d.Capabilities, feature) {
				continue
			}
		}
		left--
		if s.ask(ctx, i) {
			return
		}
	}
}

// notFound returns the error for a URI that nobody has. It names those that did not say.
//
// Spec: 2026-07-28 and 2025-11-25, server/resources, Error Handling.
func (s *search) notFound(uri string) error {
	op := policy.Use(s.req.Method, policy.Resource, uri)
	err := names.Unknown(s.req.Era, &op)
	if len(s.silent) > 0 {
		err.Message += "; not all servers of group " + s.b.opts.Name + " have answered: " + strings.Join(s.silent, ", ")
	}
	return err
}
