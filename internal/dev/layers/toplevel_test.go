package layers

import (
	"bufio"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// What the top level has to have, and which other folders it may have. It may have files
// that are no Go code, too.
var (
	topLevel   = []string{"README.md", "cmd/mcpbridge", "config.example.yaml", "gateway", "go.mod", "go.sum", "index", "legacy", "modern"}
	topFolders = []string{"cmd", "deploy", "docs", "examples", "gateway", "index", "internal", "interop", "legacy", "modern", "packaging"}
)

func TestTopLevel(t *testing.T) {
	t.Chdir(root)
	for _, why := range topLevelFaults(t, os.DirFS(".")) {
		t.Error(why)
	}
}

// TestTopLevelFaults proves that the check can fail.
func TestTopLevelFaults(t *testing.T) {
	dir := &fstest.MapFile{Mode: fs.ModeDir}
	for _, tt := range []struct {
		name    string
		add     string
		as      *fstest.MapFile
		without string
		want    []string
	}{
		{"as it is wanted", "LICENSE", &fstest.MapFile{}, "", nil},
		{"a folder of a name that begins with a dot", ".github", dir, "", nil},
		{"what git ignores", "bin/mcpbridge", &fstest.MapFile{}, "", nil},
		{"a file that git ignores", "cpu.prof", &fstest.MapFile{}, "", nil},
		{"a file of the name of a folder that git ignores", "dist", &fstest.MapFile{}, "", nil},
		{"a Go file", "bridge.go", &fstest.MapFile{}, "", []string{"bridge.go: no Go file lies at the top level"}},
		{"another folder", "pkg", dir, "", []string{"pkg: no folder of the top level"}},
		{"a folder that is gone", "LICENSE", &fstest.MapFile{}, "index", []string{"index: the top level lacks it"}},
		{"a command that is gone", "LICENSE", &fstest.MapFile{}, "cmd/mcpbridge", []string{"cmd/mcpbridge: the top level lacks it"}},
		{"a file that is gone", "LICENSE", &fstest.MapFile{}, "go.sum", []string{"go.sum: the top level lacks it"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tree := fstest.MapFS{".gitignore": {Data: []byte("# what is built\n/bin/\n*.prof\n\n/dist/\n/deploy/secrets/\n")}, tt.add: tt.as}
			for _, name := range topLevel {
				if name == tt.without {
					continue
				}
				if slices.Contains(topFolders, strings.Split(name, "/")[0]) {
					tree[name+"/doc.go"] = &fstest.MapFile{}
				} else {
					tree[name] = &fstest.MapFile{}
				}
			}
			if got := topLevelFaults(t, tree); !slices.Equal(got, tt.want) {
				t.Errorf("topLevelFaults() = %q, want %q", got, tt.want)
			}
		})
	}
}

// topLevelFaults says what of the top level of a tree is not as it has to be, but for what git
// ignores there.
func topLevelFaults(t *testing.T, tree fs.FS) (faults []string) {
	t.Helper()
	for _, name := range topLevel {
		if _, err := fs.Stat(tree, name); err != nil {
			faults = append(faults, name+": the top level lacks it")
		}
	}
	entries, err := fs.ReadDir(tree, ".")
	if err != nil {
		t.Fatal(err)
	}
	ignored := ignoredNames(t, tree)
	for _, e := range entries {
		name := e.Name()
		switch {
		case slices.ContainsFunc(ignored, func(pattern string) bool { ok, _ := path.Match(pattern, name); return ok }):
		case e.IsDir() && name[0] != '.' && !slices.Contains(topFolders, name):
			faults = append(faults, name+": no folder of the top level")
		case !e.IsDir() && path.Ext(name) == ".go":
			faults = append(faults, name+": no Go file lies at the top level")
		}
	}
	return faults
}

// ignoredNames returns the patterns of .gitignore that names of the top level are held
// against. It asks no git, which sources that were unpacked do not have.
func ignoredNames(t *testing.T, tree fs.FS) (patterns []string) {
	t.Helper()
	f, err := tree.Open(".gitignore")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		pattern := strings.Trim(lines.Text(), "/")
		if pattern != "" && pattern[0] != '#' && !strings.Contains(pattern, "/") {
			patterns = append(patterns, pattern)
		}
	}
	return patterns
}
