package console

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// What is not well, or no mcpbridge, is not taken for one that is.
func TestAskOthers(t *testing.T) {
	for _, tt := range []struct {
		name, reply string
		code        int
		want        string
	}{
		{"draining", `{"status":"draining","servers":[]}`, 503, `answers 503 Service Unavailable: "draining"`},
		{"another program", "<html>", 200, "is admin the address of another program?"},
		{"another program's JSON", `{"up":true}`, 200, "is admin the address of another program?"},
		{"elsewhere", `{"status":"ok"}`, 302, "answers 302 Found"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Location", "/elsewhere")
				w.WriteHeader(tt.code)
				_, _ = io.WriteString(w, tt.reply)
			}))
			defer other.Close()
			if got, err := Ask(t.Context(), Address{URL: other.URL}, "/healthz"); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Ask = %q, %v, want %q", got, err, tt.want)
			}
		})
	}
}
