package rules

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const root = "../../.."

// Each due rule lists the packages that implement it, and each of these has a test that
// names the rule.
func TestWhereHolds(t *testing.T) {
	doc, err := os.Open(filepath.Join(root, "docs/rules.md"))
	if err != nil {
		t.Fatal(err)
	}
	defer doc.Close()
	list, err := ReadList(doc)
	if err != nil {
		t.Fatal(err)
	}
	named := make(map[string][]string) // ids by folder
	for _, rule := range list {
		if rule.Due && len(rule.Where) == 0 {
			t.Errorf("%s names no package", rule.ID)
		}
		for _, dir := range rule.Where {
			if _, ok := named[dir]; !ok {
				named[dir] = idsIn(t, filepath.Join(root, dir))
			}
			if !slices.Contains(named[dir], rule.ID) {
				t.Errorf("%s names %s, which has no test of that id", rule.ID, dir)
			}
		}
	}
}

// idsIn returns the rule ids in the names of tests and in other texts of the test files
// of a folder.
func idsIn(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil || len(files) == 0 {
		t.Errorf("%s has no tests (%v)", dir, err)
	}
	var ids []string
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if strings.HasPrefix(n.Name.Name, "Test") {
					ids = append(ids, IDs(n.Name.Name)...)
				}
			case *ast.BasicLit:
				if text, err := strconv.Unquote(n.Value); err == nil && n.Kind == token.STRING {
					ids = append(ids, IDs(text)...)
				}
			}
			return true
		})
	}
	return ids
}
