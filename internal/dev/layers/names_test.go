package layers

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// No two types of a package differ by case alone: a reader would take one for the other.
func TestTypesDifferByMoreThanCase(t *testing.T) {
	t.Chdir(root)
	seen := make(map[string]string) // by package and lower-case name
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "interop" || d.Name() == "testdata" || isMade(path)):
			return filepath.SkipDir
		case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, d := range f.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.TYPE {
				continue
			}
			for _, s := range g.Specs {
				name := s.(*ast.TypeSpec).Name.Name
				key := filepath.Dir(path) + " " + strings.ToLower(name)
				if other := seen[key]; other != "" && other != name {
					t.Errorf("%s has the types %s and %s", filepath.Dir(path), other, name)
				}
				seen[key] = name
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
