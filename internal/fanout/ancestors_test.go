package fanout

import (
	"slices"
	"strings"
	"testing"
)

func TestM2L33Ancestors(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"file:///a/b/c", "file:///a/b/ file:///a/b file:///a/ file:///a file:/// file://"},
		{"note://todo/draft", "note://todo/ note://todo"},
		{"note://todo", ""},
		{"note://todo?q=/x", ""},
		{"note://todo#/x", ""},
		{"file:///a/b?x=/y#/z", "file:///a/ file:///a file:/// file://"},
		{"file:///a//b", "file:///a// file:///a/ file:///a file:/// file://"},
		{"file:///a%2Fb", "file:/// file://"},
		{"urn:isbn:1", ""},
		{"mem:a/b", "mem:a/ mem:a"},
		{"mem:/a", "mem:/"},
		{"a/b:c/d", "a/b:c/ a/b:c a/ a"},
		{"/a", "/"},
		{"", ""},
	} {
		var got []string
		for at := range Ancestors(tt.in) {
			got = append(got, at)
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("Ancestors(%q) = %q, want %q", tt.in, got, tt.want)
		}
	}
}

// A server can't make the gateway look up a million ancestors for one notification.
func TestM2L33AncestorsAreBounded(t *testing.T) {
	if got := len(slices.Collect(Ancestors("file:///a" + strings.Repeat("/x", 100_000)))); got != maxAncestors {
		t.Errorf("Ancestors yields %d, want %d", got, maxAncestors)
	}
}
