package config

import (
	"reflect"

	"github.com/mcpbridge/mcpbridge/internal/config/key"
	"github.com/mcpbridge/mcpbridge/internal/config/layer"
	"github.com/mcpbridge/mcpbridge/internal/hostfile"
	"github.com/mcpbridge/mcpbridge/internal/limits"
)

// A document is the configuration before the servers are put in order.
type document struct {
	Config  `koanf:",squash"`
	Servers map[string]Server `koanf:"servers" also:"mcpServers" doc:"the servers to serve, by name"`
	Groups  map[string]Group  `koanf:"groups" doc:"groups of servers, each at one endpoint, by name"`
}

// schema is the tree of all keys. A test compares it with config.example.yaml, which
// documents it.
var (
	schema    = keys()
	serverKey = schema.ByName["servers"].Each
)

func keys() *key.Key {
	all := key.Of(reflect.TypeFor[document]())
	all.ByName["limits"].Bound(limits.All())
	return all
}

// Keys returns the tree of all keys, which is a group. Nobody may change it.
func Keys() *key.Key { return schema }

// JSONSchema returns what an editor has to know of the configuration: see [key.Key.JSONSchema].
func JSONSchema() []byte { return schema.JSONSchema(layer.Foreign) }

// Import converts the servers of a host's file to a file of mcpbridge: see [layer.Import].
func Import(h *hostfile.Host, path string, environ []string) ([]byte, error) {
	return layer.Import(h, path, environ, schema)
}

// Moved converts servers of a host's file to a file of mcpbridge that serves them as one: see
// [layer.Moved].
func Moved(h *hostfile.Host, path string, data []byte, servers []string, nameMax int, environ []string) (text []byte, called []string, notes []hostfile.Note, err error) {
	return layer.Moved(h, path, data, servers, nameMax, environ, schema)
}
