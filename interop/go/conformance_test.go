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

// How a scenario of the suite went, worst first.
const (
	failed = "fail"  // a check failed
	passed = "pass"  // none failed, but some warned or none was made
	clean  = "clean" // no warnings either
)

var ranks = []string{failed, passed, clean}

// scenario is what the suite found: how many checks ended how.
type scenario struct {
	name   string
	scored bool           // counts for the revision
	checks map[string]int // by status: SUCCESS, WARNING, FAILURE, ...
	faults []string       // what failed or warned
}

func (s *scenario) outcome() string {
	switch {
	case s.checks["FAILURE"] > 0:
		return failed
	case s.checks["WARNING"] > 0 || s.checks["SUCCESS"] == 0:
		return passed
	}
	return clean
}

// expectation is a line of expected.txt.
type expectation struct{ outcome, reason string }

// TestConformance runs the official suite's server scenarios of the modern
// revision through mcpbridge on go-sdk v1.6.1's stock server, which is legacy,
// and holds them against conformance/expected.txt: none may fare worse.
func TestConformance(t *testing.T) {
	want, err := readExpected("../conformance/expected.txt")
	if err != nil {
		t.Fatal(err)
	}
	got, err := runSuite(t.Context(), w.bridge.endpoint("everything-go"), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	got = slices.DeleteFunc(got, func(s *scenario) bool {
		return !s.scored && want[s.name] == (expectation{}) // nothing is claimed of it
	})
	for _, s := range got {
		t.Run(s.name, func(t *testing.T) { judge(t, s, want[s.name]) })
		delete(want, s.name)
	}
	for name := range want {
		t.Errorf("expected.txt has %s, which the suite did not run", name)
	}
	if err := os.WriteFile("../bin/conformance.txt", []byte(suiteTable(got)), 0o600); err != nil {
		t.Error(err)
	}
}

func judge(t *testing.T, s *scenario, want expectation) {
	outcome := s.outcome()
	if want.outcome == "" {
		t.Fatalf("%s is not in expected.txt; it is %s now", s.name, outcome)
	}
	switch is, was := slices.Index(ranks, outcome), slices.Index(ranks, want.outcome); {
	case is < was:
		t.Errorf("%s is %s, was %s:\n%s", s.name, outcome, want.outcome, strings.Join(s.faults, "\n"))
	case is > was:
		s.faults = append(s.faults, fmt.Sprintf("better than expected.txt, which has %s (%s): mend the file", want.outcome, want.reason))
	}
	if outcome != clean && want.reason == "" {
		t.Errorf("%s is %s, and expected.txt gives no reason", s.name, outcome)
	}
	if outcome == want.outcome && want.reason != "" {
		s.faults = []string{want.reason}
	}
}

// readExpected reads lines of scenario, outcome and, where it isn't clean, the
// reason.
func readExpected(name string) (map[string]expectation, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	want := make(map[string]expectation)
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		words := strings.Fields(line)
		if len(words) < 2 || !slices.Contains(ranks, words[1]) || want[words[0]] != (expectation{}) {
			return nil, fmt.Errorf("%s:%d: want a scenario once, one of %q, and a reason", name, n, ranks)
		}
		want[words[0]] = expectation{words[1], strings.Join(words[2:], " ")}
	}
	return want, lines.Err()
}

// runSuite runs the suite against url and reads what it left in dir.
func runSuite(ctx context.Context, url, dir string) ([]*scenario, error) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, nodeBinary, conformanceNode, "server",
		"--requirements", revision, "--url", url, "--timeout", "30000", "-o", dir)
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
	unscoredLine = regexp.MustCompile(`(?m)^\s+[✓✗] (\S+) \((?:extension|pending|draft)\)`)
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
		if c.Status == "FAILURE" || c.Status == "WARNING" {
			s.faults = append(s.faults, fmt.Sprintf("%s %s: %s", c.Status, c.ID, c.ErrorMessage))
		}
	}
	return nil
}

// suiteTable is for people: a line per scenario, and the counts.
func suiteTable(got []*scenario) string {
	var b strings.Builder
	count := make(map[string]int)
	scored := 0
	for _, s := range got {
		note := ""
		if s.scored {
			scored++
			count[s.outcome()]++
		} else {
			note = "not scored "
		}
		fmt.Fprintf(&b, "%-5s  %-46s %2d ok %d failed %d warned  %s%s\n", s.outcome(), s.name,
			s.checks["SUCCESS"], s.checks["FAILURE"], s.checks["WARNING"], note, strings.Join(s.faults, "; "))
	}
	fmt.Fprintf(&b, "conformance %s: %d of %d pass, %d of them clean\n", revision, count[passed]+count[clean], scored, count[clean])
	return b.String()
}

// TestExpectations proves that a scenario that fares worse is a failure.
func TestExpectations(t *testing.T) {
	name := filepath.Join(t.TempDir(), "expected.txt")
	for _, tt := range []struct {
		name, text string
		want       map[string]expectation
	}{
		{"comment, blank, clean and fail", "# x\n\na clean\nb fail for want of c\n",
			map[string]expectation{"a": {clean, ""}, "b": {failed, "for want of c"}}},
		{"unknown outcome", "a good\n", nil},
		{"twice", "a clean\na clean\n", nil},
		{"no outcome", "a\n", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if err := os.WriteFile(name, []byte(tt.text), 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := readExpected(name)
			if (err != nil) != (tt.want == nil) || err == nil && !maps.Equal(got, tt.want) {
				t.Errorf("readExpected(%q) = %v, %v, want %v", tt.text, got, err, tt.want)
			}
		})
	}
}
