package policy

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A Rule allows or denies what it matches. Each part that is empty matches everything. In
// all texts but those of Scopes, * stands for any text.
type Rule struct {
	Deny bool

	// Who: any of the principals, with all scopes and all claims, of which each has one of
	// the values.
	Principals []string
	Scopes     []string
	Claims     map[string][]string

	// What: any of the methods, and about any of the tools, prompts and resources.
	Methods                   []string
	Tools, Prompts, Resources []string
}

// A Policy is the rules of one server, in order. It does not change.
type Policy struct {
	rules []compiledRule
	allow bool // what no rule matches
}

// A Caller is whose operation is decided on.
type Caller struct {
	Principal string
	Scopes    []string
	Claims    map[string]json.RawMessage
}

// A Decision says whether an operation is allowed.
type Decision struct {
	Allowed bool
	// Rule is the number of the rule that decided, from 1; zero if none matched.
	Rule int
	// Scopes are those with which the operation would be allowed, all of them; empty if
	// scopes do not help.
	Scopes []string
}

// New returns a Policy that allows what no rule matches, or denies it.
func New(allow bool, rules []Rule) *Policy {
	p := &Policy{allow: allow}
	for _, r := range rules {
		p.rules = append(p.rules, newRule(r))
	}
	return p
}

// ClaimNames returns the names of the claims that rules have.
func ClaimNames(rules []Rule) []string {
	all := make(map[string]bool)
	for _, r := range rules {
		for name := range r.Claims {
			all[name] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// Decide decides on an operation.
func (p *Policy) Decide(c *Caller, op *Operation) Decision {
	if op.Free() {
		return Decision{Allowed: true}
	}
	d := p.decide(c, op, op.about.kind, &op.name)
	if d.Allowed && op.second != nil {
		return p.decide(c, op, op.other, op.second)
	}
	return d
}

// Open decides whether a caller may use the server at all: a caller to whom no rule could
// allow anything may not even ask what it is.
func (p *Policy) Open(c *Caller) Decision {
	return p.first(c, p.allow, func(r *compiledRule) bool { return !r.deny || !r.limited() })
}

// Subscribable decides whether changes of a resource may be told.
func (p *Policy) Subscribable(c *Caller, uri string) bool {
	op := Use(spec.MethodSubscribe, Resource, uri)
	return p.Decide(c, &op).Allowed
}

// Visible decides whether an element of a list may be shown: one that may be used.
func (p *Policy) Visible(c *Caller, list *Operation, element []byte) bool {
	v := wire.Get(element, list.about.name)
	if len(v) < 2 || v[0] != '"' {
		return false // nobody could use it
	}
	n, err := readText(list.about.kind, v)
	if err != nil {
		return false
	}
	op := Operation{Method: usedBy[list.about.kind], about: subject{class: use, kind: list.about.kind}}
	return p.decide(c, &op, list.about.kind, &n).Allowed
}

// usedBy has the method by which what is in a list is used.
var usedBy = [kinds]string{Tool: spec.MethodToolsCall, Prompt: spec.MethodPromptsGet, Resource: spec.MethodResourcesRead}

// AllowsByDefault reports whether what no rule matches is allowed.
func (p *Policy) AllowsByDefault() bool { return p.allow }

// HidesResources reports whether there may be resources that a caller may not see.
func (p *Policy) HidesResources() bool {
	if !p.allow {
		return true
	}
	return slices.ContainsFunc(p.rules, func(r compiledRule) bool { return r.deny })
}

func (p *Policy) decide(c *Caller, op *Operation, k Kind, n *name) Decision {
	fallback := p.allow || op.about.class == list || op.about.class == listen // what they tell is filtered
	return p.first(c, fallback, func(r *compiledRule) bool { return r.covers(op, k, n) })
}

// first returns the decision of the first rule that covers an operation and matches the
// caller. A rule that would allow it, were it not for scopes that the caller lacks, says
// which are missing if the operation is denied after all.
func (p *Policy) first(c *Caller, fallback bool, covers func(*compiledRule) bool) Decision {
	var lacked []string
	for i := range p.rules {
		r := &p.rules[i]
		if !r.isOf(c) || !covers(r) {
			continue
		}
		switch {
		case r.hasScopes(c) && r.deny:
			return Decision{Rule: i + 1, Scopes: lacked}
		case r.hasScopes(c):
			return Decision{Allowed: true, Rule: i + 1}
		case !r.deny && lacked == nil:
			lacked = r.scopes
		}
	}
	if fallback {
		return Decision{Allowed: true}
	}
	return Decision{Scopes: lacked}
}
