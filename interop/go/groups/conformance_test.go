package groups

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestG02Conformance has the official suite visit servers of each era at their own endpoints, in groups of
// one without prefixes, and in groups with two others, by the scenarios of each revision: all
// verdicts are the same.
func TestG02Conformance(t *testing.T) {
	list := members()
	others := slices.DeleteFunc(slices.Clone(list), func(m member) bool { return m.name != "memos" })
	servers := startMembers(t, others, t.TempDir())
	addr, _ := startServer(t, "legacy-go", nil, []string{peer("bin/legacy-go"), "-http", "{addr}"})
	servers += fmt.Sprintf("  legacy-go: {url: \"http://%s/mcp\", timeouts: {connect: 1m}}\n", addr)
	tried := map[string][]string{
		"everything-go": {peer("bin/everything-v1.6.1"), "-http", "{addr}"},
		"modern-go":     {peer("bin/modern-go"), "-http", "{addr}"},
	}
	var groups strings.Builder
	for _, name := range slices.Sorted(maps.Keys(tried)) {
		addr, _ := startServer(t, name, nil, tried[name])
		servers += fmt.Sprintf("  %s: {url: \"http://%s/\", timeouts: {connect: 1m}}\n", name, addr)
		fmt.Fprintf(&groups, "  %s-alone: {servers: [%s], prefix: never, patience: 30s}\n  %s-and: {servers: [%s, legacy-go, memos], prefix: never, patience: 30s, attribute: false}\n", name, name, name, name)
	}
	b := startBridge(t, servers, groups.String())
	var runs sync.WaitGroup
	for name := range tried {
		runs.Go(func() { // the runs of one server follow each other: they change its lists
			for _, revision := range []string{"2025-11-25", "2026-07-28"} {
				want := verdicts(t, b.at(name), revision)
				for _, group := range []string{name + "-alone", name + "-and"} {
					t.Run(group+" "+revision, func(t *testing.T) { sameVerdicts(t, want, verdicts(t, b.at(group), revision), group == name+"-alone") })
				}
			}
		})
	}
	runs.Wait()
}

// sameVerdicts holds that all checks of all scenarios went as they should. Of a group that has
// others, too, the lists have what those have.
func sameVerdicts(t *testing.T, want, got map[string][]string, alone bool) {
	t.Helper()
	checks := 0
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if !alone && strings.HasSuffix(name, "-list") {
			continue
		}
		w, g := judged(name, want[name]), judged(name, got[name])
		if !slices.Equal(g, w) {
			t.Errorf("%s: through the group\n  %s\nwant, as at the server's endpoint,\n  %s", name, strings.Join(g, "\n  "), strings.Join(w, "\n  "))
		}
		checks += len(w)
	}
	if len(got) != len(want) {
		t.Errorf("%d scenarios were run, want %d", len(got), len(want))
	}
	t.Logf("%d scenarios with %d checks went as at the server's endpoint", len(want), checks)
}

// judged returns the checks of a scenario that have to be as at the server's endpoint. What is checked of
// event streams depends on how quick an answer is: a quick one has none. And a group
// has its own answer to ids of tasks that it has not handed out.
func judged(scenario string, checks []string) []string {
	return slices.DeleteFunc(slices.Clone(checks), func(check string) bool {
		id, status, _ := strings.Cut(check, " ")
		return strings.HasPrefix(scenario, "server-sse-") && status != "FAILURE" || id == "sep-2663-tasks-get-invalid-task-id-32602"
	})
}

var resultFolder = regexp.MustCompile(`^server-(.+)-\d{4}-\d\d-\d\dT[\d-]+Z$`)

// verdicts runs the suite, and returns the checks of each scenario with their verdicts, sorted.
func verdicts(t *testing.T, url, revision string) map[string][]string {
	t.Helper()
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	argv := node("node/node_modules/@modelcontextprotocol/conformance/dist/index.js", "server", "--url", url, "--timeout", "60000", "-o", dir, "--requirements", revision)
	out, _ := exec.CommandContext(ctx, argv[0], argv[1:]...).CombinedOutput() // the status says only that something failed
	folders, err := os.ReadDir(dir)
	if err != nil || len(folders) == 0 {
		t.Fatalf("the suite left %d results, %v; it wrote:\n%s", len(folders), err, out)
	}
	got := make(map[string][]string)
	for _, f := range folders {
		m := resultFolder.FindStringSubmatch(f.Name())
		text, err := os.ReadFile(filepath.Join(dir, f.Name(), "checks.json"))
		var checks []struct{ ID, Status string }
		if err == nil {
			err = json.Unmarshal(text, &checks)
		}
		if m == nil || err != nil {
			t.Fatalf("the suite left %q: %v", f.Name(), err)
		}
		for _, c := range checks {
			got[m[1]] = append(got[m[1]], c.ID+" "+c.Status)
		}
		slices.Sort(got[m[1]])
	}
	return got
}
