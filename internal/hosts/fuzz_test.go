package hosts

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"go.yaml.in/yaml/v3"
)

// Whatever a file holds, it is read without a panic, its lines are lines of the file,
// and what is made of it is YAML, of servers alone.
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
		f.Add(data)
	}
	f.Add([]byte(`{"servers":{"a":[],"":{"timeout":{},"env":3,"type":null}},"inputs":[3,{}],"mcp":{"allowed":3},"projects":[]}`))
	f.Add([]byte(`{"mcpServers":{"a\rb":{"x\rlisten: y":1,"command":"z"}},"q\rdrain: 1s":1,"w\u0085x: 1":2,"v\u2028x: 1":2}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		root, err := Parse(data)
		if err != nil {
			return
		}
		last := bytes.Count(data, []byte("\n")) + 1
		for _, h := range append(All, Any) {
			again, _ := Parse(data) // Adapt may change it
			out, notes := h.Adapt(again, Options{Keys: []string{"command", "args", "env"}, Suggest: func(string) string { return "" }})
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
		_ = Guess("x.json", root)
	})
}
