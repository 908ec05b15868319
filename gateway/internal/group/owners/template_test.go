package owners

import "testing"

func TestG05TemplatesMatch(t *testing.T) {
	for _, tt := range []struct {
		template, uri string
		want          bool
	}{
		{"note:///{name}", "note:///a", true},
		{"note:///{name}", "note:///a/b", false},
		{"note:///{name}", "note:///", false},
		{"note:///{name}", "file:///a", false},
		{"file:///{+path}", "file:///a/b?c", true},
		{"file:///{path*}", "file:///a/b", true},
		{"repo://{owner}/{name}/issues/{n}", "repo://o/n/issues/7", true},
		{"repo://{owner}/{name}/issues/{n}", "repo://o/n/pulls/7", false},
		{"repo://{owner}/{name}/readme", "repo://o/n/readme", true},
		{"repo://{owner}/{name}/readme", "repo://o/n/readme/x", false},
		{"repo://{owner}/{name}/readme", "repo://o/n", false},
		{"find:///{dir}{?q,n}", "find:///d?q=1", true},
		{"find:///{dir}.txt", "find:///d.txt", true},
		{"find:///{dir}.txt", "find:///d.txt.gz", false},
		{"fixed:///x", "fixed:///x", true},
		{"fixed:///x", "fixed:///xy", false},
		{"{+uri}", "any:///x", true},
		{"broken:///{x", "broken:///y", true},
		{"", "x", false},
	} {
		if got := matches(tt.template, tt.uri); got != tt.want {
			t.Errorf("matches(%q, %q) = %v, want %v", tt.template, tt.uri, got, tt.want)
		}
	}
}
