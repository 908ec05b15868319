package router

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// What is tried is a request of the principal admin, of a client of either era, where others are
// refused: the admin address has decided who may.
func TestTry(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *Options) { o.Auth = byToken{} })
	r.peer.answers["tools/call"] = say("done")
	if got := r.tool(t, "1", "{}", ""); got.status != http.StatusUnauthorized {
		t.Fatalf("a client without a credential got %d", got.status)
	}
	at := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) { Try(r.g, w, req, req.URL.Query().Get("server")) }))
	defer at.Close()
	try := *r
	try.Server = at
	got := try.sendTo(t, http.MethodPost, "/?server=peer", modernBody("1", "tools/call", `"name":"a"`), "", modernHeaders("tools/call", "a"))
	if got.status != http.StatusOK || !strings.Contains(got.body, "done") {
		t.Errorf("a modern call = %d %s", got.status, got.body)
	}
	open := try.sendTo(t, http.MethodPost, "/?server=peer", hello, "", legacyHeaders(""))
	h := legacyHeaders(open.header.Get("Mcp-Session-Id"))
	if got := try.sendTo(t, http.MethodPost, "/?server=peer", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"}}`, "", h); !strings.Contains(got.body, "done") {
		t.Errorf("a legacy call = %d %s", got.status, got.body)
	}
	if got := try.sendTo(t, http.MethodDelete, "/?server=peer", "", "", h); got.status != http.StatusNoContent {
		t.Errorf("the end of the session = %d %s", got.status, got.body)
	}
	if got := try.sendTo(t, http.MethodPost, "/?server=other", hello, "", legacyHeaders("")); got.status != http.StatusNotFound || !strings.Contains(got.body, `no server named \"other\"`) {
		t.Errorf("another server = %d %s", got.status, got.body)
	}
}

// The fields that are for the admin address stay there, and the connection with it.
func TestHardeningTryIsAClients(t *testing.T) {
	t.Parallel()
	r := httptest.NewRequest(http.MethodPost, "/api/mcp/x?y=z", strings.NewReader("{}"))
	for _, name := range own {
		r.Header.Set(name, "the-secret")
	}
	r.Header.Set("Mcp-Method", "tools/list")
	got := asClient(r, "peer")
	if len(got.Header) != 1 || got.Header.Get("Mcp-Method") == "" || got.URL.String() != "http://example.com/mcp/peer" && got.URL.String() != "/mcp/peer" {
		t.Errorf("the request is %s with %v", got.URL, got.Header)
	}
	if r.Header.Get("Cookie") == "" {
		t.Error("the header of the admin address's own request was changed")
	}
	var w http.ResponseWriter = bound{httptest.NewRecorder()}
	if _, _, err := http.NewResponseController(w).Hijack(); err == nil {
		t.Error("the connection can be taken over")
	}
}
