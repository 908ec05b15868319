package downstream

import (
	"net/http"
	"testing"
)

func TestAccepts(t *testing.T) {
	for _, tt := range []struct {
		header []string
		want   bool
	}{
		{nil, true},
		{[]string{"text/event-stream"}, true},
		{[]string{"application/json, Text/Event-Stream;q=0.5"}, true},
		{[]string{"application/json", "text/*"}, true},
		{[]string{"*/*"}, true},
		{[]string{"application/json"}, false},
		{[]string{"text/html"}, false},
		{[]string{"text/event-stream;q=0"}, false},
		{[]string{""}, false},
	} {
		h := http.Header{"Accept": tt.header}
		if got := Accepts(h, "text/event-stream"); got != tt.want {
			t.Errorf("Accepts(%q) = %v, want %v", tt.header, got, tt.want)
		}
	}
}
