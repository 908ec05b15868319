package report

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// Each row names a rule of the list, and an outcome that there is.
func TestCrossingsNameTheirRules(t *testing.T) {
	text, err := os.ReadFile("../../../../docs/rules.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range slices.Concat(toModern, toModernIfUsed, toLegacy, toLegacyIfUsed) {
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
		Verdict: mcp.Verdict{Era: spec.Modern, Description: &mcp.Description{Capabilities: []byte(`{"extensions":{"com.example/board":{},"io.modelcontextprotocol/tasks":{},"io.modelcontextprotocol/ui":{}}}`)}},
		Hidden:  names,
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
