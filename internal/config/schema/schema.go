// Package schema answers one question: what does an editor have to know of the configuration
// to help people who write one?
//
// It makes a JSON Schema of what package config says of its keys. It refuses to know a key by
// name.
package schema

import (
	"encoding/json"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/config"
	"github.com/mcpbridge/mcpbridge/internal/config/key"
	"github.com/mcpbridge/mcpbridge/internal/config/layer"
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

// JSON returns the schema, in draft 7, which all editors read.
func JSON() []byte {
	n := group(config.Keys())
	for _, name := range layer.Foreign {
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
func of(k *key.Key) node {
	n := value(k)
	if k.Doc != "" {
		n["description"] = k.Doc
	}
	if d := written(k.Default); d != nil {
		n["default"] = d
	}
	return n
}

func value(k *key.Key) node {
	switch k.Kind {
	case key.Flag:
		return either(node{"type": "boolean"}, truth)
	case key.Count:
		return either(bounded(k, node{"type": "integer"}), integer)
	case key.Decimal:
		return either(bounded(k, node{"type": "number"}), fraction)
	case key.Size:
		return either(node{"type": "integer", "minimum": 0}, amount)
	case key.Span:
		return node{"type": "string", "pattern": duration}
	case key.List:
		return listed(k)
	case key.Dict, key.Table:
		return named(k)
	case key.Group:
		return worded(k)
	}
	return text(k)
}

// either allows a value as it is, and as a text with a pattern.
func either(n node, pattern string) node {
	return node{"anyOf": []node{n, {"type": "string", "pattern": pattern}}}
}

func bounded(k *key.Key, n node) node {
	n["minimum"] = k.Min
	if k.Max > 0 {
		n["maximum"] = k.Max
	}
	return n
}

// text allows a text, and what YAML takes for something else: PORT: 8080.
func text(k *key.Key) node {
	if len(k.OneOf) > 0 {
		return node{"anyOf": []node{{"enum": k.OneOf}, {"type": "string", "pattern": reference}}}
	}
	return node{"type": []string{"string", "number", "boolean"}}
}

// listed allows a list, or one of what it is of where that is as good.
func listed(k *key.Key) node {
	n := node{"type": "array", "items": of(k.Each)}
	if k.Single {
		return node{"anyOf": []node{n, of(k.Each)}}
	}
	return n
}

// named allows names that people choose, or some of those that there are.
func named(k *key.Key) node {
	n := node{"type": "object", "additionalProperties": of(k.Each)}
	if len(k.Names) > 0 {
		n["propertyNames"] = node{"enum": k.Names}
	}
	return n
}

// worded allows a group, or one of the words that stand for one.
func worded(k *key.Key) node {
	if len(k.Words) == 0 {
		return group(k)
	}
	return node{"anyOf": []node{group(k), {"enum": k.Words}}}
}

func group(k *key.Key) node {
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
