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
	"time"

	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// eachKey calls f with every key below k and the field of the struct t that it is of.
func eachKey(k *key, t reflect.Type, f func(k *key, in reflect.Type, field reflect.StructField)) {
	for i := range t.NumField() {
		switch field := t.Field(i); {
		case field.Anonymous:
			eachKey(k, field.Type, f)
		default:
			below := k.byName[field.Tag.Get("koanf")]
			if below == nil {
				continue
			}
			f(below, t, field)
			if in := field.Type; below.kind == group {
				if below.optional {
					in = in.Elem()
				}
				eachKey(below, in, f)
			}
			if below.kind == list && below.each.kind == group {
				eachKey(below.each, field.Type.Elem(), f)
			}
			if below.kind == table {
				eachKey(below.each, field.Type.Elem(), f)
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
	eachKey(schema, reflect.TypeFor[document](), func(k *key, in reflect.Type, field reflect.StructField) {
		count++
		if !form.MatchString(string(field.Tag)) {
			t.Errorf("%v.%s: the tag %s is not readable", in, field.Name, field.Tag)
		}
		for _, m := range name.FindAllStringSubmatch(string(field.Tag), -1) {
			seen[m[1]] = true
			if !slices.Contains(tags, m[1]) {
				t.Errorf("%v.%s: nobody reads the tag %s", in, field.Name, m[1])
			}
		}
		if k.doc == "" {
			t.Errorf("%v.%s does not say what it is", in, field.Name)
		}
		if k.owner != "" && serverKey.byName[k.owner] == nil || k.inherits != "" && schema.byName[k.inherits] == nil {
			t.Errorf("%v.%s names a key that does not exist", in, field.Name)
		}
	})
	if count < 80 || len(seen) != len(tags) {
		t.Errorf("%d keys have the tags %v, want all of %q", count, seen, tags)
	}
}

func TestDerive(t *testing.T) {
	root := derive(reflect.TypeFor[struct {
		Name  string               `koanf:"name" also:"title" enum:"a b" default:"b" doc:"what it is"`
		Count int64                `koanf:"count" min:"2" max:"9" default:"3" command:"4"`
		Wait  *time.Duration       `koanf:"wait" max:"1h"`
		All   map[string]CacheHint `koanf:"all" names:"x y"`
		None  string               `koanf:"-"`
		other string
	}](), "")
	if got, want := root.spelled(), []string{"all", "count", "name", "title", "wait"}; !reflect.DeepEqual(got, want) {
		t.Errorf("keys are %q, want %q", got, want)
	}
	if k := root.byName["title"]; k.name != "name" || k.kind != text || k.def != "b" || k.secret || k.doc != "what it is" {
		t.Errorf("title is %+v", k)
	}
	if k := root.byName["count"]; k.kind != count || k.def != int64(3) || k.ofCommand != int64(4) || k.min != 2 || k.max != 9 {
		t.Errorf("count is %+v", k)
	}
	if k := root.byName["wait"]; k.kind != span || k.def != nil || k.min != 0 || k.max != int64(time.Hour) {
		t.Errorf("wait is %+v", k)
	}
	if k := root.byName["all"]; k.kind != table || !slices.Equal(k.names, []string{"x", "y"}) || k.each.byName["scope"] == nil {
		t.Errorf("all is %+v", k)
	}
}

// A tag that says what can't be is found when the program starts, and so by any test.
func TestDerivePanics(t *testing.T) {
	for _, typ := range []reflect.Type{
		reflect.TypeFor[struct {
			A int64 `koanf:"a" default:"x"`
		}](),
		reflect.TypeFor[struct {
			A string `koanf:"a" enum:"b c" default:"d"`
		}](),
		reflect.TypeFor[struct {
			A time.Duration `koanf:"a" min:"2s" default:"1s"`
		}](),
		reflect.TypeFor[struct {
			A int64 `koanf:"a" min:"2" max:"1"`
		}](),
		reflect.TypeFor[struct {
			A float32 `koanf:"a"`
		}](),
	} {
		func() {
			defer func() {
				if why, ok := recover().(string); !ok || !strings.HasPrefix(why, "config: ") {
					t.Errorf("derive(%v) panics with %q, want a mistake in a tag", typ, why)
				}
			}()
			derive(typ, "")
		}()
	}
}

// The names of a tag can't be constants.
func TestCachedMethods(t *testing.T) {
	want := []string{
		spec.MethodDiscover, spec.MethodToolsList, spec.MethodPromptsList,
		spec.MethodResourcesList, spec.MethodResourcesTemplates, spec.MethodResourcesRead,
	}
	if got := serverKey.byName["cache"].names; !slices.Equal(got, want) {
		t.Errorf("cache has the methods %q, want %q", got, want)
	}
}

// A key that nobody reads has no effect. Whoever reads one selects its field, and of a
// limit what declares it.
func TestKeysAreRead(t *testing.T) {
	read := make(map[string]bool) // fields that are selected
	for _, dir := range []string{".", "*", "../../cmd/mcpbridge", "../../cmd/mcpbridge/internal/options", "../.."} {
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
			noteReads(file, read)
		}
	}
	eachKey(schema, reflect.TypeFor[document](), func(k *key, in reflect.Type, field reflect.StructField) {
		if !read[field.Name] && !read[in.Name()+"()"] {
			t.Errorf("nobody reads %v.%s, so %s has no effect", in, field.Name, k.name)
		}
	})
}

// noteReads adds the fields that are selected and not assigned to, and with () the types
// that a field of their name is converted to as a whole.
func noteReads(file *ast.File, read map[string]bool) {
	assigned := make(map[ast.Node]bool)
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for _, to := range n.Lhs {
				assigned[to] = true
			}
		case *ast.SelectorExpr:
			read[n.Sel.Name] = read[n.Sel.Name] || !assigned[n]
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
