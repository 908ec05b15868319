package key

import (
	"encoding/json"
	"time"
)

// A node is a schema, or a part of one. encoding/json writes its members in order.
type node map[string]any

// Patterns of what a value may be written as. A reference is replaced before it is read.
const (
	reference = `\$\{`
	duration  = `^([0-9]+(\.[0-9]+)?|\.[0-9]+)(ns|us|µs|ms|s|m|h)(([0-9]+(\.[0-9]+)?|\.[0-9]+)(ns|us|µs|ms|s|m|h))*$|^0$|` + reference
	amount    = `^[0-9]+ *(GiB|MiB|KiB|GB|MB|kB|KB|B)?$|` + reference
	integer   = `^[0-9]+$|` + reference
	fraction  = `^[0-9]+(\.[0-9]+)?$|` + reference
	truth     = `^([Tt]rue|TRUE|[Ff]alse|FALSE)$|` + reference
)

// JSONSchema returns what an editor has to know of the keys below k, a group, to help people
// who write them: a JSON Schema in draft 7, which all editors read. The foreign names are of
// keys without a meaning that may also be there.
func (k *Key) JSONSchema(foreign []string) []byte {
	n := group(k)
	for _, name := range foreign {
		properties := n["properties"].(node)
		if properties[name] == nil {
			properties[name] = node{}
		}
	}
	n["$schema"], n["title"] = "http://json-schema.org/draft-07/schema#", "Configuration of mcpbridge"
	text, _ := json.MarshalIndent(n, "", "  ") // it is made of maps and texts
	return append(text, '\n')
}

// of returns the schema of a key's value, with its description.
func of(k *Key) node {
	n := value(k)
	if k.Doc != "" {
		n["description"] = k.Doc
	}
	if d := written(k.Default); d != nil {
		n["default"] = d
	}
	return n
}

func value(k *Key) node {
	switch k.Kind {
	case Flag:
		return either(node{"type": "boolean"}, truth)
	case Count:
		return either(bounded(k, node{"type": "integer"}), integer)
	case Decimal:
		return either(bounded(k, node{"type": "number"}), fraction)
	case Size:
		return either(node{"type": "integer", "minimum": 0}, amount)
	case Span:
		return node{"type": "string", "pattern": duration}
	case List:
		return listed(k)
	case Dict, Table:
		return worded(k, named(k))
	case Group:
		return worded(k, shortened(k, group(k)))
	}
	return text(k)
}

// either allows a value as it is, and as a text with a pattern.
func either(n node, pattern string) node {
	return node{"anyOf": []node{n, {"type": "string", "pattern": pattern}}}
}

func bounded(k *Key, n node) node {
	n["minimum"] = k.Min
	if k.Max > 0 {
		n["maximum"] = k.Max
	}
	return n
}

// text allows a text, and what YAML takes for something else: PORT: 8080.
func text(k *Key) node {
	if len(k.OneOf) > 0 {
		return node{"anyOf": []node{{"enum": k.OneOf}, {"type": "string", "pattern": reference}}}
	}
	return node{"type": []string{"string", "number", "boolean"}}
}

// listed allows a list, or one of what it is of where that is as good.
func listed(k *Key) node {
	n := node{"type": "array", "items": of(k.Each)}
	if k.Single {
		return node{"anyOf": []node{n, of(k.Each)}}
	}
	return n
}

// named allows names that people choose, or some of those that there are.
func named(k *Key) node {
	n := node{"type": "object", "additionalProperties": of(k.Each)}
	if len(k.Names) > 0 {
		n["propertyNames"] = node{"enum": k.Names}
	}
	return n
}

// worded allows n, or one of the words that stand for one.
func worded(k *Key, n node) node {
	if len(k.Words) == 0 {
		return n
	}
	return node{"anyOf": []node{n, {"enum": k.Words}}}
}

// shortened allows n, or the value of the one key that may stand for it.
func shortened(k *Key, n node) node {
	if k.Short == "" {
		return n
	}
	return node{"anyOf": []node{n, value(k.ByName[k.Short])}}
}

func group(k *Key) node {
	properties := make(node)
	for name, f := range k.ByName {
		properties[name] = of(f)
	}
	return node{"type": "object", "properties": properties, "additionalProperties": false}
}

// written returns a default as people write it; nil for none.
func written(def any) any {
	if d, ok := def.(time.Duration); ok {
		return d.String()
	}
	return def
}
