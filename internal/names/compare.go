package names

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/mcpbridge/mcpbridge/internal/trust/policy"
)

// Compare holds the options against the own names of all tools, or all prompts, that a server
// has. It returns, for people, what of the options is about nothing, and what clashes.
func (o *Options) Compare(k policy.Kind, own []string) (found []string) {
	m, err := New(*o)
	if err != nil {
		return []string{err.Error()}
	}
	p := o.part(k)
	for _, list := range []struct {
		member   string
		patterns []string
		deny     bool
	}{{"allow", p.Allow, false}, {"deny", p.Deny, true}} {
		for _, text := range list.patterns {
			if !slices.ContainsFunc(own, matches(k, text, list.deny)) {
				found = append(found, fmt.Sprintf("%ss.%s: the server has no %s %q", k, list.member, k, text))
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.Rename)) {
		if !slices.Contains(own, name) {
			found = append(found, fmt.Sprintf("%ss.rename: the server has no %s %q", k, k, name))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.Describe)) {
		if !slices.Contains(own, p.owner(name)) {
			found = append(found, fmt.Sprintf("%ss.describe: the server has no %s %q", k, k, name))
		}
	}
	for _, name := range own {
		if _, err := m.Shown(k, name); err != nil && !errors.Is(err, ErrHidden) {
			found = append(found, err.Error())
		}
	}
	return found
}

// matches returns what reports whether a pattern of Allow or Deny matches a name.
func matches(k policy.Kind, pattern string, deny bool) func(string) bool {
	part := Part{Allow: []string{pattern}}
	if deny {
		part = Part{Deny: []string{pattern}}
	}
	var o Options
	*o.part(k) = part
	p := o.hidden()
	return func(name string) bool { return p.Uses(&anybody, k, name) != deny }
}
