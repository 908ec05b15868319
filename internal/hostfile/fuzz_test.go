package hostfile

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"testing"

	"github.com/tailscale/hujson"
	"go.yaml.in/yaml/v3"
)

// maxFuzzed is as long as a file of a few servers.
const maxFuzzed = 2 << 10

// FuzzAdapt checks that any file, for any host, is read without a panic, that the lines are
// lines of the file, and that the result is YAML with only servers.
func FuzzAdapt(f *testing.F) {
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // nearly all of the heap is garbage
	files, err := filepath.Glob("testdata/*/*.json")
	if err != nil || len(files) == 0 {
		f.Fatal(files, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		addFile(f, data)
	}
	f.Add(uint8(len(All)), []byte(`{"servers":{"a":[],"":{"timeout":{},"env":3,"type":null}},"inputs":[3,{}],"mcp":{"allowed":3},"projects":[]}`))
	f.Add(uint8(0), []byte(`{"mcpServers":{"a\rb":{"x\rlisten: y":1,"command":"z"}},"q\rdrain: 1s":1,"w\u0085x: 1":2,"v\u2028x: 1":2}`))
	hosts := append(slices.Clone(All), Any)
	f.Fuzz(func(t *testing.T, pick uint8, data []byte) {
		if len(data) > maxFuzzed {
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

var indent = regexp.MustCompile(`\n[\t ]+`)

// addFile adds a host's file without its indentation, and each of its servers and other
// objects alone, for every host: an execution takes as long as its file is.
func addFile(f *testing.F, data []byte) {
	data = indent.ReplaceAll(data, []byte("\n"))
	whole, err := hujson.Parse(data)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(uint8(len(All)), data)
	for _, part := range whole.Value.(*hujson.Object).Members {
		inner, ok := part.Value.Value.(*hujson.Object)
		if !ok {
			continue
		}
		for i := range inner.Members {
			one := []hujson.ObjectMember{inner.Members[i]}
			alone := hujson.Value{Value: &hujson.Object{Members: []hujson.ObjectMember{{Name: part.Name, Value: hujson.Value{Value: &hujson.Object{Members: one}}}}}}
			for pick := range len(All) + 1 {
				f.Add(uint8(pick), alone.Pack())
			}
		}
	}
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
