// Package key has the tree of keys of the configuration, which is derived from the types and
// tags of the structs that hold the values; their JSON Schema; the paths of keys; and the
// mistakes in them: where each one is, and what to write instead.
//
// It knows no key by name.
package key

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/limits"
)

// A Kind is the kind of a key's value.
type Kind int

const (
	Text    Kind = iota // a string
	Flag                // true or false
	Count               // a whole number
	Decimal             // a number
	Size                // bytes, with an optional unit
	Span                // a duration, unit required
	List                // of strings, or of groups
	Dict                // string to string, both chosen by the user
	Group               // keys named in fields
	Table               // names chosen by the user, each with a group of fields
)

// A Key describes one key of the configuration.
type Key struct {
	Name      string
	Spellings []string // other names that mean the same
	Doc       string
	Kind      Kind
	Default   any // of the value's own type; nil for none
	// OfCommand is the default for servers with a command; nil if it is Default.
	OfCommand any
	Inherits  string // the key at the top level whose value is the default
	Range
	Secret   bool     // a value may contain a secret
	Owner    string   // the key without which a server can't have this one
	Hosts    bool     // files of desktop clients also have it
	Words    []string // what a group or a dict may be instead of keys: see Word
	Single   bool     // a list may be one value instead
	Short    string   // the key below a group that one value in the group's place sets
	Optional bool     // a group without values unless it was written

	Below
	Index []int // of the field in its struct, by way of those that are embedded
}

// Below has the keys below a group, list, dict or table.
type Below struct {
	Fields []*Key          // of a group, in the order of the struct
	ByName map[string]*Key // the fields by name and other spellings
	Each   *Key            // the key of each element of a list, dict or table
	Names  []string        // the names that a table or a dict may have; empty for any
}

// A Range has the values that a key may have.
type Range struct {
	OneOf []string // the texts; empty for any
	Min   int64    // least count, bytes or nanoseconds; never negative
	Max   int64    // most; 0 for no bound
}

// Tags are the struct tags that derive reads.
var Tags = []string{
	"koanf",    // the key's name; - for none
	"also",     // other spellings of it
	"doc",      // its description
	"default",  // its default, as a user would write it
	"command",  // the default for servers with a command
	"inherits", // the key at the top level whose value is the default
	"min",      // the least value; zero by default
	"max",      // the greatest value
	"enum",     // the values that it may have, or of a dict each of them
	"names",    // the names that a table or a dict may have
	"secret",   // no: a text that never contains a secret
	"of",       // command or url: the servers that may have it
	"hosts",    // yes: files of desktop clients also have it
	"single",   // yes: a list may be one value instead
	"word",     // the words that a group or a dict may be instead: see Word
	"short",    // the key below a group that one value in the group's place sets
}

// Word is the key of the word that a group or a dict is instead of keys: a group has a field of
// that name. Nobody writes it.
const Word = "word"

// Of returns the tree of the keys that are fields of t. It panics if a tag is invalid.
func Of(t reflect.Type) *Key { return derive(t, "") }

// derive returns the key of values of type t, with the properties in the tag.
func derive(t reflect.Type, tag reflect.StructTag) *Key {
	words := func(name string) []string { return strings.Fields(tag.Get(name)) }
	k := &Key{
		Name: tag.Get("koanf"), Spellings: words("also"), Doc: tag.Get("doc"), Kind: kindOf(t),
		Inherits: tag.Get("inherits"), Range: Range{OneOf: words("enum")}, Below: Below{Names: words("names")},
		Owner: tag.Get("of"), Hosts: tag.Get("hosts") == "yes", Words: words("word"),
		Single: tag.Get("single") == "yes", Short: tag.Get("short"),
	}
	if k.Optional = k.Kind == Group && t.Kind() == reflect.Pointer; k.Optional {
		t = t.Elem()
	}
	switch k.Kind {
	case Group:
		k.addFields(t, nil)
	case List, Dict, Table:
		k.Each = derive(t.Elem(), "")
		k.Each.Secret = k.Each.Secret && tag.Get("secret") != "no"
		k.Each.OneOf, k.OneOf = k.OneOf, nil
		k.Each.Secret = k.Each.Secret && len(k.Each.OneOf) == 0
	}
	k.Secret = k.Kind == Text && len(k.OneOf) == 0 && tag.Get("secret") != "no"
	k.Min = number(k.tagged(tag, "min"))
	k.Max = number(k.tagged(tag, "max"))
	k.Default, k.OfCommand = k.tagged(tag, "default"), k.tagged(tag, "command")
	return k
}

func kindOf(t reflect.Type) Kind {
	switch {
	case t == reflect.TypeFor[time.Duration]():
		return Span
	case t.Kind() == reflect.Pointer:
		return kindOf(t.Elem())
	case t.Kind() == reflect.Map && t.Elem().Kind() == reflect.Struct:
		return Table
	}
	k, ok := map[reflect.Kind]Kind{
		reflect.String: Text, reflect.Bool: Flag, reflect.Int64: Count, reflect.Float64: Decimal, reflect.Slice: List, reflect.Map: Dict, reflect.Struct: Group,
	}[t.Kind()]
	if !ok {
		panic(fmt.Sprintf("config: no key can be of type %v", t))
	}
	return k
}

// addFields adds a key for each field of t, including those of embedded structs. What t is
// itself embedded in has it at an index.
func (k *Key) addFields(t reflect.Type, at []int) {
	if k.ByName == nil {
		k.ByName = make(map[string]*Key)
	}
	for i := range t.NumField() {
		f := t.Field(i)
		switch name := f.Tag.Get("koanf"); {
		case f.Anonymous:
			k.addFields(f.Type, slices.Concat(at, f.Index))
		case name != "" && name != "-" && name != Word:
			below := derive(f.Type, f.Tag)
			below.Index = slices.Concat(at, f.Index)
			k.Fields = append(k.Fields, below)
			for _, spelling := range append(below.Spellings, name) {
				k.ByName[spelling] = below
			}
		}
	}
}

// Bound sets the properties of the keys below k from the declared limits.
func (k *Key) Bound(all []*limits.Limit) {
	for _, l := range all {
		f := k.ByName[l.Key]
		if f == nil {
			panic(fmt.Sprintf("config: no field is called %s", l.Key))
		}
		f.Default, f.Min, f.Max, f.Doc = l.Default, l.Min, l.Max, l.Doc
		if l.Bytes {
			f.Kind = Size
		}
	}
}

// tagged returns the value of a tag, read as a user's value; nil if there is none.
func (k *Key) tagged(tag reflect.StructTag, name string) any {
	s, ok := tag.Lookup(name)
	if !ok {
		return nil
	}
	v, problem := k.Read(s, s)
	if problem != "" {
		panic(fmt.Sprintf("config: %s of %s: %s", name, k.Name, problem))
	}
	return v
}

// number returns a bound as a number for comparisons.
func number(bound any) int64 {
	switch b := bound.(type) {
	case time.Duration:
		return int64(b)
	case float64:
		return int64(b)
	}
	n, _ := bound.(int64)
	return n
}

// Spelled returns all spellings of the keys of a group, in order.
func (k *Key) Spelled() []string { return slices.Sorted(maps.Keys(k.ByName)) }
