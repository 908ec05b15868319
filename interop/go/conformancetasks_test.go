package interop

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// taskScenarios are those of the extension io.modelcontextprotocol/tasks.
var taskScenarios = []string{
	"tasks-lifecycle",
	"tasks-capability-negotiation",
	"tasks-wire-fields",
	"tasks-request-state-removal",
	"tasks-mrtr-input",
	"tasks-mrtr-composition",
	"tasks-request-headers",
	"tasks-dispatch-and-envelope",
	"tasks-status-notifications",
	"tasks-required-task-error",
}

// each runs the scenarios, some at a time: most of them wait.
func (r *suiteRun) each(ctx context.Context, dir string) ([]*scenario, error) {
	all, errs := make([][]*scenario, len(r.scenarios)), make([]error, len(r.scenarios))
	turns := make(chan struct{}, 4)
	var wg sync.WaitGroup
	for i, name := range r.scenarios {
		wg.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			all[i], errs[i] = r.suite(ctx, filepath.Join(dir, name), "--scenario", name, "--spec-version", r.revision, "--force")
		})
	}
	wg.Wait()
	return slices.Concat(all...), errors.Join(errs...)
}

// sameVerdicts proves that every check has the verdict through mcpbridge that it has
// without.
func sameVerdicts(t *testing.T, direct, through []*scenario) {
	t.Helper()
	if len(direct) == 0 || len(through) != len(direct) {
		t.Fatalf("%d scenarios directly and %d through mcpbridge", len(direct), len(through))
	}
	for i, s := range direct {
		want, got := sorted(s.verdicts), sorted(through[i].verdicts)
		if !slices.Equal(got, want) {
			t.Errorf("%s: through mcpbridge\n  %s\nwant, as directly,\n  %s", s.name, strings.Join(got, "\n  "), strings.Join(want, "\n  "))
		}
	}
}

// clearChecks proves that as many scenarios are clean as should be, with as many checks.
func clearChecks(t *testing.T, got []*scenario, scenarios, checks int) {
	t.Helper()
	clear, made := 0, 0
	for _, s := range got {
		if s.outcome() == clean {
			clear++
			made += s.checks["SUCCESS"]
		}
	}
	if clear != scenarios || made != checks {
		t.Errorf("%d scenarios are clean, with %d checks, want %d with %d", clear, made, scenarios, checks)
	}
}

func sorted(list []string) []string { return slices.Sorted(slices.Values(list)) }
