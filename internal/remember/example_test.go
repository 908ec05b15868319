package remember_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/remember"
	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// The next run finds the description of a command, unless something on which it depends
// has changed.
func ExampleStore() {
	cache, err := os.MkdirTemp("", "")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(cache)

	store := remember.Open(remember.Options{Dir: filepath.Join(cache, "mcpbridge", "servers"), Logger: slog.Default()})
	server := remember.Server{
		Command:      os.Args[0],
		Args:         []string{"--notes", "/home/ada/notes"},
		Env:          []string{"HOME=/home/ada"},
		Capabilities: json.RawMessage(`{"elicitation":{},"roots":{}}`),
		Principal:    "anonymous",
	}
	key, err := server.Key()
	if err != nil {
		panic(err)
	}
	err = store.Keep(key, remember.Record{
		Era:         spec.Legacy,
		Revisions:   []spec.Revision{spec.Rev20251125},
		Description: &mcp.Description{Capabilities: json.RawMessage(`{"tools":{}}`)},
	})
	if err != nil {
		panic(err)
	}

	server.Capabilities = json.RawMessage(`{"roots": {}, "elicitation": {}}`)
	key, _ = server.Key()
	was, ok := store.Lookup(key)
	fmt.Println(ok, was.Era, was.Revisions, string(was.Description.Capabilities))

	is := was
	is.Description = &mcp.Description{Capabilities: json.RawMessage(`{"tools":{},"prompts":{}}`)}
	fmt.Println(remember.Diff(was, is))

	server.Args[1] = "/home/ada/work"
	key, _ = server.Key()
	_, ok = store.Lookup(key)
	fmt.Println(ok)
	// Output:
	// true legacy [2025-11-25] {"tools":{}}
	// [capabilities]
	// false
}

// Without a home directory nothing is stored, and callers need not check whether there is
// a store.
func ExampleOpen() {
	store := remember.Open(remember.Options{Dir: remember.Dir([]string{"PATH=/usr/bin"})})
	_, ok := store.Lookup(remember.Key{1})
	fmt.Println(store == nil, ok, store.Keep(remember.Key{1}, remember.Record{Era: spec.Modern}))
	// Output: true false <nil>
}
