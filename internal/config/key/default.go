package key

// A setting contains the configured values, without defaults, on which the default of a key
// may depend.
type setting struct {
	root  *Key           // of all keys
	top   map[string]any // all values
	entry map[string]any // those of the server, or of the entry of a table below it; or top
	here  map[string]any // those beside the key
	// further leaves out the defaults that every entry has.
	further bool
}

// at returns the setting of what is below a name.
func (s setting) at(name string) (below setting, given bool) {
	s.here, given = s.here[name].(map[string]any)
	return s, given
}

// Defaults returns the defaults of the keys below k, which has the given values; for a table
// those of the entries that are configured.
func (k *Key) Defaults(given map[string]any) map[string]any {
	return k.defaults(setting{root: k, top: given, entry: given, here: given})
}

// EntryDefaults returns the defaults of the keys below k, which is that of each entry of a table,
// for the given entry. root is the key of all keys, of which top has the values at the top. With
// further they are only those that it has on account of what is given: of optional groups, and of
// entries of tables; the others are the same for all entries with a command, and for all others.
func (k *Key) EntryDefaults(root *Key, top, given map[string]any, further bool) map[string]any {
	return k.defaults(setting{root: root, top: top, entry: given, here: given, further: further})
}

func (k *Key) defaults(s setting) map[string]any {
	out := make(map[string]any)
	for _, f := range k.Fields {
		switch below, given := s.at(f.Name); {
		case f.Kind == Group && (f.Optional || s.further) && !given:
		case f.Kind == Group:
			below.further = s.further && !f.Optional
			if all := f.defaults(below); len(all) > 0 || !below.further {
				out[f.Name] = all
			}
		case f.Kind == Table && given:
			t := make(map[string]any, len(below.here))
			for name, v := range below.here {
				entry, _ := v.(map[string]any)
				t[name] = f.Each.defaults(setting{root: s.root, top: s.top, entry: entry, here: entry})
			}
			out[f.Name] = t
		case s.further:
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
