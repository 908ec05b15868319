package server

import (
	"strconv"

	"github.com/mcpbridge/mcpbridge/internal/config/key"
	"github.com/mcpbridge/mcpbridge/internal/names"
	"github.com/mcpbridge/mcpbridge/internal/trust/policy"
)

// Shown says which tools or prompts of a server clients see, and how. Names are the server's
// own.
type Shown struct {
	Allow    []string          `koanf:"allow" doc:"those that clients see; without it all; * stands for any text, here and below"`
	Deny     []string          `koanf:"deny" doc:"those that clients don't see, whatever the case, even if allow has them"`
	Rename   map[string]string `koanf:"rename" secret:"no" doc:"new names by the server's own ones: clients see and use these alone"`
	Describe map[string]string `koanf:"describe" secret:"no" doc:"descriptions instead of the server's, by its own names or the new ones"`
}

// ShownResources says which resources clients see.
type ShownResources struct {
	Allow []string `koanf:"allow" doc:"URIs of those that clients see; without it all; * stands for any text, here and below"`
	Deny  []string `koanf:"deny" doc:"URIs of those that clients don't see, however they are spelled, even if allow has them"`
}

// Names returns what clients see of the server, and how.
func (s *Options) Names() names.Options {
	return names.Options{Tools: s.Tools.part(), Prompts: s.Prompts.part(), Resources: names.Part{Allow: s.Resources.Allow, Deny: s.Resources.Deny}}
}

func (s *Shown) part() names.Part {
	return names.Part{Allow: s.Allow, Deny: s.Deny, Rename: s.Rename, Describe: s.Describe}
}

// CheckNames finds below path what contradicts itself.
func (s *Options) CheckNames(rep *key.Report, path string) {
	if s.Prefix != "" && !names.IsPrefix(s.Prefix) {
		rep.Fail(key.Join(path, "prefix"), "%q can't begin names that all clients take; write letters, digits, - and single _, not at the end, at most %d", s.Prefix, names.MaxPrefix)
	}
	mistaken, written := false, false
	for _, part := range []struct {
		name        string
		allow, deny []string
	}{
		{"tools", s.Tools.Allow, s.Tools.Deny}, {"prompts", s.Prompts.Allow, s.Prompts.Deny}, {"resources", s.Resources.Allow, s.Resources.Deny},
	} {
		here := key.Join(path, part.name)
		if len(part.allow)+len(part.deny) == 0 && !rep.Written(here) {
			continue // as of nearly all servers, of which there may be many
		}
		written = true
		mistaken = checkPatterns(rep, key.Join(here, "allow"), part.allow) || mistaken
		mistaken = checkPatterns(rep, key.Join(here, "deny"), part.deny) || mistaken
		mistaken = mistaken || rep.Mistaken(here)
	}
	if mistaken || !written {
		return
	}
	o := s.Names()
	_ = o.Check(func(where []string, err error) { rep.Fail(key.Join(path, where...), "%v", err) }) // it is reported
	for i, uri := range s.Resources.Deny {
		if !policy.HasSpellings(uri) {
			rep.Warn(key.Join(path, "resources", "deny", strconv.Itoa(i)), "is a hint: the server may take other spellings of the URI for the same; allow what may be read instead")
			break
		}
	}
}

// checkPatterns reports a list without elements, and elements without a text.
func checkPatterns(rep *key.Report, path string, list []string) (mistaken bool) {
	if rep.Written(path) && len(list) == 0 && !rep.Mistaken(path) {
		rep.Fail(path, "is empty; name something, or remove it; deny: [\"*\"] hides everything")
		return true
	}
	for i, text := range list {
		if text == "" {
			rep.Fail(key.Join(path, strconv.Itoa(i)), "is empty; write a name or a pattern, such as read_*")
			mistaken = true
		}
	}
	return mistaken
}
