package layers

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// steps of docs/architecture.md: `package`: `Type.method`, `Type.method`
var (
	step = regexp.MustCompile("`([a-z0-9/]+)`:\\s((?:`[A-Za-z0-9]+\\.[A-Za-z0-9]+`(?:,\\s|\\sand\\s|,\\sor\\s)?)+)")
	name = regexp.MustCompile("`([A-Za-z0-9]+\\.[A-Za-z0-9]+)`")
)

// What docs/architecture.md names is there.
func TestArchitectureNamesWhatIsThere(t *testing.T) {
	t.Chdir(root)
	text, err := os.ReadFile("docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	methods := make(map[string]map[string]bool) // by folder
	steps := step.FindAllStringSubmatch(string(text), -1)
	if len(steps) < 20 {
		t.Errorf("found %d steps, want those of four ways", len(steps))
	}
	for _, s := range steps {
		if methods[s[1]] == nil {
			methods[s[1]] = methodsOf(t, s[1])
		}
		for _, n := range name.FindAllStringSubmatch(s[2], -1) {
			if !methods[s[1]][n[1]] {
				t.Errorf("%s has no method %s", s[1], n[1])
			}
		}
	}
}

// methodsOf returns the methods that a package has, as Type.method.
func methodsOf(t *testing.T, dir string) map[string]bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s has no Go files (%v)", dir, err)
	}
	found := make(map[string]bool)
	for _, path := range files {
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv != nil && !strings.HasSuffix(path, "_test.go") {
				found[receiver(fn.Recv.List[0].Type)+"."+fn.Name.Name] = true
			}
		}
	}
	return found
}

// receiver returns the name of a receiver's type.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}
