//go:build schemas

package projection

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// A published schema is that of one revision: draft 7 until 2025-06-18, 2020-12
// since. Its definitions moved with the draft.
type published struct {
	compiler *jsonschema.Compiler
	prefix   string // of a definition's URL
	has      map[string]json.RawMessage
}

// publishedFolder returns where REVISION.json and examples lie. Only make interop
// has them, and builds these tests; they fail without.
func publishedFolder(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("MCP_SCHEMAS")
	if dir == "" {
		t.Fatal("MCP_SCHEMAS does not name the folder of the published schemas")
	}
	return dir
}

func readPublished(t *testing.T, rev spec.Revision) *published {
	t.Helper()
	name := string(rev) + ".json"
	text, err := os.ReadFile(filepath.Join(publishedFolder(t), name))
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	p := &published{compiler: jsonschema.NewCompiler(), prefix: name + "#/$defs/"}
	p.compiler.AssertFormat()
	if err := p.compiler.AddResource(name, doc); err != nil {
		t.Fatal(err)
	}
	var parts struct{ Definitions, Defs map[string]json.RawMessage }
	if err := json.Unmarshal(bytes.Replace(text, []byte(`"$defs"`), []byte(`"defs"`), 1), &parts); err != nil {
		t.Fatal(err)
	}
	if p.has = parts.Defs; p.has == nil {
		p.has, p.prefix = parts.Definitions, name+"#/definitions/"
	}
	return p
}

// check holds JSON against a definition.
func (p *published) check(definition string, text []byte) error {
	sch, err := p.compiler.Compile(p.prefix + definition)
	if err != nil {
		return err
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return fmt.Errorf("%w: %s", err, text)
	}
	if err := sch.Validate(v); err != nil {
		return fmt.Errorf("%w: %s", err, text)
	}
	return nil
}

// examples returns those that are published for a definition, by name.
func examples(t *testing.T, definition string) map[string][]byte {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(publishedFolder(t), "examples", "2026-07-28", definition, "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no examples of %s: %v", definition, err)
	}
	out := make(map[string][]byte)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		out[definition+"/"+filepath.Base(file)] = text
	}
	return out
}
