package config

import (
	"maps"
	"slices"
)

// A Description describes a key of the configuration to those who generate something from it.
type Description struct {
	Name      string
	Spellings []string // other names that mean the same
	Doc       string
	Kind      string // text, flag, count, decimal, size, span, list, dict, group or table
	Default   any    // of the value's own type; nil for none
	OneOf     []string
	Min, Max  int64         // of a count or decimal; 0 for no bound
	Single    bool          // a list may be one value instead
	Words     []string      // what a group may be instead of keys
	Names     []string      // that a table may have; empty for any
	Fields    []Description // of a group
	Each      *Description  // of a list, dict or table
}

var kindNames = [...]string{"text", "flag", "count", "decimal", "size", "span", "list", "dict", "group", "table"}

// Keys returns the whole configuration, which is a group.
func Keys() Description { return schema.describe() }

// Foreign returns the keys of desktop clients' files that have no meaning here.
func Foreign() []string { return slices.Clone(foreign) }

func (k *key) describe() Description {
	out := Description{Name: k.name, Spellings: k.spellings, Doc: k.doc, Kind: kindNames[k.kind], Default: k.def, OneOf: k.oneOf,
		Min: k.min, Max: k.max, Single: k.single, Words: k.words, Names: k.names}
	for _, f := range k.fields {
		out.Fields = append(out.Fields, f.describe())
	}
	if k.each != nil {
		each := k.each.describe()
		out.Each = &each
	}
	return out
}

// Spelled returns the names of a key, in order.
func (k *Description) Spelled() []string {
	all := map[string]bool{k.Name: true}
	for _, name := range k.Spellings {
		all[name] = true
	}
	return slices.Sorted(maps.Keys(all))
}
