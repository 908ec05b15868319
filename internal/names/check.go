package names

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/mcpbridge/mcpbridge/internal/trust/policy"
)

// toolForm and maxTool are what all clients take as the name of a tool. A bound in the expression
// would take memory for each character, from the start of every program.
//
// Spec: 2026-07-28, server/tools, Tool Names.
var toolForm = regexp.MustCompile(`^[A-Za-z0-9_.-]+$`)

const maxTool = 128

// Check finds what contradicts itself. It passes each mistake to report, with where it is: the
// member of Options and of Part, and the name. With a nil report it returns the first one.
func (o *Options) Check(report func(where []string, err error)) (first error) {
	members := map[policy.Kind]string{policy.Tool: "tools", policy.Prompt: "prompts", policy.Resource: "resources"}
	hidden := o.hidden()
	for _, k := range kinds {
		c := checker{k: k, p: o.part(k), hidden: hidden}
		c.fail = func(member, name string, format string, args ...any) {
			where := []string{members[k], member}
			if name != "" {
				where = append(where, name)
			}
			err := fmt.Errorf(format, args...)
			if report != nil {
				report(where, err)
			} else if first == nil {
				first = fmt.Errorf("%s: %w", strings.Join(where, "."), err)
			}
		}
		c.check()
	}
	return first
}

// A checker checks one part.
type checker struct {
	k      policy.Kind
	p      *Part
	hidden *policy.Policy
	fail   func(member, name, format string, args ...any)
}

func (c *checker) check() {
	if c.p.Allow != nil && len(c.p.Allow) == 0 {
		c.fail("allow", "", "is empty, and would hide everything; name something, remove it, or write deny: [\"*\"]")
		return
	}
	if c.k == policy.Resource && len(c.p.Rename)+len(c.p.Describe) > 0 {
		c.fail("rename", "", "resources keep their URIs and descriptions; remove it")
		return
	}
	c.renames()
	c.descriptions()
}

// renames finds names that could not be used, and those that two things would have.
func (c *checker) renames() {
	taken := make(map[string]string)
	folded := make(map[string]string)
	for _, own := range slices.Sorted(maps.Keys(c.p.Rename)) {
		shown := c.p.Rename[own]
		switch {
		case own == "":
			c.fail("rename", "", "has an empty name; write the server's own one")
		case c.k == policy.Tool && (len(shown) > maxTool || !toolForm.MatchString(shown)):
			c.fail("rename", own, "%q is not a name that clients take: letters, digits, _, - and dots, at most 128", shown)
		case shown == "" || strings.ContainsFunc(shown, func(r rune) bool { return r < ' ' || r == 0x7f }):
			c.fail("rename", own, "%q is not a name; write one without control characters", shown)
		case shown == own:
			c.fail("rename", own, "has that name already; remove it")
		case c.hides(own):
			c.fail("rename", own, "is hidden by allow and deny, which are about the server's own names; let it be shown, or remove this")
		case taken[shown] != "":
			c.fail("rename", own, "%q would be the name of %q, too; give one of them another name", shown, taken[shown])
		case c.shows(shown) && c.p.Rename[shown] == "":
			c.fail("rename", own, "%q is the name of something else, which allow shows; give it another name, or rename that, too", shown)
		case folded[policy.Fold(own)] != "":
			c.fail("rename", own, "and %q differ only in case, so that a server may take one for the other; rename one of them", folded[policy.Fold(own)])
		}
		taken[shown], folded[policy.Fold(own)] = own, own
	}
}

func (c *checker) descriptions() {
	taken := make(map[string]string)
	for _, name := range slices.Sorted(maps.Keys(c.p.Describe)) {
		own := c.p.owner(name)
		switch {
		case c.p.Describe[name] == "":
			c.fail("describe", name, "is empty; write a description, or remove it")
		case taken[own] != "":
			c.fail("describe", name, "is described as %q, too, which is another name of the same; remove one of them", taken[own])
		case c.hides(own):
			c.fail("describe", name, "is hidden by allow and deny, which are about the server's own names; let it be shown, or remove this")
		}
		taken[own] = name
	}
}

// shows reports whether Allow names something, without a star, so that the server has it.
func (c *checker) shows(own string) bool { return slices.Contains(c.p.Allow, own) && !c.hides(own) }

func (c *checker) hides(own string) bool { return !c.hidden.Uses(&anybody, c.k, own) }
