package gateway

import (
	"errors"
	"fmt"

	"github.com/mcpbridge/mcpbridge/gateway/internal/access"
	"github.com/mcpbridge/mcpbridge/internal/trust/audit"
	"github.com/mcpbridge/mcpbridge/internal/trust/pin"
	"github.com/mcpbridge/mcpbridge/internal/trust/policy"
)

// A Policy says who may do what with a server. It is decided on what the body of a request
// says, in both eras and over every transport. What is denied is refused, and missing in
// lists.
type Policy struct {
	// Default is what becomes of an operation that no rule matches: DefaultDeny or
	// DefaultAllow. Required.
	Default PolicyDefault
	// Rules are in order: the first one that matches decides.
	Rules []Rule
}

// A PolicyDefault is what becomes of an operation that no rule matches.
type PolicyDefault string

// The defaults of policies.
const (
	DefaultDeny  PolicyDefault = "deny"
	DefaultAllow PolicyDefault = "allow"
)

// A Rule allows or denies what it matches. A field that is empty matches everything, but at
// least one is not. In all texts but those of Scopes, * stands for any text.
type Rule struct {
	// Deny says that what the rule matches is denied, not allowed.
	Deny bool

	// Principals are those that the rule is about. Scopes are all needed, and so are
	// Claims: each must have one of the values.
	Principals []string
	Scopes     []string
	Claims     map[string][]string

	// Methods are those that the rule is about. Tools, Prompts and Resources are what a
	// request has to be about: any of them. Resources are URIs.
	Methods                   []string
	Tools, Prompts, Resources []string
}

// A Rate bounds requests. The zero value bounds nothing.
type Rate struct {
	PerSecond  float64 // on average
	Burst      int     // at once; zero means as many as come in a second
	Concurrent int     // at the same time
}

// Rates bound the requests to a server, handshakes aside.
type Rates struct {
	Principal Rate            // those of each principal; of each address, if it is anonymous
	Server    Rate            // all together
	Tools     map[string]Rate // the calls of a tool
}

// A Pin says what becomes of a tool whose definition is not the one that was accepted.
type Pin string

// What becomes of a changed tool.
const (
	PinOff    Pin = "off"    // definitions are not compared
	PinWarn   Pin = "warn"   // the log says so
	PinRefuse Pin = "refuse" // it is hidden, and calls of it are refused
)

// addAccess makes what controls the access to the servers.
func (b *build) addAccess() error {
	for i, p := range b.parts {
		if b.kept[p] {
			continue
		}
		s := &b.opts.Servers[i]
		var err error
		if p.access, err = b.of(s).accessOptions(); err != nil {
			return fmt.Errorf("mcpbridge: server %q: %w", s.Name, err)
		}
		if p.auth, err = b.authenticator(s.Auth); err != nil {
			return fmt.Errorf("mcpbridge: server %q: Auth: %w", s.Name, err)
		}
	}
	for i, p := range b.groups {
		if b.kept[p.serverParts] {
			continue
		}
		g := b.ofGroup(&b.opts.Groups[i])
		var err error
		if p.access, err = g.front.controls(); err != nil {
			return fmt.Errorf("mcpbridge: group %q: %w", g.Name, err)
		}
		if p.auth, err = b.authenticator(g.Auth); err != nil {
			return fmt.Errorf("mcpbridge: group %q: Auth: %w", g.Name, err)
		}
	}
	return nil
}

func (s serverBuild) accessOptions() (o access.Options, err error) {
	if o, err = s.controls(); err != nil {
		return o, err
	}
	if o.Names, err = s.names(); err != nil {
		return o, err
	}
	if s.b.opts.hooks.Listed != nil {
		o.Pins = pin.Observe(s.b.opts.hooks.Listed)
		return o, nil
	}
	if s.Pin == "" || s.Pin == PinOff {
		return o, nil
	}
	if s.Pin != PinWarn && s.Pin != PinRefuse {
		return o, fmt.Errorf("unknown Pin %q", s.Pin)
	}
	o.Pins, err = pin.Open(pin.Options{Store: s.b.opts.pinStore(s.b.node), Server: s.Name, Refuse: s.Pin == PinRefuse, Told: tellPins(o.Audit, s.Name), Logger: s.b.opts.Logger, Metrics: s.b.metrics})
	return o, err
}

// controls are those of the access that groups have, too.
func (s serverBuild) controls() (o access.Options, err error) {
	o.Audit = s.b.common.audit
	if s.Policy != nil {
		if o.Policy, err = s.Policy.compile(); err != nil {
			return o, fmt.Errorf("policy: %w", err)
		}
	}
	if rates := s.Rates.internal(); !rates.IsZero() {
		o.Limiter = policy.NewLimiter(rates)
	}
	return o, nil
}

// tellPins returns what writes into the audit log what becomes of a server's pinned tools.
func tellPins(log *audit.Log, server string) func(pin.Event) {
	return func(e pin.Event) {
		log.Write(audit.Pinned(server, e.Tool, e.Digest, e.What, e.Refused))
	}
}

// policyClaims returns the names of the claims that rules need.
func (b *build) policyClaims() []string {
	var policies []*Policy
	for _, s := range b.opts.Servers {
		policies = append(policies, s.Policy)
	}
	for _, g := range b.opts.Groups {
		policies = append(policies, g.Policy)
	}
	var rules []policy.Rule
	for _, p := range policies {
		if p != nil {
			for _, r := range p.Rules {
				rules = append(rules, policy.Rule(r))
			}
		}
	}
	return policy.ClaimNames(rules)
}

func (p *Policy) compile() (*policy.Policy, error) {
	if p.Default != DefaultAllow && p.Default != DefaultDeny {
		return nil, errors.New("its Default is neither DefaultAllow nor DefaultDeny")
	}
	rules := make([]policy.Rule, len(p.Rules))
	for i, r := range p.Rules {
		rules[i] = policy.Rule(r)
		if err := rules[i].Check(); err != nil {
			return nil, fmt.Errorf("rule %d: %w", i+1, err)
		}
	}
	return policy.New(p.Default == DefaultAllow, rules), nil
}

func (r *Rates) internal() policy.Rates {
	out := policy.Rates{Principal: policy.Rate(r.Principal), Server: policy.Rate(r.Server), Tools: make(map[string]policy.Rate)}
	for name, rate := range r.Tools {
		out.Tools[name] = policy.Rate(rate)
	}
	return out
}
