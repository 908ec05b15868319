package interop

import (
	"bufio"
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
	"testing"
	"time"
)

// How a scenario of the suite went.
const (
	failed = "fail"  // a check failed
	passed = "pass"  // none failed, but some warned or none was made
	clean  = "clean" // no warnings either
)

// scenario is what the suite found: how many checks ended how.
type scenario struct {
	name     string
	scored   bool           // counts for the revision
	checks   map[string]int // by status: SUCCESS, WARNING, FAILURE, ...
	verdicts []string       // the same, a check's id and status each
	faults   []fault        // what failed or warned
	note     string         // for the table
}

// fault is a check that failed or warned.
type fault struct{ id, status, message string }

func (s *scenario) outcome() string {
	switch {
	case s.checks["FAILURE"] > 0:
		return failed
	case s.checks["WARNING"] > 0 || s.checks["SUCCESS"] == 0:
		return passed
	}
	return clean
}

// expectations are the faults that each scenario has, with their reasons, by
// the scenario's name and the check's id.
type expectations map[string]map[string]string

// A suiteRun is one run of the official suite's server scenarios. Every check is
// held against conformance/NAME.txt.
type suiteRun struct {
	name      string // of the table, and of the file
	revision  string // whose scenarios
	url       func() string
	scenarios []string // those to run, though no revision requires them; nil for what the revision requires
}

func through(server string) func() string { return func() string { return w.bridge.endpoint(server) } }

func directly(server string) func() string { return func() string { return w.urls[server] } }

// suiteRuns are the runs through mcpbridge, and the direct ones that say what
// the suite makes of the servers themselves.
var suiteRuns = []suiteRun{
	{"everything-go", "2026-07-28", through("everything-go"), nil},
	{"legacy-2026", "2026-07-28", through("legacy-2026"), nil},
	{"modern-go", "2025-11-25", through("modern-go"), nil},
	{"modern-typescript", "2025-11-25", through("modern-typescript"), nil},
	{"everything-go-directly", "2025-11-25", directly("everything-go"), nil},
	{"modern-go-directly", "2026-07-28", directly("modern-go"), nil},
	{"modern-typescript-directly", "2026-07-28", directly("modern-typescript"), nil},
	{"fastmcp", "2026-07-28", through("fastmcp"), taskScenarios},
	{"fastmcp-directly", "2026-07-28", directly("fastmcp"), taskScenarios},
	{"tasks-2025", "2026-07-28", through("tasks-2025"), taskScenarios},
	{"skills-modern", "2026-07-28", through("skills-modern"), skillScenarios},
	{"skills-modern-directly", "2026-07-28", directly("skills-modern"), skillScenarios},
	{"skills-modern-translated", "2025-11-25", through("skills-modern"), skillScenarios},
	{"skills-legacy", "2025-11-25", through("skills-legacy"), skillScenarios},
	{"skills-legacy-directly", "2025-11-25", directly("skills-legacy"), skillScenarios},
	{"skills-legacy-translated", "2026-07-28", through("skills-legacy"), skillScenarios},
}

// notYet has the runs that mcpbridge can't pass yet, and why.
var notYet = map[string]string{}

// skillScenarios are those of the extension io.modelcontextprotocol/skills.
var skillScenarios = []string{"sep-2640-skills-directory", "sep-2640-skills-enumeration", "sep-2640-skills-manifest"}

// TestConformance makes the runs, and leaves what came of them in
// bin/conformance.txt.
func TestConformance(t *testing.T) {
	var tables strings.Builder
	found := make(map[string][]*scenario)
	for _, run := range suiteRuns {
		t.Run(run.name, func(t *testing.T) {
			if why := notYet[run.name]; why != "" {
				t.Skip(why)
			}
			found[run.name] = run.conform(t)
			fmt.Fprintf(&tables, "on %s:\n%s\n", run.name, suiteTable(run.revision, found[run.name]))
		})
	}
	if err := os.WriteFile("../bin/conformance.txt", []byte(tables.String()), 0o600); err != nil {
		t.Error(err)
	}
	t.Run("T-01 the verdicts on tasks are those of the server", func(t *testing.T) {
		sameVerdicts(t, found["fastmcp-directly"], found["fastmcp"])
		clearChecks(t, found["fastmcp-directly"], 8, 42)
	})
	t.Run("T-12 clients of the extension have tasks of 2025-11-25", func(t *testing.T) {
		if why := notYet["tasks-2025"]; why != "" {
			t.Skip(why)
		}
		clearChecks(t, found["tasks-2025"], 8, 41) // no check of tasks-status-notifications is ever made
	})
	t.Run("S-01 S-02 the verdicts on skills are those of the server", func(t *testing.T) {
		for server, checks := range map[string]int{"skills-modern": 45, "skills-legacy": 43} {
			sameVerdicts(t, found[server+"-directly"], found[server])
			clearChecks(t, found[server+"-directly"], 3, checks)
		}
	})
	t.Run("M2L-08 skills of the other era have the verdicts of their own", func(t *testing.T) {
		sameVerdicts(t, found["skills-legacy-directly"], found["skills-modern-translated"])
		sameVerdicts(t, found["skills-modern-directly"], found["skills-legacy-translated"])
	})
}

