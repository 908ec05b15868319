package mcp

import (
	"context"
	"sync/atomic"
)

// A Passage is the way of a request through a group of servers to those of them that serve it.
// Each that serves more than a list tells of it by its own name: in the log, and in the audit log.
type Passage struct {
	Group string // the group's name

	passed atomic.Bool
}

// Pass says that a member tells of the request. It does nothing for nil.
func (p *Passage) Pass() {
	if p != nil {
		p.passed.Store(true)
	}
}

// IsTold reports whether a member tells of the request, so that the group need not. It is false
// for nil.
func (p *Passage) IsTold() bool { return p != nil && p.passed.Load() }

// At returns the group through which a request has come to a server; empty for none, and at the
// group itself.
func (p *Passage) At(server string) string {
	if p == nil || p.Group == server {
		return ""
	}
	return p.Group
}

type passageKey struct{}

// WithPassage returns the context of a request with its way through a group.
func WithPassage(ctx context.Context, p *Passage) context.Context {
	return context.WithValue(ctx, passageKey{}, p)
}

// PassageIn returns what WithPassage has put into a context; nil without it.
func PassageIn(ctx context.Context) *Passage {
	p, _ := ctx.Value(passageKey{}).(*Passage)
	return p
}
