package layers

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// The API of the public packages names no other package of this module: nobody else could
// use its types.
func TestAPINamesNoOtherPackage(t *testing.T) {
	t.Chdir(root)
	var files []string
	for _, dir := range []string{"gateway", "gateway/replicas/nats", "gateway/replicas/redis"} {
		found, err := filepath.Glob(dir + "/*.go")
		if err != nil || len(found) == 0 {
			t.Fatalf("%s has no Go files (%v)", dir, err)
		}
		files = append(files, found...)
	}
	exported := 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ours := modulePackages(f)
		for _, part := range exportedParts(f) {
			exported++
			ast.Inspect(part, func(n ast.Node) bool {
				if sel, ok := n.(*ast.SelectorExpr); ok {
					if pkg, ok := sel.X.(*ast.Ident); ok && ours[pkg.Name] {
						t.Errorf("%s: the API names %s.%s", name, pkg.Name, sel.Sel.Name)
					}
				}
				return true
			})
		}
	}
	if exported < 20 {
		t.Errorf("found %d exported parts, want those of the public packages", exported)
	}
}

// modulePackages returns the names by which a file refers to packages of this module.
func modulePackages(f *ast.File) map[string]bool {
	names := make(map[string]bool)
	for _, spec := range f.Imports {
		path, _ := strconv.Unquote(spec.Path.Value) // it was parsed
		if !strings.HasPrefix(path, module) {
			continue
		}
		name := path[strings.LastIndexByte(path, '/')+1:]
		if spec.Name != nil {
			name = spec.Name.Name
		}
		names[name] = true
	}
	return names
}

// exportedParts returns what of a file other packages can see: signatures, types of fields,
// of variables and constants.
func exportedParts(f *ast.File) (parts []ast.Node) {
	for _, decl := range f.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() && (d.Recv == nil || ast.IsExported(receiver(d.Recv.List[0].Type))) {
				parts = append(parts, d.Type)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				parts = append(parts, exportedSpec(spec)...)
			}
		}
	}
	return parts
}

func exportedSpec(spec ast.Spec) (parts []ast.Node) {
	switch s := spec.(type) {
	case *ast.TypeSpec:
		fields, isStruct := s.Type.(*ast.StructType)
		switch {
		case !s.Name.IsExported():
		case !isStruct:
			parts = append(parts, s.Type)
		default:
			for _, field := range fields.Fields.List {
				if len(field.Names) == 0 || field.Names[0].IsExported() {
					parts = append(parts, field.Type)
				}
			}
		}
	case *ast.ValueSpec:
		if s.Names[0].IsExported() && s.Type != nil {
			parts = append(parts, s.Type)
		}
	}
	return parts
}
