package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var fence = regexp.MustCompile("(?ms)^```(json|yaml)\n(.*?)^```$")

// The configurations in the README are taken as they stand there.
func TestReadmeRecipes(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := fence.FindAllStringSubmatch(string(text), -1)
	if len(blocks) != 4 {
		t.Errorf("%d configurations, want those of Claude Desktop, VS Code, Cursor and mcpbridge", len(blocks))
	}
	environ := []string{"HOME=/home/me", "DOCS_TOKEN=secret-token", "INPUT_DOCS_TOKEN=secret-token"}
	for _, b := range blocks {
		path := filepath.Join(t.TempDir(), "config."+b[1])
		if err := os.WriteFile(path, []byte(b[2]), 0o600); err != nil {
			t.Fatal(err)
		}
		got := runCommand(t.Context(), environ, "check", path)
		if got.code != 0 || !strings.Contains(got.out, "can be used.") {
			t.Errorf("check of\n%s= %d, %s%s", b[2], got.code, got.out, got.err)
		}
	}
}

var link = regexp.MustCompile(`\]\(([^)#:]+)(?:#[^)]*)?\)`)

// Links between pages lead somewhere.
func TestDocsLinks(t *testing.T) {
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("no pages: %v", err)
	}
	more, err := filepath.Glob("../../docs/*/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range append(append(pages, more...), "../../README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(page), m[1])); err != nil {
				t.Errorf("%s links to %s, which is not there", page, m[1])
			}
		}
	}
}
