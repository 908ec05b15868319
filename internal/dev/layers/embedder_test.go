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
	cmd := exec.Command("go", "list", "-deps", pkg)
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
