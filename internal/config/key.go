package config

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/limits"
)

// A kind is the kind of a key's value.
type kind int

const (
	text    kind = iota // a string
	flag                // true or false
	count               // a whole number
	decimal             // a number
	size                // bytes, with an optional unit
	span                // a duration, unit required
	list                // of strings, or of groups
	dict                // string to string, both chosen by the user
	group               // keys named in fields
	table               // names chosen by the user, each with a group of fields
)

// A key describes one key of the configuration.
type key struct {
	name      string
	spellings []string // other names that mean the same
	doc       string
	kind      kind
	def       any // the default, of the value's own type; nil for none
	// ofCommand is the default for servers with a command; nil if it is def.
	ofCommand any
	inherits  string   // the key at the top level whose value is the default
	oneOf     []string // the values that a text may have; empty for any
	min       int64    // least count, bytes or nanoseconds; never negative
	max       int64    // most; 0 for no bound
	secret    bool     // a value may contain a secret
	owner     string   // the key without which a server can't have this one
	hosts     bool     // files of desktop clients also have it
	words     []string // what a group may be instead of keys: see Word
	single    bool     // a list may be one value instead
	optional  bool     // a group without values unless it was written

	fields []*key          // of a group, in the order of the struct
	byName map[string]*key // the fields by name and other spellings
	each   *key            // the key of each element of a list, dict or table
	names  []string        // the names that a table may have; empty for any
	index  int             // the index of a field in its struct
}

// tags are the struct tags that derive reads.
var tags = []string{
	"koanf",    // the key's name; - for none
	"also",     // other spellings of it
	"doc",      // its description
	"default",  // its default, as a user would write it
	"command",  // the default for servers with a command
	"inherits", // the key at the top level whose value is the default
	"min",      // the least value; zero by default
	"max",      // the greatest value
	"enum",     // the values that it may have
	"names",    // the names that a table may have
	"secret",   // no: a text that never contains a secret
	"of",       // command or url: the servers that may have it
	"hosts",    // yes: files of desktop clients also have it
	"single",   // yes: a list may be one value instead
	"word",     // the words that a group may be instead; a field Word holds the one it is
}

// wordKey is the key of the word that a group is instead of keys. Nobody writes it.
const wordKey = "word"

// derive returns the key of values of type t, with the properties in the tag. It panics if
// the tag is invalid.
func derive(t reflect.Type, tag reflect.StructTag) *key {
	words := func(name string) []string { return strings.Fields(tag.Get(name)) }
	k := &key{
		name: tag.Get("koanf"), spellings: words("also"), doc: tag.Get("doc"), kind: kindOf(t),
		inherits: tag.Get("inherits"), oneOf: words("enum"), names: words("names"),
		owner: tag.Get("of"), hosts: tag.Get("hosts") == "yes", words: words("word"),
		single: tag.Get("single") == "yes",
	}
	if k.optional = k.kind == group && t.Kind() == reflect.Pointer; k.optional {
		t = t.Elem()
	}
	switch k.kind {
	case group:
		k.addFields(t)
		if t == reflect.TypeFor[Limits]() {
			k.bound(limits.All())
		}
	case list, dict, table:
		k.each = derive(t.Elem(), "")
		k.each.secret = k.each.secret && tag.Get("secret") != "no"
	}
	k.secret = k.kind == text && len(k.oneOf) == 0 && tag.Get("secret") != "no"
	k.min = number(k.tagged(tag, "min"))
	k.max = number(k.tagged(tag, "max"))
	k.def, k.ofCommand = k.tagged(tag, "default"), k.tagged(tag, "command")
	return k
}

func kindOf(t reflect.Type) kind {
	switch {
	case t == reflect.TypeFor[time.Duration]():
		return span
	case t.Kind() == reflect.Pointer:
		return kindOf(t.Elem())
	case t.Kind() == reflect.Map && t.Elem().Kind() == reflect.Struct:
		return table
	}
	k, ok := map[reflect.Kind]kind{
		reflect.String: text, reflect.Bool: flag, reflect.Int64: count, reflect.Float64: decimal, reflect.Slice: list, reflect.Map: dict, reflect.Struct: group,
	}[t.Kind()]
	if !ok {
		panic(fmt.Sprintf("config: no key can be of type %v", t))
	}
	return k
}

// addFields adds a key for each field of t, including those of embedded structs.
func (k *key) addFields(t reflect.Type) {
	if k.byName == nil {
		k.byName = make(map[string]*key)
	}
	for i := range t.NumField() {
		f := t.Field(i)
		switch name := f.Tag.Get("koanf"); {
		case f.Anonymous:
			k.addFields(f.Type)
		case name != "" && name != "-" && name != wordKey:
			below := derive(f.Type, f.Tag)
			below.index = i
			k.fields = append(k.fields, below)
			for _, spelling := range append(below.spellings, name) {
				k.byName[spelling] = below
			}
		}
	}
}

// bound sets the properties of the keys below k from the declared limits.
func (k *key) bound(all []*limits.Limit) {
	for _, l := range all {
		f := k.byName[l.Key]
		if f == nil {
			panic(fmt.Sprintf("config: no field of Limits is called %s", l.Key))
		}
		f.def, f.min, f.max, f.doc = l.Default, l.Min, l.Max, l.Doc
		if l.Bytes {
			f.kind = size
		}
	}
}

// tagged returns the value of a tag, read as a user's value; nil if there is none.
func (k *key) tagged(tag reflect.StructTag, name string) any {
	s, ok := tag.Lookup(name)
	if !ok {
		return nil
	}
	v, problem := k.read(s, s)
	if problem != "" {
		panic(fmt.Sprintf("config: %s of %s: %s", name, k.name, problem))
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
