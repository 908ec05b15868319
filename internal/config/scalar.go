package config

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/mcpbridge/mcpbridge/internal/config/expand"
	"github.com/mcpbridge/mcpbridge/internal/config/form"
	"github.com/mcpbridge/mcpbridge/internal/config/problem"
	"github.com/mcpbridge/mcpbridge/internal/config/secret"
	"github.com/mcpbridge/mcpbridge/internal/hosts"
)

// scalar expands the variables in n, and reads it as a value of k.
func (w *walker) scalar(n *yaml.Node, k *key, path string) (any, bool) {
	if n.Kind != yaml.ScalarNode {
		w.rep.FailAt(w.place(n), path, "want a single value; found %s", describe(n))
		return nil, false
	}
	if n.Tag == "!!null" {
		w.rep.FailAt(w.place(n), path, "has no value; remove the key, or write \"\" for an empty one")
		return nil, false
	}
	s := n.Value
	if w.scope != nil {
		expanded, err := w.noting(k).Expand(s)
		if err != nil {
			if !w.disabled {
				w.rep.FailAt(w.place(n), path, "%v", err)
			}
			return nil, false
		}
		s = expanded
	}
	v, problem := k.read(s, w.quote(n))
	if problem != "" {
		w.rep.FailAt(w.place(n), path, "%s", problem)
		return nil, false
	}
	return v, true
}

// noting returns the scope with a note that collects values which may be secrets of k.
func (w *walker) noting(k *key) *expand.Scope {
	sc := *w.scope
	sc.Note = func(variable, value string) {
		if k.secret && !secret.IsCommon(variable) {
			w.rep.Expanded = append(w.rep.Expanded, value)
		}
	}
	return &sc
}

// quote returns n as messages show it: as it was written, never expanded.
func (w *walker) quote(n *yaml.Node) string {
	if w.private {
		return "the value"
	}
	if len(n.Value) > 40 {
		return strconv.Quote(n.Value[:40]) + "…"
	}
	return strconv.Quote(n.Value)
}

// read converts s to a value of k. problem is the error, in which quoted stands for s.
func (k *key) read(s, quoted string) (v any, problem string) {
	switch k.kind {
	case flag:
		return readFlag(s, quoted)
	case count:
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			return nil, quoted + " is not a whole number"
		}
		return n, k.within(n, quoted, func(n int64) string { return strconv.FormatInt(n, 10) })
	case decimal:
		return k.readDecimal(s, quoted)
	case size:
		n, ok := form.ParseSize(s)
		if !ok {
			return nil, quoted + " is not a size; write one such as 65536, 64KiB or 4MiB"
		}
		return n, k.within(n, quoted, form.Size)
	case span:
		return k.readSpan(s, quoted)
	}
	return k.readText(s, quoted)
}

func readFlag(s, quoted string) (any, string) {
	switch strings.ToLower(s) {
	case "true":
		return true, ""
	case "false":
		return false, ""
	}
	return nil, quoted + " is neither true nor false"
}

func (k *key) readText(s, quoted string) (any, string) {
	if len(k.oneOf) == 0 || slices.Contains(k.oneOf, s) {
		return s, ""
	}
	return nil, fmt.Sprintf("%s is unknown; write %s", quoted, problem.Either(k.oneOf))
}

var bareNumber = regexp.MustCompile(`^[+-]?[0-9]+(\.[0-9]+)?$`)

// readSpan requires a unit: `drain: 10` could be understood as nanoseconds or as seconds.
func (k *key) readSpan(s, quoted string) (any, string) {
	d, err := time.ParseDuration(s)
	if err != nil && bareNumber.MatchString(s) {
		return nil, quoted + " has no unit; write one such as 300ms, 10s or 5m"
	}
	if err != nil {
		return nil, quoted + " is not a duration; write one such as 300ms, 10s or 5m"
	}
	return d, k.within(int64(d), quoted, func(n int64) string { return hosts.DurationText(time.Duration(n)) })
}

func (k *key) readDecimal(s, quoted string) (any, string) {
	f, err := strconv.ParseFloat(s, 64)
	switch {
	case err != nil || math.IsNaN(f) || math.IsInf(f, 0) || f < 0:
		return nil, quoted + " is not a number; write one such as 10 or 0.5"
	case k.max > 0 && f > float64(k.max):
		return nil, fmt.Sprintf("%s is too large; write at most %d", quoted, k.max)
	}
	return f, ""
}

func (k *key) within(n int64, quoted string, show func(int64) string) string {
	switch {
	case n < k.min:
		return fmt.Sprintf("%s is too small; write at least %s", quoted, show(k.min))
	case k.max > 0 && n > k.max:
		return fmt.Sprintf("%s is too large; write at most %s", quoted, show(k.max))
	}
	return ""
}
