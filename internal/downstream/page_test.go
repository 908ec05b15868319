package downstream

import (
	"net/http/httptest"
	"strings"
	"testing"
)

// chrome is what a browser accepts of a page that a person opens.
const chrome = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8,application/signed-exchange;v=b3;q=0.7"

// A browser gets a page, and no client does, whatever else it accepts.
func TestPrefersPage(t *testing.T) {
	for _, tt := range []struct {
		accept []string
		want   bool
	}{
		{nil, false},
		{[]string{"*/*"}, false},
		{[]string{"text/event-stream"}, false},
		{[]string{"application/json, text/event-stream"}, false},
		{[]string{chrome}, true},
		{[]string{"application/json;q=0.9, text/html"}, true},
		{[]string{chrome + ", text/event-stream"}, false},
		{[]string{chrome, "Text/Event-Stream;q=0.1"}, false},
		{[]string{"application/json, text/html"}, false},
		{[]string{"text/html;q=0.5, application/json"}, false},
		{[]string{"text/html;q=0"}, false},
		{[]string{"text/html; q"}, false},
	} {
		if got := PrefersPage(tt.accept); got != tt.want {
			t.Errorf("PrefersPage(%q) = %v, want %v", tt.accept, got, tt.want)
		}
	}
}

// Nothing of a name or a URL becomes a part of the page's HTML, and what a page tells depends on what
// there is to tell.
func TestPage(t *testing.T) {
	for _, tt := range []struct {
		page         Page
		wants, lacks []string
	}{
		{
			Page{Name: "notes", URL: "https://x/mcp/notes"},
			[]string{"<title>notes: an MCP endpoint of mcpbridge</title>", "serves the server notes here", `"args": ["wrap", "https://x/mcp/notes"]`, "mcpbridge ls https://x/mcp/notes\n"},
			[]string{"HTTP+SSE, the transport", "need credentials", "the group"},
		},
		{
			Page{Name: "all", URL: "https://x/<b>&", Group: true, Known: true, Events: "https://x/sse/all?<i>"},
			[]string{"serves the group of servers all here", "https://x/&lt;b&gt;&amp;", "connect to\n\n  https://x/sse/all?&lt;i&gt;\n", "Requests need credentials"},
			[]string{"<b>", "<i>", "{url}", "{events}"},
		},
	} {
		w := httptest.NewRecorder()
		tt.page.Write(w)
		body := w.Body.String()
		for _, want := range tt.wants {
			if !strings.Contains(body, want) {
				t.Errorf("page of %s lacks %q:\n%s", tt.page.Name, want, body)
			}
		}
		for _, no := range tt.lacks {
			if strings.Contains(body, no) {
				t.Errorf("page of %s has %q:\n%s", tt.page.Name, no, body)
			}
		}
		if got := w.Header().Get("Content-Security-Policy"); !strings.HasPrefix(got, "default-src 'none'") {
			t.Errorf("page of %s may load something: %q", tt.page.Name, got)
		}
	}
}
