package hostfile

import (
	"slices"
	"strings"

	"github.com/tailscale/hujson"
	"go.yaml.in/yaml/v3"
)

// masked replaces a value that is not shown.
const masked = "***"

// secretKeys are the keys of servers whose values are not shown.
var secretKeys = []string{"env", "headers", "http_headers"}

// Masked returns a file of the host as it may be shown: without the values of variables and
// headers, without the queries of URLs, and without the texts of settings that are not of servers.
// It returns nothing of what can't be read.
func (h *Host) Masked(data []byte) []byte {
	if h == codex {
		f, err := parseTOML(data)
		if err != nil {
			return nil
		}
		return apply(data, f.masks(f.settings))
	}
	v, err := parse(data)
	if err != nil {
		return nil
	}
	for _, m := range members(&v) {
		maskMember(m)
	}
	return v.Pack()
}

// maskMember masks what is not of servers.
func maskMember(m *hujson.ObjectMember) {
	if table, ok := m.Value.Value.(*hujson.Object); ok && isTable(nameOf(m)) {
		for _, server := range membersOf(table) {
			for _, m := range members(&server.Value) {
				maskValue(&m.Value, slices.Contains(secretKeys, nameOf(m)))
			}
		}
		return
	}
	if inner := members(&m.Value); len(inner) > 0 {
		for _, m := range inner {
			maskMember(m)
		}
		return
	}
	maskValue(&m.Value, true)
}

// maskValue masks the texts in a value: all of them, or the queries of URLs.
func maskValue(v *hujson.Value, all bool) {
	switch inner := v.Value.(type) {
	case *hujson.Object:
		for _, m := range membersOf(inner) {
			maskValue(&m.Value, all)
		}
	case *hujson.Array:
		for i := range inner.Elements {
			maskValue(&inner.Elements[i], all)
		}
	case hujson.Literal:
		if inner.Kind() == '"' {
			v.Value = hujson.String(maskText(inner.String(), all))
		}
	}
}

// maskText masks a text, or the query of a URL in it.
func maskText(s string, all bool) string {
	if all {
		return masked
	}
	if url, _, ok := strings.Cut(s, "?"); ok && strings.Contains(url, "://") {
		return url + "?" + masked
	}
	return s
}

// masks returns the changes that mask settings.
func (f *tomlFile) masks(settings []*setting) (hunks []hunk) {
	for _, s := range settings {
		all := s.path[0] != codexTable || len(s.path) > 3 && slices.Contains(secretKeys, s.path[2])
		switch {
		case s.header:
		case len(s.inner) > 0:
			hunks = append(hunks, f.masks(s.inner)...)
		case all && (s.node.Kind != yaml.ScalarNode || s.node.Tag == "!!str"):
			hunks = append(hunks, hunk{s.value, s.to, tomlText(masked)})
		case s.node.Tag == "!!str" && maskText(s.node.Value, false) != s.node.Value:
			hunks = append(hunks, hunk{s.value, s.to, tomlText(maskText(s.node.Value, false))})
		}
	}
	return hunks
}
