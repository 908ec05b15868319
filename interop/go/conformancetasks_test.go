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
// without, and that there are as many as there should be.
func sameVerdicts(t *testing.T, direct, through []*scenario) {
	if len(direct) != len(taskScenarios) || len(through) != len(direct) {
		t.Fatalf("%d scenarios directly and %d through mcpbridge, want %d", len(direct), len(through), len(taskScenarios))
	}
	checks, clear := 0, 0
	for i, s := range direct {
		want, got := sorted(s.verdicts), sorted(through[i].verdicts)
		if !slices.Equal(got, want) {
			t.Errorf("%s: through mcpbridge\n  %s\nwant, as directly,\n  %s", s.name, strings.Join(got, "\n  "), strings.Join(want, "\n  "))
		}
		if s.outcome() == clean {
			clear++
			checks += s.checks["SUCCESS"]
		}
	}
	if clear != 8 || checks != 42 {
		t.Errorf("directly %d scenarios are clean, with %d checks, want 8 with 42", clear, checks)
	}
}

func sorted(list []string) []string { return slices.Sorted(slices.Values(list)) }
