package report

import (
	"slices"
	"testing"
)

// What the keys of a server name, and the server has not, is a warning; so is a list that can't
// be read.
func TestUnmatched(t *testing.T) {
	down := notebooks("a")
	down["a prompts/list"] = "it is down"
	without := notebooks("a")
	delete(without, "a prompts/list")
	for _, tt := range []struct {
		name, keys string
		l          lists
		want       []string
	}{
		{"no keys", "", down, nil},
		{"all match", ", tools: {deny: [enable_search], rename: {edit_note: write}, describe: {write: W}}, prompts: {rename: {summarize: sum_up}}", notebooks("a"), nil},
		{"names that are gone", `, tools: {allow: ["*_note", "enable*", gone], describe: {enable_x: x}}`, down,
			[]string{`tools.allow: the server has no tool "gone"`, `tools.describe: the server has no tool "enable_x"`}},
		{"resources are not asked for", ", resources: {allow: ['note://gone']}", down, nil},
		{"no such list", ", prompts: {allow: [summarize]}", without, []string{`prompts.allow: the server has no prompt "summarize"`}},
		{"a list that can't be read", ", tools: {deny: [gone]}, prompts: {allow: [summarize]}", down,
			[]string{`tools.deny: the server has no tool "gone"`, "prompts/list: it is down"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := loaded(t, "servers: {a: {builtin: notebook"+tt.keys+"}}\n")
			if got := Unmatched(t.Context(), c, "a", tt.l.ask); !slices.Equal(got, tt.want) {
				t.Errorf("Unmatched = %q, want %q", got, tt.want)
			}
		})
	}
}
