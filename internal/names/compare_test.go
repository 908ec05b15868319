package names

import (
	"slices"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/trust/policy"
)

// What is about nothing that the server has is told, and so is a name that two would have.
func TestG03Compare(t *testing.T) {
	o := Options{
		Tools: Part{
			Allow: []string{"read_*", "READ_x", "gone", "list"}, Deny: []string{"READ_*", "writ*"},
			Rename: map[string]string{"list": "ls", "old": "new"}, Describe: map[string]string{"ls": "Lists.", "lost": "x"},
		},
		Prompts: Part{Rename: map[string]string{"ask": "a"}},
	}
	o.Tools.Allow = append(o.Tools.Allow, "old", "lost", "ls*")
	for _, tt := range []struct {
		kind policy.Kind
		own  []string
		want []string
	}{
		{policy.Tool, []string{"read_x", "list", "old", "lost", "gone", "write", "READ_x", "ls2"}, nil},
		{policy.Tool, []string{"read_x", "list", "ls", "Old"}, []string{
			`tools.allow: the server has no tool "READ_x"`, `tools.allow: the server has no tool "gone"`, `tools.allow: the server has no tool "old"`, `tools.allow: the server has no tool "lost"`,
			`tools.deny: the server has no tool "writ*"`, `tools.rename: the server has no tool "old"`, `tools.describe: the server has no tool "lost"`,
			`the tools "list" and "ls" would both be called "ls", since one is renamed; deny or rename the other one, or give it another name`,
		}},
		{policy.Prompt, []string{"ask"}, nil},
		{policy.Prompt, []string{"ask", "a", "ASK"}, []string{
			`the prompts "ask" and "a" would both be called "a", since one is renamed; deny or rename the other one, or give it another name`,
			`the prompts "ask" and "ASK", of which one is renamed, differ only in case; rename or deny the other one`,
		}},
		{policy.Prompt, nil, []string{`prompts.rename: the server has no prompt "ask"`}},
	} {
		if got := o.Compare(tt.kind, tt.own); !slices.Equal(got, tt.want) {
			t.Errorf("Compare(%v) =\n%q, want\n%q", tt.own, got, tt.want)
		}
	}
}
