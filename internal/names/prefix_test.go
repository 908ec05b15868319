package names

import (
	"cmp"
	"fmt"
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

func TestG01PrefixesOfMembers(t *testing.T) {
	var p Prefixes
	for _, prefix := range []string{"a", "ab", "a_b", "b"} {
		p.Add(prefix)
	}
	for shown, want := range map[string]int{
		"a__x": 0, "ab__x": 1, "a_b__x": 2, "b__": 3, "a___x": 0, "a__b__x": 0,
		"": -1, "a": -1, "a_x": -1, "a_": -1, "A__x": -1, "c__x": -1, "__x": -1, "abc__x": -1, "_a__x": -1,
	} {
		if place, text := PlaceIn(&p, shown), PlaceIn(&p, []byte(shown)); place != want || text != want {
			t.Errorf("PlaceIn(%q) = %d, of bytes %d, want %d", shown, place, text, want)
		}
	}
	for shown, want := range map[string]string{"a__x": "0 x true", "a_b__x__y": "2 x__y true", "ab__a b": "1 a b false", "x__a": "-1  false"} {
		place, own, plain := PlainIn(&p, shown, 64)
		if got := fmt.Sprint(place, " ", own, " ", plain); got != want {
			t.Errorf("PlainIn(%q) = %s, want %s", shown, got, want)
		}
	}
}
