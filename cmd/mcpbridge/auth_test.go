package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

// What token prints lets its client in, and nobody else.
func TestTokenCommand(t *testing.T) {
	got := runCommand(t.Context(), nil, "token", "alice", "--json")
	var m madeToken
	if err := json.Unmarshal([]byte(got.out), &m); err != nil || got.code != 0 || m.Name != "alice" {
		t.Fatalf("token = %+v", got)
	}
	if sum := sha256.Sum256([]byte(m.Token)); hex.EncodeToString(sum[:]) != m.SHA256 || len(m.Token) < 40 {
		t.Errorf("token = %+v, want a long one and its SHA-256", m)
	}
	path := configFile(t, "auth: {tokens: [{name: alice, sha256: "+m.SHA256+"}]}\nservers: {notes: {builtin: notebook}}\n")
	s := serve(t, nil, path)
	for _, tt := range []struct {
		authorization string
		status        int
	}{{"", 401}, {"Bearer " + m.SHA256, 401}, {"Bearer " + m.Token + "x", 401}, {"Bearer " + m.Token, 200}} {
		if got := initializeAs(t, s.Endpoints[0].URL, tt.authorization); got != tt.status {
			t.Errorf("with %q = %d, want %d", tt.authorization, got, tt.status)
		}
	}
	if strings.Contains(s.log.String(), m.Token) {
		t.Error("the log has the token")
	}
	if called := runCommand(t.Context(), nil, "call", s.Endpoints[0].URL, "-H", "Authorization: Bearer "+m.Token); called.code != 0 {
		t.Errorf("call with the token = %+v", called)
	}
}

// initializeAs sends a handshake and returns the status of the answer.
func initializeAs(t *testing.T, url, authorization string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"0"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if authorization != "" {
		req.Header.Set("Authorization", authorization)
	}
	res, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	return res.StatusCode
}

func TestTokenCommandMistakes(t *testing.T) {
	for _, tt := range []struct{ args, want string }{
		{"token a b", `one name is enough; leave "b" out`},
		{"token anonymous", `"anonymous" can't be the name of a principal`},
		{"token a/b", `"a/b" can't be the name of a principal`},
	} {
		if got := runCommand(t.Context(), nil, strings.Fields(tt.args)...); got.code != exitUsage || got.out != "" || !strings.Contains(got.err, tt.want) {
			t.Errorf("%s = %+v, want %s", tt.args, got, tt.want)
		}
	}
}

// Where nobody could read a token, none is made, and mcpbridge does not start.
func TestServeBeyondLoopbackWithoutAuth(t *testing.T) {
	got := runCommand(t.Context(), nil, "serve", "--listen", "0.0.0.0:0", "--admin", "off")
	if got.code != exitUsage || got.out != "" || !strings.Contains(got.err, "mcpbridge token") {
		t.Errorf("serve = %+v, want a refusal that names mcpbridge token", got)
	}
}
