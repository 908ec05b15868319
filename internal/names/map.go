package names

import (
	"errors"
	"fmt"

	"github.com/mcpbridge/mcpbridge/internal/trust/policy"
)

// Options say what of a server is shown, and how. All names are the server's own. In Allow and
// Deny, * stands for any text.
type Options struct{ Tools, Prompts, Resources Part }

// A Part says it of the tools, the prompts, or the resources, whose names are their URIs.
type Part struct {
	Allow []string // what is shown; nil means everything
	Deny  []string // what is not, even if Allow has it
	// Rename has new names for tools and prompts. Resources keep their URIs.
	Rename map[string]string
	// Describe has new descriptions of tools and prompts, by their own or by their new names.
	Describe map[string]string
}

// IsZero reports whether everything of the server is shown as it is.
func (o *Options) IsZero() bool {
	return o.Tools.IsZero() && o.Prompts.IsZero() && o.Resources.IsZero()
}

func (o *Options) part(k policy.Kind) *Part {
	return map[policy.Kind]*Part{policy.Tool: &o.Tools, policy.Prompt: &o.Prompts, policy.Resource: &o.Resources}[k]
}

// kinds are those of what has a name.
var kinds = []policy.Kind{policy.Tool, policy.Prompt, policy.Resource}

// ErrHidden says that something has no name that clients see.
var ErrHidden = errors.New("it is not shown")

// A ClashError says that two things of a server would have one name. Own and Other are their
// own names.
type ClashError struct {
	Kind             policy.Kind
	Own, Other, Name string
}

func (e *ClashError) Error() string {
	if e.Own != e.Name && e.Other != e.Name {
		return fmt.Sprintf("the %ss %q and %q, of which one is renamed, differ only in case; rename or deny the other one", e.Kind, e.Own, e.Other)
	}
	return fmt.Sprintf("the %ss %q and %q would both be called %q, since one is renamed; deny or rename the other one, or give it another name", e.Kind, e.Own, e.Other, e.Name)
}

// A Map takes names that clients see to those of a server, and back. It is immutable. A nil
// *Map shows everything as it is.
type Map struct {
	hidden *policy.Policy // denies what is not shown
	parts  map[policy.Kind]*compiled
}

// A compiled Part.
type compiled struct {
	filters  bool              // it has Allow or Deny
	shown    map[string]string // by own name
	own      map[string]string // by shown name
	folded   map[string]string // own names of what is renamed, by what a lenient server may take for them
	describe map[string]string // descriptions, by own name
}

// New returns the Map of options, or nil if they have no effect. It returns an error for
// options that contradict themselves.
func New(o Options) (*Map, error) {
	if err := o.Check(nil); err != nil {
		return nil, err
	}
	m := &Map{parts: make(map[policy.Kind]*compiled)}
	for _, k := range kinds {
		if from := o.part(k); !from.IsZero() {
			m.parts[k] = compile(from)
		}
	}
	if len(m.parts) == 0 {
		return nil, nil
	}
	m.hidden = o.hidden()
	return m, nil
}

// IsZero reports whether everything is shown as it is.
func (p *Part) IsZero() bool {
	return p.Allow == nil && len(p.Deny) == 0 && len(p.Rename) == 0 && len(p.Describe) == 0
}

func compile(from *Part) *compiled {
	p := &compiled{
		filters: from.Allow != nil || len(from.Deny) > 0, shown: from.Rename,
		own: make(map[string]string), folded: make(map[string]string), describe: make(map[string]string),
	}
	for own, shown := range from.Rename {
		p.own[shown], p.folded[policy.Fold(own)] = own, own
	}
	for name, text := range from.Describe {
		p.describe[from.owner(name)] = text
	}
	return p
}

// owner returns the own name of what Describe calls name.
func (p *Part) owner(name string) string {
	if p.Rename[name] == "" {
		for own, shown := range p.Rename {
			if shown == name {
				return own
			}
		}
	}
	return name
}

// hidden returns a policy that denies what is not shown, however it is spelled.
func (o *Options) hidden() *policy.Policy {
	rules := []policy.Rule{
		{Deny: true, Tools: o.Tools.Deny, Prompts: o.Prompts.Deny, Resources: o.Resources.Deny},
		{Tools: o.Tools.Allow, Prompts: o.Prompts.Allow, Resources: o.Resources.Allow},
		{Deny: true, Tools: o.Tools.rest(), Prompts: o.Prompts.rest(), Resources: o.Resources.rest()},
	}
	var used []policy.Rule
	for _, r := range rules {
		if len(r.Tools)+len(r.Prompts)+len(r.Resources) > 0 { // one without names would be about everything
			used = append(used, r)
		}
	}
	return policy.New(true, used)
}

// rest returns a pattern for what Allow does not have.
func (p *Part) rest() []string {
	if p.Allow == nil {
		return nil
	}
	return []string{"*"}
}

// anybody is the Caller on whom nothing depends.
var anybody policy.Caller

// Own returns an operation by the server's own name of what it is about, and whether that is
// another one than clients see. It returns false for ok if clients see nothing of this name.
func (m *Map) Own(op policy.Operation) (own policy.Operation, renamed, ok bool) {
	kind, name := op.About()
	if m == nil || kind == policy.None {
		return op, false, true
	}
	if p := m.parts[kind]; p != nil {
		if text, is := p.own[name]; is {
			op.Rename(text)
			renamed = true
		} else if _, is := p.folded[policy.Fold(name)]; is {
			return op, false, false
		}
	}
	return op, renamed, m.hidden.Decide(&anybody, &op).Allowed
}

// Shown returns the name by which clients see what a server calls own. The error is
// ErrHidden, or a *ClashError.
func (m *Map) Shown(k policy.Kind, own string) (string, error) {
	if m == nil || m.parts[k] == nil {
		return own, nil
	}
	p := m.parts[k]
	if shown := p.shown[own]; shown != "" {
		return shown, nil
	}
	if p.filters && !m.hidden.Uses(&anybody, k, own) {
		return "", ErrHidden
	}
	if other, taken := p.own[own]; taken {
		return "", &ClashError{k, other, own, own}
	}
	if other, alike := p.folded[policy.Fold(own)]; alike {
		return "", &ClashError{k, other, own, ""}
	}
	return own, nil
}

// HidesResources reports whether some resources may be hidden.
func (m *Map) HidesResources() bool { return m != nil && m.parts[policy.Resource] != nil }

// ShowsResource reports whether clients see a resource.
func (m *Map) ShowsResource(uri string) bool {
	return !m.HidesResources() || m.hidden.Uses(&anybody, policy.Resource, uri)
}
