package firststart

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"github.com/mcpbridge/mcpbridge/interop/internal/match"
)

// A server is one of the matrix of clients and servers, on its pipes.
type server struct {
	argv  []string
	env   map[string]string
	tools map[string]bool
	call  json.RawMessage // the params of a call of one of its tools
	want  any             // and a pattern for the result
}

// fromMatrix returns a server whose files are in dir.
func fromMatrix(t *testing.T, name, dir string) *server {
	t.Helper()
	text, err := os.ReadFile("../../matrix/table.json")
	if err != nil {
		t.Fatal(err)
	}
	var table struct {
		Servers map[string]struct {
			Backs map[string]struct {
				Argv []string
				Env  map[string]string
			}
			Tools []string
			Call  struct {
				Params json.RawMessage
				Want   any
			}
		}
	}
	text = []byte(fill(string(text), "{dir}", dir, "{cell}", "first start"))
	if err := json.Unmarshal(text, &table); err != nil {
		t.Fatal(err)
	}
	in, ok := table.Servers[name]
	if !ok || in.Call.Params == nil || len(in.Tools) == 0 {
		t.Fatalf("the matrix has no server %q with tools and a call", name)
	}
	s := &server{argv: in.Backs["stdio"].Argv, env: in.Backs["stdio"].Env, tools: make(map[string]bool), call: in.Call.Params, want: in.Call.Want}
	for _, tool := range in.Tools {
		s.tools[tool] = true
	}
	return s
}

// command is what starts the server with its variables, which clients don't pass on.
func (s *server) command() []string {
	argv := []string{"/usr/bin/env"}
	for name, value := range s.env {
		argv = append(argv, name+"="+value)
	}
	return append(argv, s.argv...)
}

// lists says how a result of tools/list is not the server's.
func (s *server) lists(result any) error {
	list, _ := result.(map[string]any)
	tools, _ := list["tools"].([]any)
	if len(tools) != len(s.tools) {
		return fmt.Errorf("tools/list: %d tools, want %d: %s", len(tools), len(s.tools), match.Brief(result))
	}
	for _, tool := range tools {
		tool, _ := tool.(map[string]any)
		if name, _ := tool["name"].(string); !s.tools[name] {
			return fmt.Errorf("tools/list: the tool %q is not the server's", name)
		}
	}
	return nil
}
