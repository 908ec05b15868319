package auth

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestConformance runs the suite's scenarios of clients that log in: mcpbridge wrap is the
// client of the suite's servers. Every scenario and each of its faults is held against
// conformance/login.txt, which says why those that aren't run don't apply. What came of
// them is left in bin/login.txt.
func TestConformance(t *testing.T) {
	t.Parallel() // with tests that wait
	want, err := readScenarios(peer("conformance/login.txt"))
	if err != nil {
		t.Fatal(err)
	}
	p := newPerson(t, "alice")
	lines := make([]string, len(want))
	slots := make(chan struct{}, runtime.GOMAXPROCS(0)) // what runs computes all the time
	t.Run("of", func(t *testing.T) {
		for i, s := range want {
			if s.skip != "" {
				lines[i] = fmt.Sprintf("%-6s %s %s: %s", "-", s.revision, s.name, s.skip)
				continue
			}
			t.Run(s.revision+" "+strings.ReplaceAll(s.name, "/", " "), func(t *testing.T) {
				t.Parallel()
				slots <- struct{}{}
				defer func() { <-slots }()
				lines[i] = s.run(t, p)
			})
		}
	})
	known := slices.Compact(slices.Sorted(func(yield func(string) bool) {
		for _, s := range want {
			if !yield(s.name) {
				return
			}
		}
	}))
	if all := suiteScenarios(t); !slices.Equal(all, known) {
		t.Errorf("the suite has the scenarios %q, the file %q", all, known)
	}
	if err := os.WriteFile(peer("bin/login.txt"), []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Error(err)
	}
}

// A scenario is a line of the file, with the faults below it.
type scenario struct {
	revision, name string
	skip           string            // why it isn't run
	faults         map[string]string // why, by the check's id
}

// readScenarios reads lines `REVISION NAME`, or `REVISION NAME - why it isn't run`, and
// indented below them `CHECK why it fails or warns`.
func readScenarios(file string) (all []*scenario, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	for n, line := range strings.Split(string(text), "\n") {
		words := strings.Fields(line)
		switch {
		case len(words) == 0 || line[0] == '#':
		case line[0] == ' ' && len(all) > 0 && len(words) > 1:
			all[len(all)-1].faults[words[0]] = strings.Join(words[1:], " ")
		case line[0] != ' ' && (len(words) == 2 || len(words) > 3 && words[2] == "-"):
			s := &scenario{revision: words[0], name: words[1], faults: make(map[string]string)}
			s.skip = strings.Join(words[min(3, len(words)):], " ")
			all = append(all, s)
		default:
			return nil, fmt.Errorf("%s:%d: want a revision and a scenario, or indented a check and a reason", file, n+1)
		}
	}
	return all, nil
}

// suiteScenarios returns the names of the suite's scenarios of clients that log in.
func suiteScenarios(t *testing.T) (names []string) {
	t.Helper()
	argv := node("node/node_modules/@modelcontextprotocol/conformance/dist/index.js", "list")
	out, err := exec.CommandContext(t.Context(), argv[0], argv[1:]...).Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "- auth/"); ok {
			names = append(names, "auth/"+strings.Fields(name)[0])
		}
	}
	slices.Sort(names)
	return names
}

// run runs a scenario, and returns a line for the table.
func (s *scenario) run(t *testing.T, p *person) string {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	dir := t.TempDir()
	binary := node("node/drive-login.mjs")
	argv := node("node/node_modules/@modelcontextprotocol/conformance/dist/index.js", "client", "--command", strings.Join(binary, " "),
		"--scenario", s.name, "--spec-version", s.revision, "--force", "--timeout", "180000", "-o", dir)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = append(append(os.Environ(), p.env()...), "BRIDGE="+programs.Bridge)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // the suite starts the client, and that mcpbridge: all go
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 2 * time.Second
	out, err := cmd.CombinedOutput() // the status says only that something failed
	folders, err2 := filepath.Glob(filepath.Join(dir, s.name+"-*"))
	if err2 != nil || len(folders) != 1 {
		t.Fatalf("the suite left %q, want one folder: %v, %v\n%s", folders, err, err2, out)
	}
	line, problems := s.judge(filepath.Join(folders[0], "checks.json"))
	client, _ := os.ReadFile(filepath.Join(folders[0], "stderr.txt")) // it may have said nothing
	for _, problem := range problems {
		t.Error(problem)
	}
	if len(problems) > 0 {
		t.Logf("its client wrote:\n%s", client)
	}
	if strings.Contains(string(out), "CLIENT EXITED WITH ERROR") || strings.Contains(string(out), "CLIENT TIMED OUT") {
		t.Errorf("the client was not served; it wrote:\n%s", client)
	}
	return line
}

// judge holds the checks against those that the file expects to fail.
func (s *scenario) judge(file string) (line string, problems []string) {
	var checks []struct{ ID, Status, Description, ErrorMessage string }
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, &checks)
	}
	if err != nil {
		return "", []string{err.Error()}
	}
	ok, outcome, notes := 0, "clean", []string{}
	for _, c := range checks {
		switch why, known := s.faults[c.ID]; {
		case c.Status == "SUCCESS":
			ok++
		case c.Status != "FAILURE" && c.Status != "WARNING":
		case !known:
			problems = append(problems, fmt.Sprintf("%s %s: %s %s", c.Status, c.ID, c.Description, c.ErrorMessage))
			fallthrough
		default:
			outcome = "faults"
			notes = append(notes, c.ID+": "+why)
		}
	}
	if ok == 0 {
		problems = append(problems, "no check succeeded")
	}
	return fmt.Sprintf("%-6s %s %s (%d ok) %s", outcome, s.revision, s.name, ok, strings.Join(notes, "; ")), problems
}
