package router

import (
	"net/http/httptest"
	"strings"
	"testing"
)

// The way past the mux leads where the mux does.
func TestPlainEndpoints(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	g := r.g
	for path, direct := range map[string]bool{
		"/mcp/peer": true, "/mcp/peer?x=1": true, "/mcp/p%65er": false, "/mcp%2Fpeer": false, "/mcp/peer/": false,
		"/mcp/": false, "/mcp": false, "/mcp//peer": false, "/mcp/../mcp/peer": false, "/mcp/other": false, "/": false,
	} {
		ask := func(serve func(*httptest.ResponseRecorder)) string {
			w := httptest.NewRecorder()
			serve(w)
			return w.Result().Status + w.Body.String()
		}
		got := ask(func(w *httptest.ResponseRecorder) {
			g.ServeHTTP(w, httptest.NewRequest("POST", path, strings.NewReader("{}")))
		})
		want := ask(func(w *httptest.ResponseRecorder) {
			g.now().mux.ServeHTTP(w, httptest.NewRequest("POST", path, strings.NewReader("{}")))
		})
		if got != want {
			t.Errorf("%s: ServeHTTP answers %s, the mux %s", path, got, want)
		}
		if s := g.now().serverAt(httptest.NewRequest("POST", path, nil).URL); (s != nil) != direct {
			t.Errorf("%s: plainly = %v, want direct = %v", path, s, direct)
		}
	}
}
