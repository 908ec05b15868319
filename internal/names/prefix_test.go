package names

import (
	"cmp"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/trust/policy"
)

func TestG01Prefix(t *testing.T) {
	for server, want := range map[string]string{
		"files": "files", "a.b": "a-b", "a__b": "a_b", "a_____b": "a_b", "files_": "files", "a.__.b": "a-_-b",
		"0123456789012345678901234567": "012345678901234567890123", "01234567890123456789012_4": "01234567890123456789012",
	} {
		if got := Prefix(server); got != want || !IsPrefix(got) {
			t.Errorf("Prefix(%s) = %s, want %s", server, got, want)
		}
	}
	for _, text := range []string{"", "a__b", "a_", "_", "a.b", "é", "0123456789012345678901234"} {
		if IsPrefix(text) {
			t.Errorf("%q can be a prefix", text)
		}
	}
}

// Of a name that several members have the preferred one keeps it, and of a URI the first one; what a
// member has twice is no clash.
func TestG02Clash(t *testing.T) {
	g := Group{Bare: true, Max: 64, Prefer: map[string]string{"b": "two", "c": "none"}}
	for _, tt := range []struct {
		kind policy.Kind
		name string
		want string // of each: - for shown, or why not
	}{
		{policy.Tool, "a", "one and two have it; say with prefer whose it is|one and two have it; say with prefer whose it is"},
		{policy.Tool, "b", "prefer says that it is that of two|-"},
		{policy.Prompt, "c", "one and two have it; say with prefer whose it is|one and two have it; say with prefer whose it is"},
		{policy.Resource, "x://a", "-|one has it, too, and is before two"},
	} {
		found := []GroupName{g.Name(tt.kind, "one", "one", tt.name, tt.name), g.Name(tt.kind, "two", "two", tt.name, tt.name)}
		g.Clash(tt.kind, found)
		var got []string
		for _, n := range found {
			got = append(got, cmp.Or(n.Hidden, "-"))
			if (n.Name == "") != (n.Hidden != "") || n.Own != tt.name {
				t.Errorf("%+v", n)
			}
		}
		if got := strings.Join(got, "|"); got != tt.want {
			t.Errorf("of %s: %s, want %s", tt.name, got, tt.want)
		}
	}
	twice := []GroupName{g.Name(policy.Tool, "one", "one", "a", "a"), g.Name(policy.Tool, "one", "one", "a", "a")}
	if g.Clash(policy.Tool, twice); twice[0].Name != "a" || twice[1].Name != "a" {
		t.Errorf("of one member: %+v", twice)
	}
	g.Bare = false
	if n := g.Name(policy.Tool, "one", "o", "own", "a b"); !n.Cut || n.Own != "own" || !strings.HasPrefix(n.Name, "o__a-b_") {
		t.Errorf("a name with a blank is %+v", n)
	}
	if n := g.Name(policy.Resource, "one", "o", "x://a", "x://a"); n.Cut || n.Name != "x://a" {
		t.Errorf("a URI is %+v", n)
	}
}