// conform makes one run, and returns what is claimed of it.
func (r *suiteRun) conform(t *testing.T) []*scenario {
	file := "../conformance/" + r.name + ".txt"
	want, err := readExpected(file)
	if err != nil {
		t.Fatal(err)
	}
	got, err := r.run(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	got = slices.DeleteFunc(got, func(s *scenario) bool {
		return !s.scored && want[s.name] == nil // nothing is claimed of it
	})
	for _, s := range got {
		t.Run(s.name, func(t *testing.T) {
			for _, problem := range s.judge(want[s.name]) {
				t.Error(problem)
			}
		})
		delete(want, s.name)
	}
	for name := range want {
		t.Errorf("%s has %s, which the suite did not run", file, name)
	}
	return got
}

// judge returns the faults that are not expected, and notes for the table why
// the others are, and which are gone.
func (s *scenario) judge(want map[string]string) (problems []string) {
	if want == nil {
		return []string{fmt.Sprintf("%s is not in the file; it is %s now, with %v", s.name, s.outcome(), s.faults)}
	}
	reasons, gone := []string{}, maps.Clone(want)
	for _, f := range s.faults {
		reason, known := want[f.id]
		if !known {
			problems = append(problems, fmt.Sprintf("%s %s: %s", f.status, f.id, f.message))
			reason = "NEW: " + f.id
		}
		if !slices.Contains(reasons, reason) {
			reasons = append(reasons, reason)
		}
		delete(gone, f.id)
	}
	for id := range gone {
		reasons = append(reasons, "BETTER than its file says, mend that: "+id)
	}
	s.note = strings.Join(reasons, "; ")
	return problems
}

// readExpected reads the scenarios, a line each, and under a scenario that is
// not clean its faults, indented: the check's id, then the reason.
func readExpected(name string) (expectations, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	want := make(expectations)
	var at map[string]string // the faults of the scenario above
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		line := lines.Text()
		id, reason, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch {
		case id == "" || line[0] == '#':
		case line[0] != ' ' && want[id] == nil && reason == "":
			at = make(map[string]string)
			want[id] = at
		case line[0] == ' ' && at != nil && at[id] == "" && reason != "":
			at[id] = strings.TrimSpace(reason)
		default:
			return nil, fmt.Errorf("%s:%d: want a scenario, or indented a check and a reason, and each once", name, n)
		}
	}
	return want, lines.Err()
}

// run runs the suite, once or for each of its scenarios, and reads what it left in
// dir.
func (r *suiteRun) run(ctx context.Context, dir string) ([]*scenario, error) {
	if r.scenarios == nil {
		return r.suite(ctx, dir, "--requirements", r.revision)
	}
	return r.each(ctx, dir)
}

// suite runs the suite on what the arguments choose.
func (r *suiteRun) suite(ctx context.Context, dir string, choice ...string) ([]*scenario, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	argv := append([]string{conformanceNode, "server", "--url", r.url(), "--timeout", "60000", "-o", dir}, choice...)
	cmd := exec.CommandContext(ctx, nodeBinary, argv...)
	out, err := cmd.CombinedOutput() // the status says only that something failed
	if ctx.Err() != nil {
		return nil, fmt.Errorf("the suite did not end: %v\n%s", err, out)
	}
	got, err := readSuite(dir, unscored(string(out)))
	if err != nil {
		return nil, fmt.Errorf("%w\n%s", err, out)
	}
	return got, nil
}

var (
	unscoredLine = regexp.MustCompile(`(?m)^\s+[✓✗] (\S+) \((?:extension|pending|draft|added-after-release)\)`)
	resultFolder = regexp.MustCompile(`^server-(.+)-\d{4}-\d\d-\d\dT[\d-]+Z$`)
)

