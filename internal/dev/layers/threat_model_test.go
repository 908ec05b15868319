package layers

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	// proof is a test that docs/threat-model.md names.
	proof = regexp.MustCompile("`(Test[A-Za-z0-9_]+)`")
	// testFunc is the beginning of a test.
	testFunc = regexp.MustCompile(`(?m)^func (Test[A-Za-z0-9_]+)\(`)
)

// Each line of docs/threat-model.md that says what somebody can't do names tests, and what
// the page names is there.
func TestThreatModelNamesItsTests(t *testing.T) {
	t.Chdir(root)
	text, err := os.ReadFile("docs/threat-model.md")
	if err != nil {
		t.Fatal(err)
	}
	tests, claims, inTable := testNames(t), 0, false
	for line := range strings.Lines(string(text)) {
		proofs := proof.FindAllStringSubmatch(line, -1)
		for _, p := range proofs {
			if !tests[p[1]] {
				t.Errorf("there is no test %s", p[1])
			}
		}
		switch {
		case strings.HasSuffix(line, "| test |\n"):
			inTable = true
		case !strings.HasPrefix(line, "|"):
			inTable = false
		case inTable && !strings.HasPrefix(line, "| ---"):
			if claims++; len(proofs) == 0 {
				t.Errorf("no test is named in %s", line)
			}
		}
	}
	if claims < 15 {
		t.Errorf("found %d claims, want those of three tables", claims)
	}
}

// testNames returns the names of all tests of the module.
func testNames(t *testing.T) map[string]bool {
	t.Helper()
	names := make(map[string]bool)
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && isMade(filepath.ToSlash(path)) {
			return filepath.SkipDir
		}
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, f := range testFunc.FindAllSubmatch(text, -1) {
			names[string(f[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}
