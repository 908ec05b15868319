package server

import (
	"errors"
	"maps"
	"net/url"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/mcpbridge/mcpbridge/internal/config/key"
	"github.com/mcpbridge/mcpbridge/internal/hostfile"
	"github.com/mcpbridge/mcpbridge/internal/spec"
)

var nameForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// isName reports whether a server or a group can have a name.
func isName(text string) bool { return len(text) <= 64 && nameForm.MatchString(text) }

// CheckName checks the name of a server, which may be disabled.
func (s *Options) CheckName(rep *key.Report) {
	if !isName(s.Name) {
		rep.Fail(key.Join("servers", s.Name), "a server's name is part of its endpoint's path; use letters, digits, dots, - and _, at most 64")
	}
}

// A checker checks what is below path.
type checker struct {
	*Options
	rep  *key.Report
	path string
}

// Check checks what is below path, apart from credentials and access. A server has the keys
// below of.
func (s *Options) Check(rep *key.Report, path string, of *key.Key) {
	c := checker{s, rep, path}
	c.transport(of)
	if s.URL != "" {
		c.url()
	}
	if s.Command != "" && !s.Disabled && rep.InFile(path) {
		c.command()
	}
	for name := range s.Env {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.Contains(s.Env[name], "\x00") {
			rep.Fail(key.Join(path, "env"), "contains a variable with an empty name, = in its name, or a zero byte; correct or remove it")
		}
	}
	c.extensions()
	c.roots()
	c.cache()
	if t := s.Timeouts; t.Request > t.Max {
		rep.Fail(key.Join(path, "timeouts"), "request (%s) is longer than max (%s); max bounds a request whatever its progress", hostfile.DurationText(t.Request), hostfile.DurationText(t.Max))
	}
}

// command warns of what can't be started as it is written. It may be there when it is started.
func (c checker) command() {
	here := key.Join(c.path, "command")
	first, rest, spaced := strings.Cut(strings.TrimSpace(c.Command), " ")
	isHome, isLine := strings.HasPrefix(c.Command, "~/"), spaced && !strings.ContainsAny(first, `/\`)
	switch {
	case !isHome && !isLine, isProgram(c.Command): // few are looked for, which takes a while
	case isHome:
		c.rep.Warn(here, "~ is not expanded here; write ${HOME}%s", c.Command[1:])
	default:
		c.rep.Warn(here, "there is no program of this name; write its arguments apart: command: %s, args: [%s]", first, strings.Join(strings.Fields(rest), ", "))
	}
	if strings.HasPrefix(c.Cwd, "~") {
		c.rep.Warn(key.Join(c.path, "cwd"), "~ is not expanded here; write ${HOME}%s", c.Cwd[1:])
	}
}

// isProgram reports whether there is a program of that name at the moment.
func isProgram(name string) bool {
	_, err := exec.LookPath(name)
	return err == nil || errors.Is(err, exec.ErrDot)
}

// extensions checks extensions.hide. The tasks extension has a key of its own.
func (c checker) extensions() {
	for i, name := range c.Extensions.Hide {
		here := key.Join(c.path, "extensions", "hide", strconv.Itoa(i))
		switch name {
		case "":
			c.rep.Fail(here, "is empty; write an extension's name, such as io.modelcontextprotocol/ui, or remove it")
		case spec.ExtensionTasks:
			c.rep.Fail(here, "hides the extension alone, and not the methods of tasks; remove it, and set tasks: off for the server")
		}
	}
}

// roots checks that roots are file URIs. Spec: 2025-11-25, client/roots, Root.
func (c checker) roots() {
	for i, root := range c.Roots {
		u, err := url.Parse(root)
		if err != nil || u.Scheme != "file" || !strings.HasPrefix(u.Path, "/") || strings.ContainsFunc(root, func(r rune) bool { return r <= ' ' }) {
			c.rep.Fail(key.Join(c.path, "roots", strconv.Itoa(i)), "is not a file URI; write one such as file:///home/ada/notes, a space as %%20")
		}
	}
}

// cache finds methods with keep: true whose results the gateway can't cache.
func (c checker) cache() {
	for _, method := range slices.Sorted(maps.Keys(c.Cache)) {
		h := c.Cache[method]
		if h.Keep == nil || !*h.Keep || h.Keepable(method) {
			continue
		}
		here := key.Join(c.path, "cache", method, "keep")
		if method == spec.MethodDiscover {
			c.rep.Fail(here, "the gateway answers %s itself, so there is nothing to cache; remove it", method)
		} else {
			c.rep.Fail(here, "the gateway caches only public results, for their ttl; set scope: public and a ttl, or remove it")
		}
	}
}
