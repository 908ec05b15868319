package layers

import (
	"bytes"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// A program with a gateway inside of it carries the client of an engine only if it imports
// that engine.
func TestEmbeddersCarryTheEnginesTheyImport(t *testing.T) {
	t.Chdir(root)
	readTree(t, ".") // the go command does not see what go list reads, and would keep the result
	const redis, nats = "github.com/redis/go-redis", "github.com/nats-io/nats.go"
	for pkg, want := range map[string][]string{
		"./gateway":                nil,
		"./examples/embedded":      nil,
		"./gateway/replicas/nats":  {nats},
		"./gateway/replicas/redis": {redis},
		"./cmd/mcpbridge":          {nats, redis},
	} {
		deps := dependencies(t, pkg)
		var got []string
		for _, client := range []string{nats, redis} {
			if slices.ContainsFunc(deps, func(d string) bool { return strings.HasPrefix(d, client) }) {
				got = append(got, client)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s carries the clients %q, want %q", pkg, got, want)
		}
	}
}

// dependencies returns what a package imports, and what that does, and so on.
func dependencies(t *testing.T, pkg string) []string {
	t.Helper()
	cmd := exec.Command("go", "list", "-tags", "grpcnotrace", "-deps", pkg)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list -deps %s: %v\n%s", pkg, err, &stderr)
	}
	deps := strings.Fields(string(out))
	if !slices.Contains(deps, module+strings.TrimPrefix(pkg, ".")) {
		t.Fatalf("go list -deps %s names %d packages, and not that one", pkg, len(deps))
	}
	return deps
}

// What is built with the tag grpcnotrace has no part that finds methods by name, so that the linker can
// leave out those that nobody calls. Of cobra's templates, which could, none is used.
func TestMethodsCanBeLeftOut(t *testing.T) {
	t.Chdir(root)
	readTree(t, ".")
	for pkg, cobra := range map[string]bool{"./cmd/mcpbridge": true, "./examples/embedded": false} {
		deps := dependencies(t, pkg)
		if slices.Contains(deps, "html/template") || slices.Contains(deps, "golang.org/x/net/trace") || slices.Contains(deps, "text/template") != cobra {
			t.Errorf("%s carries templates", pkg)
		}
	}
}
