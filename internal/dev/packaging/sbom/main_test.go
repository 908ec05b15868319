package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"testing"
)

// The bill of a binary, this test's own, has its modules and no others.
func TestBillOfABinary(t *testing.T) {
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(t.TempDir(), "bom.json")
	if err := run(binary, to, "v1.2.3"); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(to)
	if err != nil {
		t.Fatal(err)
	}
	var b bom
	if err := json.Unmarshal(text, &b); err != nil {
		t.Fatal(err)
	}
	uuid := regexp.MustCompile(`^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	if p := b.Metadata.Component; p.Version != "v1.2.3" || len(p.Hashes) != 1 || !uuid.MatchString(b.SerialNumber) {
		t.Errorf("the program is %+v, the document %s", p, b.SerialNumber)
	}
	if len(b.Components) != 1 || b.Components[0].Name != "std" || !slices.Equal(b.Dependencies[0].DependsOn, []string{b.Components[0].Ref}) {
		t.Errorf("components %+v, dependencies %+v; want the standard library alone", b.Components, b.Dependencies)
	}
}

func TestModules(t *testing.T) {
	m := &debug.Module{Path: "example.com/a", Version: "v1.0.0+incompatible", Sum: "h1:x="}
	if got := module(m); got.PURL != "pkg:golang/example.com/a@v1.0.0%2Bincompatible" || got.Properties[0].Value != "h1:x=" {
		t.Errorf("module = %+v", got)
	}
	m.Replace = &debug.Module{Path: "example.com/b", Version: "v2.0.0"}
	if got := module(m); got.Name != "example.com/b" || got.Version != "v2.0.0" || got.Properties != nil {
		t.Errorf("module of a replaced one = %+v, want what replaces it", got)
	}
}

func TestNoBinary(t *testing.T) {
	if err := run("main.go", filepath.Join(t.TempDir(), "bom.json"), ""); err == nil {
		t.Error("a bill of what is no binary")
	}
}
