package report

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/settings"
	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// Each row names a rule of the list, and an outcome that there is.
func TestCrossingsNameTheirRules(t *testing.T) {
	text, err := os.ReadFile("../../../../docs/rules.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range slices.Concat(toModern, toModernIfUsed, toLegacy, toLegacyIfUsed, legacyTasks, modernTasks) {
		if !strings.Contains(string(text), "\n| "+p.rule+" | ") || p.why == "" || p.feature == "" {
			t.Errorf("%s: rule %q is not in docs/rules.md, or there is no reason", p.feature, p.rule)
		}
		if !slices.Contains([]string{Refused, Changes, Crosses, NotOffered}, p.outcome) {
			t.Errorf("%s: outcome %q", p.feature, p.outcome)
		}
	}
}

// What the configuration hides reaches nobody, and the report says so.
func TestT32ProbeTellsWhatIsHidden(t *testing.T) {
	names := []string{"com.example/board", spec.ExtensionTasks}
	s := &probed{
		Verdict:  mcp.Verdict{Era: spec.Modern, Description: &mcp.Description{Capabilities: []byte(`{"extensions":{"com.example/board":{},"io.modelcontextprotocol/tasks":{},"io.modelcontextprotocol/ui":{}}}`)}},
		Settings: settings.Server{Extensions: settings.Extensions{Hide: names}},
	}
	for _, e := range s.extensions() {
		if got, want := e.Modern == hidden && e.Legacy == hidden, slices.Contains(names, e.Name); got != want {
			t.Errorf("%s: %+v and %+v, want hidden to be %v", e.Name, e.Modern, e.Legacy, want)
		}
	}
	for _, c := range s.features() {
		for _, name := range names {
			if slices.Contains(c.Items, name) {
				t.Errorf("%s names %s, which is hidden", c.Feature, name)
			}
		}
	}
}

// What clients of either era get of a server's tasks depends on what it declares, and on tasks.
func TestT08ProbeTellsOfTasks(t *testing.T) {
	const (
		runs  = `{"tools":{},"tasks":{"requests":{"tools":{"call":{}}}}}`
		key   = `{"tools":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}`
		must  = "tools that must be run as tasks"
		may   = "tools that may be run as tasks"
		holds = "tasks that a client holds (tasks/*)"
		ext   = "the tasks extension"
		alone = "tools that run as tasks alone"
		stray = "tools with taskSupport"
	)
	items := []json.RawMessage{[]byte(`{"name":"a","execution":{"taskSupport":"required"}}`), []byte(`{"name":"b","execution":{"taskSupport":"optional"}}`), []byte(`{"name":"c"}`)}
	for _, tt := range []struct {
		era      spec.Era
		declared string
		tasks    settings.Tasks
		want     map[string]string // outcome, rule and items
	}{
		{spec.Legacy, runs, settings.Tasks{}, map[string]string{must: "changes T-09 a", may: "changes T-09 b", holds: "changes T-05 "}},
		{spec.Legacy, runs, settings.Tasks{Mode: settings.TasksOn}, map[string]string{must: "changes T-09 a", may: "changes T-09 b", holds: "changes T-05 "}},
		{spec.Legacy, runs, settings.Tasks{Optional: settings.OptionalCall}, map[string]string{must: "changes T-09 a", may: "crosses T-08 b", holds: "changes T-05 "}},
		{spec.Legacy, runs, settings.Tasks{Mode: settings.TasksRun}, map[string]string{must: "changes M2L-07 a", may: "crosses T-08 b", holds: "refused T-08 "}},
		{spec.Legacy, runs, settings.Tasks{Mode: settings.TasksOff}, map[string]string{must: "refused T-08 a", may: "crosses T-08 b", holds: "refused T-08 "}},
		{spec.Legacy, `{"tools":{},"tasks":{"list":{}}}`, settings.Tasks{}, map[string]string{stray: "crosses T-09 a,b", holds: "not offered T-05 "}},
		{spec.Legacy, `{"tools":{}}`, settings.Tasks{}, map[string]string{stray: "crosses T-09 a,b"}},
		{spec.Modern, key, settings.Tasks{}, map[string]string{ext: "changes T-24 " + spec.ExtensionTasks, holds: "not offered L2M-10 "}},
		{spec.Modern, key, settings.Tasks{Mode: settings.TasksOn}, map[string]string{ext: "changes T-20 " + spec.ExtensionTasks}},
		{spec.Modern, key, settings.Tasks{Mode: settings.TasksRun}, map[string]string{alone: "changes T-24 ", holds: "not offered L2M-10 "}},
		{spec.Modern, key, settings.Tasks{Mode: settings.TasksOff}, map[string]string{holds: "not offered L2M-10 "}},
		{spec.Modern, `{"tools":{}}`, settings.Tasks{Mode: settings.TasksOn}, map[string]string{holds: "not offered L2M-10 "}},
	} {
		s := &probed{Settings: settings.Server{Tasks: tt.tasks}, Verdict: mcp.Verdict{Era: tt.era, Revisions: []spec.Revision{spec.Rev20251125},
			Description: &mcp.Description{Capabilities: []byte(tt.declared)}, Lists: []mcp.Listing{{Method: spec.MethodToolsList, Items: items}}}}
		got := make(map[string]string)
		for _, f := range s.features() {
			if slices.Contains([]string{must, may, holds, ext, alone, stray}, f.Feature) {
				got[f.Feature] += f.Outcome + " " + f.Rule + " " + strings.Join(f.Items, ",")
			}
		}
		if !maps.Equal(got, tt.want) {
			t.Errorf("%v, %s, %+v: %q, want %q", tt.era, tt.declared, tt.tasks, got, tt.want)
		}
		for _, e := range s.extensions() {
			if on := tt.tasks.Mode == settings.TasksOn; (e.Legacy.Rule == "T-20") != on {
				t.Errorf("%+v: the extension is %+v for clients of 2025-11-25", tt.tasks, e.Legacy)
			}
		}
	}
}
