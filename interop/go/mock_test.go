package interop

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// mockRuns are the scenarios of the suite in which it is the server: a mock of
// one revision, in front of it an mcpbridge of its own, and a client of the other
// era. Before a scenario's name may stand the rule that it proves.
var mockRuns = []struct{ revision, name string }{
	{"2025-11-25", "initialize"},
	{"2025-11-25", "tools_call"},
	{"2025-11-25", "elicitation-sep1034-client-defaults"},
	{"2025-11-25", "M2L-15 sse-retry"},
	{"2026-07-28", "tools_call"},
	{"2026-07-28", "request-metadata"},
	{"2026-07-28", "sep-2322-client-request-state"},
	{"2026-07-28", "http-standard-headers"},
	{"2026-07-28", "http-custom-headers"},
	{"2026-07-28", "http-invalid-tool-headers"},
	{"2026-07-28", "json-schema-ref-no-deref"},
	{"2025-11-25", "sep-2640-client-no-prefetch"},
	{"2025-11-25", "sep-2640-client-verify-digest"},
	{"2025-11-25", "sep-2640-client-verify-size"},
	{"2025-11-25", "sep-2640-client-verify-frontmatter"},
	{"2026-07-28", "sep-2640-client-no-prefetch"},
	{"2026-07-28", "sep-2640-client-verify-digest"},
	{"2026-07-28", "sep-2640-client-verify-size"},
	{"2026-07-28", "sep-2640-client-verify-frontmatter"},
}

// TestMockServers proves what the suite sees of mcpbridge as a client: each of
// its checks holds, none warns, and the client behind got what it should.
func TestMockServers(t *testing.T) {
	for _, run := range mockRuns {
		t.Run(run.revision+" "+run.name, func(t *testing.T) {
			t.Parallel()
			_, scenario, ok := strings.Cut(run.name, " ")
			if !ok {
				scenario = run.name
			}
			runMock(t, run.revision, scenario)
		})
	}
}

func runMock(t *testing.T, revision, name string) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	dir := t.TempDir()
	cmd := exec.CommandContext(ctx, nodeBinary, conformanceNode, "client", "--command", nodeBinary+" "+driveNode,
		"--scenario", name, "--spec-version", revision, "--force", "--timeout", "120000", "-o", dir)
	// The suite starts the client, and that mcpbridge: whatever happens, all go.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 2 * time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("the suite ended with %v:\n%s", err, out)
	}
	folders, err := filepath.Glob(filepath.Join(dir, name+"-*", "checks.json"))
	if err != nil || len(folders) != 1 {
		t.Fatalf("the suite left %q, want one folder: %v\n%s", folders, err, out)
	}
	s := &scenario{name: name, checks: make(map[string]int)}
	if err := s.read(folders[0]); err != nil {
		t.Fatal(err)
	}
	if got := s.outcome(); got != clean {
		client, _ := os.ReadFile(filepath.Join(filepath.Dir(folders[0]), "stderr.txt")) // it may have said nothing
		t.Errorf("%s is %s, want %s: %v; its client wrote:\n%s", name, got, clean, s.faults, client)
	}
}
