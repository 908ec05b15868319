package hosts

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"go.yaml.in/yaml/v3"
)

// Any file, for any host, is read without a panic. The lines are lines of the file, and
// the result is YAML with only servers.
func FuzzAdapt(f *testing.F) {
	files, err := filepath.Glob("testdata/*/*.json")
	if err != nil || len(files) == 0 {
		f.Fatal(files, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for pick := range len(All) + 1 {
			f.Add(uint8(pick), data)
		}
	}
	f.Add(uint8(len(All)), []byte(`{"servers":{"a":[],"":{"timeout":{},"env":3,"type":null}},"inputs":[3,{}],"mcp":{"allowed":3},"projects":[]}`))
	f.Add(uint8(0), []byte(`{"mcpServers":{"a\rb":{"x\rlisten: y":1,"command":"z"}},"q\rdrain: 1s":1,"w\u0085x: 1":2,"v\u2028x: 1":2}`))
	hosts := append(slices.Clone(All), Any)
	f.Fuzz(func(t *testing.T, pick uint8, data []byte) {
		if len(data) > 4<<10 {
			return
		}
		root, err := Parse(data)
		if err != nil {
			return
		}
		_ = Guess("x.json", root)
		checkAdapted(t, hosts[int(pick)%len(hosts)], root, data)
	})
}

// checkAdapted checks the result of a host for root, which was parsed from data.
func checkAdapted(t *testing.T, h *Host, root *yaml.Node, data []byte) {
	out, notes := h.Adapt(root, Options{Keys: []string{"command", "args", "env"}, Suggest: func(string) string { return "" }})
	last := bytes.Count(data, []byte("\n")) + 1
	for _, n := range notes {
		if n.Line < 1 || n.Line > last {
			t.Errorf("%s: %+v on line %d of %d", h.Title, n, n.Line, last)
		}
	}
	text, err := YAML(out, notes, "head")
	if err != nil {
		t.Fatal(err)
	}
	var back yaml.Node
	if err := yaml.Unmarshal(text, &back); err != nil {
		t.Errorf("%s makes of %q what is no YAML, %v:\n%s", h.Title, data, err, text)
	} else if top := pairs(back.Content[0]); len(top) != 1 || top[0].name() != "servers" {
		t.Errorf("%s makes of %q more than servers:\n%s", h.Title, data, text)
	}
}
