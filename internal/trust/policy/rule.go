package policy

import (
	"slices"
	"strings"

	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A compiledRule is a Rule with its patterns compiled.
type compiledRule struct {
	deny       bool
	principals []pattern
	scopes     []string
	claims     []claim
	methods    []pattern
	names      [kinds]names // by kind
	named      bool         // names is not empty
}

// A claim must have one of the values.
type claim struct {
	name   string
	values []pattern
}

func newRule(r Rule) *compiledRule {
	out := &compiledRule{deny: r.Deny, principals: compileAll(r.Principals), scopes: r.Scopes}
	for _, method := range r.Methods {
		if r.Deny {
			method = Fold(method)
		}
		out.methods = append(out.methods, compile(method))
	}
	for name, values := range r.Claims {
		out.claims = append(out.claims, claim{name, compileAll(values)})
	}
	for k, texts := range map[Kind][]string{Tool: r.Tools, Prompt: r.Prompts, Resource: r.Resources} {
		out.names[k] = newNames(k, r.Deny, texts)
		out.named = out.named || len(texts) > 0
	}
	return out
}

func compileAll(texts []string) []pattern {
	var all []pattern
	for _, text := range texts {
		all = append(all, compile(text))
	}
	return all
}

// limited reports whether the rule does not cover some operations.
func (r *compiledRule) limited() bool { return r.named || len(r.methods) > 0 }

// isOf reports whether the rule matches a caller, without its scopes.
func (r *compiledRule) isOf(c *Caller) bool {
	if len(r.principals) > 0 && !anyMatch(r.principals, c.Principal) {
		return false
	}
	for i := range r.claims {
		if !r.claims[i].match(c.Claims[r.claims[i].name]) {
			return false
		}
	}
	return true
}

func (r *compiledRule) hasScopes(c *Caller) bool {
	for _, s := range r.scopes {
		if !slices.Contains(c.Scopes, s) {
			return false
		}
	}
	return true
}

// match reports whether the value of a claim, or an element of it if it is an array, is one
// of the values.
func (c *claim) match(value []byte) bool {
	if len(value) == 0 || wire.IsObject(value) {
		return false
	}
	if !wire.IsArray(value) {
		return c.matchScalar(value)
	}
	for e := range wire.Elements(value) {
		if c.matchScalar(e) {
			return true
		}
	}
	return false
}

func (c *claim) matchScalar(value []byte) bool {
	text := string(value)
	if value[0] == '"' {
		text = wire.Unquote(value)
	}
	return anyMatch(c.values, text)
}

// covers reports whether the rule covers an operation on n, of kind k.
func (r *compiledRule) covers(op *Operation, k Kind, n *name) bool {
	if (op.about == nil || op.about.at == 0) && !r.coversMethod(op.Method) {
		return false // candidates has checked other methods
	}
	if !r.named {
		return true
	}
	switch op.class() {
	case use, reference:
		return r.names[k].match(n)
	case list:
		return !r.deny && !r.names[k].empty()
	case listen:
		return !r.deny
	case followUp:
		return !r.deny && !r.names[Tool].empty()
	}
	return false
}

// coversMethod reports whether the rule covers a method. Subscribing to a resource is one
// operation with two methods.
func (r *compiledRule) coversMethod(method string) bool {
	if len(r.methods) == 0 {
		return true
	}
	if r.deny {
		method = Fold(method)
	}
	if anyMatch(r.methods, method) {
		return true
	}
	return strings.EqualFold(method, spec.MethodSubscribe) && anyMatch(r.methods, spec.MethodListen)
}
