package layers

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// printing says which calls write text for people. They belong to
// cmd/mcpbridge/internal/output, which takes what could steer a terminal out of it.
func printing(pkg, name string) bool {
	switch pkg {
	case "fmt":
		return strings.HasPrefix(name, "Fprint") || strings.HasPrefix(name, "Print")
	case "log":
		return strings.HasPrefix(name, "Print") || strings.HasPrefix(name, "Fatal") || strings.HasPrefix(name, "Panic")
	case "io":
		return name == "WriteString"
	case "slog":
		return name == "NewTextHandler" || name == "NewJSONHandler"
	case "tint":
		return true
	}
	return false
}

// outputs are the fields and parameters of commands that lead to a terminal.
var outputs = []string{"stdout", "stderr", "Out", "Progress", "progress", "screen", "tw", "out", "w"}

// streams are the files that may name the standard streams: one hands them to the commands,
// one compares, one writes records of JSON.
var streams = []string{"cmd/mcpbridge/main.go", "gateway/gateway.go", "internal/trust/audit/log.go"}

// faults returns what in a file writes past the output package.
func faults(path string, f *ast.File) (found []string) {
	command := strings.HasPrefix(path, "cmd/mcpbridge/")
	ast.Inspect(f, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if call, isCall := n.(*ast.CallExpr); isCall {
			if id, isIdent := call.Fun.(*ast.Ident); isIdent && (id.Name == "print" || id.Name == "println") {
				found = append(found, id.Name)
			}
		}
		if !ok {
			return true
		}
		from := ""
		switch x := sel.X.(type) {
		case *ast.Ident:
			from = x.Name
		case *ast.SelectorExpr:
			from = x.Sel.Name
		}
		switch {
		case from == "os" && (sel.Sel.Name == "Stdout" || sel.Sel.Name == "Stderr") && !slices.Contains(streams, path),
			command && printing(from, sel.Sel.Name),
			!command && (from == "fmt" || from == "log") && !strings.HasPrefix(sel.Sel.Name, "F") && printing(from, sel.Sel.Name),
			command && slices.Contains(outputs, from) && (sel.Sel.Name == "Write" || sel.Sel.Name == "WriteString"):
			found = append(found, from+"."+sel.Sel.Name)
		}
		return true
	})
	return found
}

// Nothing is written for people but by cmd/mcpbridge/internal/output.
func TestOutputHasOnePlace(t *testing.T) {
	t.Chdir(root)
	const place = "cmd/mcpbridge/internal/output/"
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		path = filepath.ToSlash(path)
		if err == nil && d.IsDir() && isMade(path) {
			return filepath.SkipDir
		}
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.HasPrefix(path, place) {
			return err
		}
		for _, other := range []string{"interop/", "examples/", "internal/dev/"} {
			if strings.HasPrefix(path, other) {
				return nil
			}
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, f := range outputFaults(t, path, string(text)) {
			t.Errorf("%s uses %s; write with %s, which escapes what could steer a terminal", path, f, strings.TrimSuffix(place, "/"))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func outputFaults(t *testing.T, path, text string) []string {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), path, text, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	return faults(path, f)
}

func TestOutputFaults(t *testing.T) {
	for body, want := range map[string]string{
		`fmt.Fprintf(w, "x")`: "[fmt.Fprintf]", `p.stdout.Write(x)`: "[stdout.Write]", `io.WriteString(w, x)`: "[io.WriteString]", `println(x)`: "[println]",
		`os.Stderr.Write(x)`: "[os.Stderr]", `output.Printf(w, x)`: "[]", `fmt.Sprintf(x)`: "[]",
	} {
		if got := fmt.Sprint(outputFaults(t, "cmd/mcpbridge/x.go", "package main\nfunc f() { "+body+" }")); got != want {
			t.Errorf("the faults of %s = %s, want %s", body, got, want)
		}
	}
}
