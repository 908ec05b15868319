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
	rules []candidate   // all
	of    [][]candidate // by subject.at: those that may cover a method; nil for unknown ones
	allow bool          // what no rule matches
}

// A candidate is a rule that may cover an operation.
type candidate struct {
	*compiledRule
	number int // from 1
	// sure says that the rule covers the method, whatever the operation is about.
	sure bool
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
	p := &Policy{allow: allow, of: make([][]candidate, len(known))}
	for i, r := range rules {
		p.rules = append(p.rules, candidate{compiledRule: newRule(r), number: i + 1})
	}
	for i, method := range known[1:] {
		p.of[i+1] = p.candidates(&Operation{Method: method, about: subjectOf(method)})
	}
	return p
}

// candidates are the rules that may cover operations of a method, in order.
func (p *Policy) candidates(op *Operation) (all []candidate) {
	class, kind := op.about.class, op.about.kind
	for _, r := range p.rules {
		byName := r.named && (class == use || class == reference)
		switch {
		case !r.coversMethod(op.Method), class == use && r.named && r.names[kind].empty():
		case byName:
			all = append(all, r)
		case r.covers(op, kind, nil):
			r.sure = true
			all = append(all, r)
		}
	}
	return all
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
	d := p.decide(c, op, op.kind, &op.name)
	if d.Allowed && op.second != nil {
		return p.decide(c, op, op.other, op.second)
	}
	return d
}

// Open decides whether a caller may use the server at all: a caller to whom no rule could
// allow anything may not even ask what it is.
func (p *Policy) Open(c *Caller) Decision {
	return p.first(c, p.rules, p.allow, func(r *candidate) bool { return !r.deny || !r.limited() })
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
	kind := list.about.kind
	return p.decide(c, &used[kind], kind, &n).Allowed
}

// used has the operations by which what is in a list is used, without names.
var used = [kinds]Operation{Tool: using(spec.MethodToolsCall), Prompt: using(spec.MethodPromptsGet), Resource: using(spec.MethodResourcesRead)}

func using(method string) Operation { return Operation{Method: method, about: subjectOf(method)} }

// AllowsByDefault reports whether what no rule matches is allowed.
func (p *Policy) AllowsByDefault() bool { return p.allow }

// HidesResources reports whether there may be resources that a caller may not see.
func (p *Policy) HidesResources() bool {
	if !p.allow {
		return true
	}
	return slices.ContainsFunc(p.rules, func(r candidate) bool { return r.deny })
}

func (p *Policy) decide(c *Caller, op *Operation, k Kind, n *name) Decision {
	class := op.class()
	fallback := p.allow || class == list || class == listen // what they tell is filtered
	rules := p.rules
	if op.about != nil && op.about.at > 0 {
		rules = p.of[op.about.at]
	}
	return p.first(c, rules, fallback, func(r *candidate) bool { return r.sure || r.covers(op, k, n) })
}

// first returns the decision of the first rule that covers an operation and matches the
// caller. A rule that would allow it, were it not for scopes that the caller lacks, says
// which are missing if the operation is denied after all.
func (p *Policy) first(c *Caller, rules []candidate, fallback bool, covers func(*candidate) bool) Decision {
	var lacked []string
	for i := range rules {
		r := &rules[i]
		if !covers(r) || !r.isOf(c) {
			continue
		}
		switch {
		case r.hasScopes(c) && r.deny:
			return Decision{Rule: r.number, Scopes: lacked}
		case r.hasScopes(c):
			return Decision{Allowed: true, Rule: r.number}
		case !r.deny && lacked == nil:
			lacked = r.scopes
		}
	}
	if fallback {
		return Decision{Allowed: true}
	}
	return Decision{Scopes: lacked}
}
