package layers

import (
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

const (
	guide         = "CONTRIBUTING.md"
	maxGuideLines = 150
)

var (
	// code is what stands between backquotes.
	code = regexp.MustCompile("`([^`\n]+)`")
	// notThere are the words with a slash that are no path of the tree.
	notThere = []string{"cmd/mcpbridge/NAME.go", "testing/synctest"}
	// mapped are the folders of which the guide names each one below.
	mapped = []string{".", "gateway/internal", "internal", "internal/dev", "interop"}
)

func TestContributing(t *testing.T) {
	t.Chdir(root)
	for _, why := range guideFaults(t, os.DirFS(".")) {
		t.Error(why)
	}
}

// TestContributingFaults proves that the check can fail.
func TestContributingFaults(t *testing.T) {
	tree := fstest.MapFS{
		"index/index.go": {}, "gateway/internal/hub/hub.go": {}, "internal/wire/id.go": {}, "internal/dev/fuzz": {}, "interop/bin/built": {}, "interop/odd/main.go": {}, ".git/HEAD": {}, ".gitignore": {Data: []byte("/interop/bin/\n")},
	}
	const named = "`index` `gateway` `internal` `interop` `gateway/internal/hub` `internal/wire` `internal/dev` `interop/odd`"
	for _, tt := range []struct {
		name, text string
		want       []string
	}{
		{"as it is wanted", named + " `index/index.go`, `go test ./internal/wire -run ID`", nil},
		{"a path that is gone", named + " `index/tree.go`", []string{"CONTRIBUTING.md names index/tree.go, which is not there"}},
		{"a folder that is gone in a command", named + " `go test ./internal/wires/...`", []string{"CONTRIBUTING.md names internal/wires, which is not there"}},
		{"a folder without a word", strings.ReplaceAll(named, "`interop/odd`", ""), []string{"CONTRIBUTING.md does not name interop/odd"}},
		{"too long", named + strings.Repeat("\n", maxGuideLines+1), []string{"CONTRIBUTING.md has 151 lines, the limit is 150"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tree[guide] = &fstest.MapFile{Data: []byte(tt.text)}
			if got := guideFaults(t, tree); !slices.Equal(got, tt.want) {
				t.Errorf("guideFaults() = %q, want %q", got, tt.want)
			}
		})
	}
}

// guideFaults says what of the guide for contributors is not true of a tree.
func guideFaults(t *testing.T, tree fs.FS) (faults []string) {
	t.Helper()
	text, err := fs.ReadFile(tree, guide)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), "\n"); n > maxGuideLines {
		faults = append(faults, fmt.Sprintf("%s has %d lines, the limit is %d", guide, n, maxGuideLines))
	}
	var named []string
	for _, c := range code.FindAllStringSubmatch(string(text), -1) {
		for word := range strings.FieldsSeq(c[1]) {
			path := strings.TrimSuffix(strings.TrimPrefix(strings.TrimRight(word, ":,"), "./"), "/...")
			named = append(named, path)
			if !strings.Contains(path, "/") && !strings.HasSuffix(path, ".md") && !strings.HasSuffix(path, ".yaml") || slices.Contains(notThere, path) {
				continue
			}
			if _, err := fs.Stat(tree, path); err != nil {
				faults = append(faults, guide+" names "+path+", which is not there")
			}
		}
	}
	return append(faults, unnamed(t, tree, named)...)
}

// unnamed says which folders the guide does not name, nor anything in them.
func unnamed(t *testing.T, tree fs.FS, named []string) (faults []string) {
	t.Helper()
	ignored, err := fs.ReadFile(tree, ".gitignore")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range mapped {
		entries, err := fs.ReadDir(tree, dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			path := strings.TrimPrefix(dir+"/"+e.Name(), "./")
			isNamed := slices.ContainsFunc(named, func(n string) bool { return n == path || strings.HasPrefix(n, path+"/") })
			if e.IsDir() && e.Name()[0] != '.' && !isNamed && !strings.Contains(string(ignored), "/"+path+"/") {
				faults = append(faults, guide+" does not name "+path)
			}
		}
	}
	return faults
}
