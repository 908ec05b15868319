package admission

import (
	"bytes"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/trust/auth"
)

// judged is an authenticator of a test, which says the same of every request.
type judged struct {
	id  *mcp.Identity
	err error
}

func (j judged) Authenticate(*http.Request, *auth.Endpoint) (*mcp.Identity, error) {
	return j.id, j.err
}
func (j judged) Metadata(*auth.Endpoint) []byte { return nil }
func (j judged) Scopes() []string               { return []string{"use"} }

// refusals counts refused credentials by their reason.
type refusals struct {
	mcp.NoMetrics
	bridgetest.Counts
}

func (r *refusals) Refused(server, reason string) { r.Add(server + " " + reason) }

// newTestGuard returns a guard of the server files, what it counts and its log.
func newTestGuard(t *testing.T, by auth.Authenticator) (*Guard, *refusals, *bytes.Buffer) {
	t.Helper()
	counts, log := &refusals{}, new(bytes.Buffer)
	g, err := NewGuard(GuardOptions{
		Server: "files", Auth: by, PublicURL: "https://gateway.test/mcp/files", Metrics: counts, Logger: slog.New(slog.NewTextHandler(log, nil)),
		Proxies: func() Proxies { return Proxies{netip.MustParsePrefix("192.0.2.0/24")} },
	})
	if err != nil {
		t.Fatal(err)
	}
	return g, counts, log
}

func TestGuardKnowsSenders(t *testing.T) {
	ada := &mcp.Identity{Principal: "ada"}
	for _, tt := range []struct {
		name string
		by   auth.Authenticator
		want mcp.Sender
	}{
		{"everybody is let in", nil, mcp.Sender{Share: mcp.NewShare(mcp.Anonymous, netip.MustParseAddr("10.0.0.7"))}},
		{"one with a credential", judged{id: ada}, mcp.Sender{Share: mcp.Share{Principal: "ada"}, Identity: ada}},
	} {
		g, _, _ := newTestGuard(t, tt.by)
		r := httptest.NewRequest(http.MethodPost, "/mcp/files", nil) // of 192.0.2.1, a proxy
		r.Header.Set("X-Forwarded-For", "10.0.0.7")
		if got, ok := g.Authenticate(httptest.NewRecorder(), r); !ok || got != tt.want {
			t.Errorf("%s: Authenticate() = %+v, %v, want %+v, true", tt.name, got, ok, tt.want)
		}
	}
}

// Whoever is refused hears how to ask for a credential, or that it may try again; each cause is
// counted, and logged once in a while.
func TestGuardRefuses(t *testing.T) {
	invalid := &auth.Refusal{Code: auth.CodeInvalidToken, Reason: "its signature is wrong"}
	for _, tt := range []struct {
		name    string
		err     error
		status  int
		header  string // and what it has
		has     string
		counted string
		log     string
	}{
		{"without a credential", &auth.Refusal{Reason: "it has none"}, http.StatusUnauthorized, "WWW-Authenticate", "Bearer", "files no_credential", "it has none"},
		{"a wrong one", invalid, http.StatusUnauthorized, "WWW-Authenticate", "invalid_token", "files invalid_token", "its signature is wrong"},
		{"one that can't be verified", errors.New("the issuer is away"), http.StatusServiceUnavailable, "Retry-After", "1", "files not_verified", "the issuer is away"},
	} {
		g, counts, log := newTestGuard(t, judged{err: tt.err})
		for range 3 {
			w := httptest.NewRecorder()
			if _, ok := g.Authenticate(w, httptest.NewRequest(http.MethodPost, "/mcp/files", nil)); ok || w.Code != tt.status || !strings.Contains(w.Header().Get(tt.header), tt.has) {
				t.Errorf("%s: status %d, %s %q, want %d and %q", tt.name, w.Code, tt.header, w.Header().Get(tt.header), tt.status, tt.has)
			}
			if strings.Contains(w.Body.String(), tt.log) {
				t.Errorf("%s: the client hears why: %s", tt.name, w.Body)
			}
		}
		if n, lines := counts.Count(tt.counted), strings.Count(log.String(), tt.log); n != 3 || lines != 1 {
			t.Errorf("%s: counted %d times, logged %d times, want 3 and once:\n%s", tt.name, n, lines, log)
		}
	}
}

func TestGuardScopes(t *testing.T) {
	of, _, _ := newTestGuard(t, judged{})
	none, _, _ := newTestGuard(t, nil)
	if got := of.Scopes([]string{"more", "use"}); !slices.Equal(got, []string{"use", "more"}) {
		t.Errorf("Scopes() = %q, want those of every request first, and each once", got)
	}
	if got := none.Scopes([]string{"more"}); !slices.Equal(got, []string{"more"}) {
		t.Errorf("Scopes() = %q without metadata, want what is asked for", got)
	}
}
