package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
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
	checkRecipes(t, blocks)
}

// So are those of the page about groups.
func TestGroupRecipes(t *testing.T) {
	text, err := os.ReadFile("../../docs/groups.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := fence.FindAllStringSubmatch(string(text), -1)
	if len(blocks) != 4 {
		t.Errorf("%d configurations, want the first one, and three recipes", len(blocks))
	}
	checkRecipes(t, blocks)
}

func checkRecipes(t *testing.T, blocks [][]string) {
	t.Helper()
	environ := []string{"HOME=/home/me", "DOCS_TOKEN=secret-token", "INPUT_DOCS_TOKEN=secret-token", "CRM_SECRET=s", "WIKI_TOKEN=t"}
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

var (
	commandRow  = regexp.MustCompile("(?m)^\\| (`mcpbridge [^|]*(?:\\\\\\|[^|]*)*)\\|")
	commandName = regexp.MustCompile("`(?:mcpbridge )?([a-z]+)[ `]")
	withoutJSON = regexp.MustCompile("(?s) all except (.*?)\\s+have `--json`")
)

// The README has a row for each command that people see, and says which have --json.
func TestReadmeCommands(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	names := func(found [][]string) (names []string) {
		for _, f := range found {
			for _, name := range commandName.FindAllStringSubmatch(f[1], -1) {
				names = append(names, name[1])
			}
		}
		slices.Sort(names)
		return slices.Compact(names) // wrap has two rows
	}
	root := process{args: []string{"mcpbridge"}}.commands()
	root.InitDefaultCompletionCmd()
	var visible, without []string
	for _, c := range root.Commands() {
		if c.IsAvailableCommand() || c.HasAvailableSubCommands() {
			visible = append(visible, c.Name())
			if c.Flags().Lookup("json") == nil {
				without = append(without, c.Name())
			}
		}
	}
	if got := names(commandRow.FindAllStringSubmatch(string(text), -1)); !slices.Equal(got, visible) {
		t.Errorf("README has rows for %q, want the commands %q", got, visible)
	}
	if got := names(withoutJSON.FindAllStringSubmatch(string(text), -1)); !slices.Equal(got, without) {
		t.Errorf("README says that %q have no --json, want %q", got, without)
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
	for _, page := range append(append(pages, more...), "../../README.md", "../../CONTRIBUTING.md") {
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
