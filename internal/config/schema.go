package config

import (
	"maps"
	"reflect"
	"slices"
)

// A document is what the layers hold together, before the servers have an order.
type document struct {
	Config  `koanf:",squash"`
	Servers map[string]Server `koanf:"servers" also:"mcpServers" doc:"the servers to serve, by name"`
}

// schema is the tree of every key. config.example.yaml documents it and a test holds
// the two together.
var (
	schema    = derive(reflect.TypeFor[document](), "")
	serverKey = schema.byName["servers"].each
)

// foreign names keys of desktop clients' files that mean nothing to a
// gateway. Users copy them into files of ours, so these warn where others are errors.
var foreign = []string{
	"$schema", "alwaysAllow", "autoApprove", "chat", "description", "dev", "disabledTools", "excludeTools", "gallery",
	"globalShortcut", "icon", "includeTools", "inputs", "preferences", "trust", "version", "watchPaths",
}

// instead maps keys of desktop clients' servers to what says the same in a file of
// ours. In a client's own file they are read as they are.
var instead = map[string]string{
	"httpUrl":       "url, and type: http",
	"transportType": "type",
	"enabled":       "disabled",
	"headersHelper": "headers",
	"oauth":         "a token below headers, as Authorization",
	"auth":          "a token below headers, as Authorization",
}

// serverKeys are keys that belong to a server; found at the top level they
// deserve a better word than "unknown".
func serverKeys() []string { return serverKey.spelled() }

// spelled returns the names of the keys of a group, all spellings, in order.
func (k *key) spelled() []string { return slices.Sorted(maps.Keys(k.byName)) }

// A setting is what was given, without defaults, where a key stands: what its default
// may depend on.
type setting struct {
	top   map[string]any // all that was given
	entry map[string]any // of a server, or of a table below it; top elsewhere
}

// defaults returns the values that the keys below k have in s when nobody sets them; of
// a table for the names that s has there.
func (k *key) defaults(s setting) map[string]any {
	out := make(map[string]any)
	for _, f := range k.fields {
		switch entries, given := s.entry[f.name].(map[string]any); {
		case f.kind == group:
			out[f.name] = f.defaults(s)
		case f.kind == table && given:
			t := make(map[string]any, len(entries))
			for name, v := range entries {
				entry, _ := v.(map[string]any)
				t[name] = f.each.defaults(setting{s.top, entry})
			}
			out[f.name] = t
		default:
			if v := f.defaultIn(s); v != nil {
				out[f.name] = v
			}
		}
	}
	return out
}

// defaultIn returns the value that k has in s when nobody sets it, nil for none.
func (k *key) defaultIn(s setting) any {
	command, _ := s.entry["command"].(string)
	switch {
	case k.inherits != "":
		if v, given := s.top[k.inherits]; given {
			return v
		}
		return schema.byName[k.inherits].def
	case k.ofCommand != nil && command != "":
		return k.ofCommand
	}
	return k.def
}
