package config

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/config/key"
	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// eachKey calls f with every key below k and the field of the struct t that it is of.
func eachKey(k *key.Key, t reflect.Type, f func(k *key.Key, in reflect.Type, field reflect.StructField)) {
	for i := range t.NumField() {
		switch field := t.Field(i); {
		case field.Anonymous:
			eachKey(k, field.Type, f)
		default:
			below := k.ByName[field.Tag.Get("koanf")]
			if below == nil {
				continue
			}
			f(below, t, field)
			if in := field.Type; below.Kind == key.Group {
				if below.Optional {
					in = in.Elem()
				}
				eachKey(below, in, f)
			}
			if below.Kind == key.List && below.Each.Kind == key.Group {
				eachKey(below.Each, field.Type.Elem(), f)
			}
			if below.Kind == key.Table {
				eachKey(below.Each, field.Type.Elem(), f)
			}
		}
	}
}

// A tag that nobody reads has no effect, and nobody would notice. Each key says what it
// is, and one that names another names one that exists.
func TestTags(t *testing.T) {
	form := regexp.MustCompile(`^(?:[a-z]+:"(?:[^"\\]|\\.)*"(?: |$))*$`)
	name := regexp.MustCompile(`([a-z]+):"`)
	seen := make(map[string]bool)
	count := 0
	eachKey(schema, reflect.TypeFor[document](), func(k *key.Key, in reflect.Type, field reflect.StructField) {
		count++
		if !form.MatchString(string(field.Tag)) {
			t.Errorf("%v.%s: the tag %s is not readable", in, field.Name, field.Tag)
		}
		for _, m := range name.FindAllStringSubmatch(string(field.Tag), -1) {
			seen[m[1]] = true
			if !slices.Contains(key.Tags, m[1]) {
				t.Errorf("%v.%s: nobody reads the tag %s", in, field.Name, m[1])
			}
		}
		if k.Doc == "" {
			t.Errorf("%v.%s does not say what it is", in, field.Name)
		}
		if k.Owner != "" && serverKey.ByName[k.Owner] == nil || k.Inherits != "" && schema.ByName[k.Inherits] == nil {
			t.Errorf("%v.%s names a key that does not exist", in, field.Name)
		}
	})
	if count < 80 || len(seen) != len(key.Tags) {
		t.Errorf("%d keys have the tags %v, want all of %q", count, seen, key.Tags)
	}
}

// The names of a tag can't be constants.
func TestCachedMethods(t *testing.T) {
	want := []string{
		spec.MethodDiscover, spec.MethodToolsList, spec.MethodPromptsList,
		spec.MethodResourcesList, spec.MethodResourcesTemplates, spec.MethodResourcesRead,
	}
	if got := serverKey.ByName["cache"].Names; !slices.Equal(got, want) {
		t.Errorf("cache has the methods %q, want %q", got, want)
	}
}

// A key that nobody reads has no effect. Whoever reads one selects its field, and of a
// limit what declares it.
func TestKeysAreRead(t *testing.T) {
	read := make(map[string]bool) // fields that are selected
	inFull := []string{".", "*", "../../cmd/mcpbridge", "../../cmd/mcpbridge/internal/options", "../../gateway", "../settings"}
	limited := []string{"../../gateway/internal/router", "../../legacy/front", "../../modern/front", "../mcp", "../upstream"} // have limits as a set
	for _, dir := range slices.Concat(inFull, limited) {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			noteReads(file, read, slices.Contains(limited, dir))
		}
	}
	eachKey(schema, reflect.TypeFor[document](), func(k *key.Key, in reflect.Type, field reflect.StructField) {
		if !read[field.Name] && !read[in.Name()+"()"] {
			t.Errorf("nobody reads %v.%s, so %s has no effect", in, field.Name, k.Name)
		}
	})
}

// noteReads adds the fields that are selected and not assigned to, and with () the types
// that a field of their name is converted to as a whole; or limits alone.
func noteReads(file *ast.File, read map[string]bool, limits bool) {
	assigned := make(map[ast.Node]bool)
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for _, to := range n.Lhs {
				assigned[to] = true
			}
		case *ast.SelectorExpr:
			of, _ := n.X.(*ast.Ident)
			read[n.Sel.Name] = read[n.Sel.Name] || !assigned[n] && (!limits || of != nil && of.Name == "limits")
		case *ast.CallExpr:
			if to, ok := n.Fun.(*ast.SelectorExpr); ok && len(n.Args) == 1 {
				if from, ok := n.Args[0].(*ast.SelectorExpr); ok && from.Sel.Name == to.Sel.Name {
					read[to.Sel.Name+"()"] = true
				}
			}
		}
		return true
	})
}
