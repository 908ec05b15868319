package key

// A setting contains the configured values, without defaults, on which the default of a key
// may depend.
type setting struct {
	root  *Key           // of all keys
	top   map[string]any // all values
	entry map[string]any // those of the server, or of the entry of a table below it; or top
	here  map[string]any // those beside the key
}

// at returns the setting of what is below a name.
func (s setting) at(name string) (below setting, given bool) {
	s.here, given = s.here[name].(map[string]any)
	return s, given
}

// Defaults returns the defaults of the keys below k, which has the given values; for a table
// those of the entries that are configured.
func (k *Key) Defaults(given map[string]any) map[string]any {
	return k.defaults(setting{k, given, given, given})
}

func (k *Key) defaults(s setting) map[string]any {
	out := make(map[string]any)
	for _, f := range k.Fields {
		switch below, given := s.at(f.Name); {
		case f.Kind == Group && f.Optional && !given:
		case f.Kind == Group:
			out[f.Name] = f.defaults(below)
		case f.Kind == Table && given:
			t := make(map[string]any, len(below.here))
			for name, v := range below.here {
				entry, _ := v.(map[string]any)
				t[name] = f.Each.defaults(setting{s.root, s.top, entry, entry})
			}
			out[f.Name] = t
		default:
			if v := f.defaultIn(s); v != nil {
				out[f.Name] = v
			}
		}
	}
	return out
}

// defaultIn returns the default of k in s, nil for none.
func (k *Key) defaultIn(s setting) any {
	command, _ := s.entry["command"].(string)
	switch {
	case k.Inherits != "":
		if v, given := s.top[k.Inherits]; given {
			return v
		}
		return s.root.ByName[k.Inherits].Default
	case k.OfCommand != nil && command != "":
		return k.OfCommand
	}
	return k.Default
}
