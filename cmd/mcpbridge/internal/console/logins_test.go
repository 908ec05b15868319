package console

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// holding returns an admin address that holds logins, by server, of ada; an empty server means all.
func holding(t *testing.T, asked *[]string) *Admin {
	t.Helper()
	logins := map[string]string{
		"docs":  `{"server":"docs","principal":"ada","issuer":"https://id.example.com","revoked":true}`,
		"files": `{"server":"files\u001b[2J","principal":"ada","issuer":"https://id.example.com","revoked":false,"why":"it took too long"}`,
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		*asked = append(*asked, fmt.Sprintf("%s %s %s %s", r.Method, r.URL.Path, r.Header.Get("Content-Type"), text))
		var of struct{ Principal, Server string }
		_ = json.Unmarshal(text, &of)
		var ended []string
		for _, server := range []string{"docs", "files"} {
			if of.Principal == "ada" && (of.Server == "" || of.Server == server) {
				ended = append(ended, logins[server])
			}
		}
		_, _ = fmt.Fprintf(w, `{"ended":[%s]}`, strings.Join(ended, ","))
	}))
	t.Cleanup(s.Close)
	return &Admin{Address: Address{URL: s.URL}}
}

// A person is told of each login that was ended, and where it may be used still.
func TestEndLogins(t *testing.T) {
	const (
		docs  = "ada at docs: logged out\n"
		files = "ada at files\\x1b[2J: logged out; the login was not revoked at https://id.example.com: it took too long\n"
	)
	for _, tt := range []struct {
		principal string
		servers   []string
		want, err string
	}{
		{"ada", nil, docs + files, ""},
		{"ada", []string{"files", "docs"}, files + docs, ""},
		{"ada", []string{"none", "docs"}, docs, ""},
		{"ada", []string{"none", "other"}, "", `"ada" has no login at none, other`},
		{"bob", nil, "", `"bob" has no login at any server`},
	} {
		var asked []string
		var out bytes.Buffer
		err := holding(t, &asked).EndLogins(t.Context(), &Logout{Principal: tt.principal, Servers: tt.servers, Out: &out})
		if out.String() != tt.want || tt.err == "" && err != nil || tt.err != "" && (err == nil || err.Error() != tt.err) {
			t.Errorf("EndLogins of %s at %q = %v, and prints\n%s\nwant %q and\n%s", tt.principal, tt.servers, err, &out, tt.err, tt.want)
		}
		if want := max(1, len(tt.servers)); len(asked) != want || !strings.HasPrefix(asked[0], `POST /api/logout application/json {"principal":"`+tt.principal+`"`) {
			t.Errorf("EndLogins of %s at %q asks %q, want %d questions", tt.principal, tt.servers, asked, want)
		}
	}
}

func TestEndLoginsAsJSON(t *testing.T) {
	var out bytes.Buffer
	err := holding(t, new([]string)).EndLogins(t.Context(), &Logout{Principal: "ada", Servers: []string{"files"}, JSON: true, Out: &out})
	const want = `[
  {
    "server": "files\u001b[2J",
    "principal": "ada",
    "issuer": "https://id.example.com",
    "revoked": false,
    "why": "it took too long"
  }
]
`
	if err != nil || out.String() != want {
		t.Errorf("EndLogins = %v, and prints\n%s\nwant\n%s", err, &out, want)
	}
}
