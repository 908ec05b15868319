package config

import (
	"maps"
	"reflect"
	"slices"
)

// A document is the configuration before the servers are put in order.
type document struct {
	Config  `koanf:",squash"`
	Servers map[string]Server `koanf:"servers" also:"mcpServers" doc:"the servers to serve, by name"`
}

// schema is the tree of all keys. A test compares it with config.example.yaml, which
// documents it.
var (
	schema    = derive(reflect.TypeFor[document](), "")
	serverKey = schema.byName["servers"].each
)

// foreign are keys of desktop clients' files that have no meaning for a gateway. Users copy
// them, so they are warnings, and not errors like other unknown keys.
var foreign = []string{
	"$schema", "alwaysAllow", "autoApprove", "chat", "description", "dev", "disabledTools", "excludeTools", "gallery",
	"globalShortcut", "icon", "includeTools", "inputs", "preferences", "trust", "version", "watchPaths",
}

// instead maps keys of desktop clients' servers to the keys of mcpbridge with the same
// meaning. In a client's own file they are read directly.
var instead = map[string]string{
	"httpUrl":       "url, and type: http",
	"transportType": "type",
	"enabled":       "disabled",
	"headersHelper": "headers",
	"oauth":         "a token below headers, as Authorization",
}

// serverKeys returns the keys of a server, for which there is a better error than "unknown
// key" if they are at the top level.
func serverKeys() []string { return serverKey.spelled() }

// spelled returns all spellings of the keys of a group, in order.
func (k *key) spelled() []string { return slices.Sorted(maps.Keys(k.byName)) }

// A setting contains the configured values, without defaults, on which the default of a key
// may depend.
type setting struct {
	top   map[string]any // all values
	entry map[string]any // those of the server, or of the entry of a table below it; or top
	here  map[string]any // those beside the key
}

// at returns the setting of what is below a name.
func (s setting) at(name string) (below setting, given bool) {
	s.here, given = s.here[name].(map[string]any)
	return s, given
}

// defaults returns the defaults of the keys below k; for a table those of the entries that
// are configured.
func (k *key) defaults(s setting) map[string]any {
	out := make(map[string]any)
	for _, f := range k.fields {
		switch below, given := s.at(f.name); {
		case f.kind == group && f.optional && !given:
		case f.kind == group:
			out[f.name] = f.defaults(below)
		case f.kind == table && given:
			t := make(map[string]any, len(below.here))
			for name, v := range below.here {
				entry, _ := v.(map[string]any)
				t[name] = f.each.defaults(setting{s.top, entry, entry})
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

// defaultIn returns the default of k in s, nil for none.
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
