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

	// Who: one of the principals, with all scopes, and with one of the values of each
	// claim.
	Principals []string
	Scopes     []string
	Claims     map[string][]string

	// What: one of the methods, on one of the tools, prompts or resources.
	Methods                   []string
	Tools, Prompts, Resources []string
}

// A Policy has the rules of one server, in order. It is immutable.
type Policy struct {
	rules []candidate   // all rules
	of    [][]candidate // by subject.at: the rules that may cover a method; nil for unknown methods
	allow bool          // the decision if no rule matches
}

// A candidate is a rule that may cover an operation.
type candidate struct {
	*compiledRule
	number int // from 1
	// sure says that the rule covers every operation of the method.
	sure bool
}

// A Caller is the sender of an operation.
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
	// Scopes are the scopes that together would allow the operation; empty if scopes do not
	// help.
	Scopes []string
}

// New returns a Policy. allow is the decision if no rule matches.
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

// candidates returns the rules that may cover operations of a method, in order.
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

// ClaimNames returns the names of the claims in rules.
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

// Open decides whether a caller may use the server at all. If no rule could allow it
// anything, it may not even read the server's description.
func (p *Policy) Open(c *Caller) Decision {
	return p.first(c, p.rules, p.allow, func(r *candidate) bool { return !r.deny || !r.limited() })
}

// Subscribable decides whether a caller may subscribe to a resource.
func (p *Policy) Subscribable(c *Caller, uri string) bool {
	op := Use(spec.MethodSubscribe, Resource, uri)
	return p.Decide(c, &op).Allowed
}

// Visible decides whether an element of a list may be listed: only if the caller may use
// it.
func (p *Policy) Visible(c *Caller, list *Operation, element []byte) bool {
	v := wire.Get(element, list.about.name)
	if len(v) < 2 || v[0] != '"' {
		return false // it could not be used
	}
	n, err := readText(list.about.kind, v)
	if err != nil {
		return false
	}
	kind := list.about.kind
	return p.decide(c, &used[kind], kind, &n).Allowed
}

// Uses decides whether a caller may use the tool, prompt or resource of a name.
func (p *Policy) Uses(c *Caller, k Kind, text string) bool {
	n := newName(k, text)
	return p.decide(c, &used[k], k, &n).Allowed
}

// used has, by kind, the operation that uses an element of a list, without a name.
var used = [kinds]Operation{Tool: using(spec.MethodToolsCall), Prompt: using(spec.MethodPromptsGet), Resource: using(spec.MethodResourcesRead)}

func using(method string) Operation { return Operation{Method: method, about: subjectOf(method)} }

// AllowsByDefault reports whether operations are allowed if no rule matches.
func (p *Policy) AllowsByDefault() bool { return p.allow }

// HidesResources reports whether the caller may be denied some resources.
func (p *Policy) HidesResources() bool {
	if !p.allow {
		return true
	}
	return slices.ContainsFunc(p.rules, func(r candidate) bool { return r.deny })
}

func (p *Policy) decide(c *Caller, op *Operation, k Kind, n *name) Decision {
	class := op.class()
	fallback := p.allow || class == list || class == listen // their results are filtered
	rules := p.rules
	if op.about != nil && op.about.at > 0 {
		rules = p.of[op.about.at]
	}
	return p.first(c, rules, fallback, func(r *candidate) bool { return r.sure || r.covers(op, k, n) })
}

// first returns the decision of the first rule that covers an operation and matches the
// caller. If the operation is denied, the decision has the scopes that a rule would need to
// allow it.
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