// unscored returns the scenarios that the suite ran beyond the revision's own.
func unscored(out string) []string {
	var names []string
	for _, m := range unscoredLine.FindAllStringSubmatch(out, -1) {
		names = append(names, m[1])
	}
	return names
}

func readSuite(dir string, unscored []string) ([]*scenario, error) {
	folders, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var got []*scenario
	for _, f := range folders {
		m := resultFolder.FindStringSubmatch(f.Name())
		if m == nil {
			return nil, fmt.Errorf("the suite left %q, which is no scenario's folder", f.Name())
		}
		s := &scenario{name: m[1], scored: !slices.Contains(unscored, m[1]), checks: make(map[string]int)}
		if err := s.read(filepath.Join(dir, f.Name(), "checks.json")); err != nil {
			return nil, err
		}
		got = append(got, s)
	}
	if len(got) == 0 {
		return nil, fmt.Errorf("the suite left no results")
	}
	slices.SortFunc(got, func(a, b *scenario) int { return strings.Compare(a.name, b.name) })
	return got, nil
}

func (s *scenario) read(name string) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	var checks []struct {
		ID, Status, Description, ErrorMessage string
	}
	if err := json.Unmarshal(text, &checks); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	for _, c := range checks {
		s.checks[c.Status]++
		s.verdicts = append(s.verdicts, c.ID+" "+c.Status)
		if c.Status == "FAILURE" || c.Status == "WARNING" {
			s.faults = append(s.faults, fault{c.ID, c.Status, c.ErrorMessage})
		}
	}
	return nil
}

// suiteTable is for people: a line per scenario, and the counts.
func suiteTable(revision string, got []*scenario) string {
	var b strings.Builder
	count := make(map[string]int)
	scored := 0
	for _, s := range got {
		name := s.name
		if s.scored {
			scored++
			count[s.outcome()]++
		} else {
			name += " (not scored)"
		}
		fmt.Fprintf(&b, "%-5s  %-46s %2d ok %d failed %d warned  %s\n", s.outcome(), name,
			s.checks["SUCCESS"], s.checks["FAILURE"], s.checks["WARNING"], s.note)
	}
	fmt.Fprintf(&b, "conformance %s: %d of %d pass, %d of them clean\n", revision, count[passed]+count[clean], scored, count[clean])
	return b.String()
}

// TestReadExpected proves that the file is read strictly.
func TestReadExpected(t *testing.T) {
	name := filepath.Join(t.TempDir(), "expected.txt")
	for _, tt := range []struct {
		name, text string
		want       expectations
	}{
		{"clean and not", "# x\n\na\nb\n  c  for want of d\n", expectations{"a": {}, "b": {"c": "for want of d"}}},
		{"scenario twice", "a\na\n", nil},
		{"check twice", "a\n  c x\n  c y\n", nil},
		{"check without a reason", "a\n  c\n", nil},
		{"check without a scenario", "  c x\n", nil},
		{"scenario with a reason", "a x\n", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if err := os.WriteFile(name, []byte(tt.text), 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := readExpected(name)
			if (err != nil) != (tt.want == nil) || err == nil && !maps.EqualFunc(got, tt.want, maps.Equal) {
				t.Errorf("readExpected(%q) = %v, %v, want %v", tt.text, got, err, tt.want)
			}
		})
	}
}

// TestJudge proves that a new fault is a failure, also in a scenario that has
// others.
func TestJudge(t *testing.T) {
	for _, tt := range []struct {
		name     string
		faults   []string
		want     map[string]string
		problems int
	}{
		{"clean as expected", nil, map[string]string{}, 0},
		{"not in the file", nil, nil, 1},
		{"fault as expected", []string{"a"}, map[string]string{"a": "why"}, 0},
		{"new fault", []string{"a"}, map[string]string{}, 1},
		{"new fault beside another", []string{"a", "b"}, map[string]string{"a": "why"}, 1},
		{"fault gone", nil, map[string]string{"a": "why"}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := &scenario{name: "x", checks: map[string]int{"SUCCESS": 1}}
			for _, id := range tt.faults {
				s.faults = append(s.faults, fault{id: id, status: "FAILURE"})
			}
			if got := s.judge(tt.want); len(got) != tt.problems {
				t.Errorf("judge(%v) = %q, want %d problems", tt.want, got, tt.problems)
			}
		})
	}
}
