package router

import (
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/gateway/internal/access"
	"github.com/mcpbridge/mcpbridge/internal/trust/audit"
)

// openedAudit returns an audit log, and what its file has once the log is closed.
func openedAudit(t *testing.T, o audit.Options) (log *audit.Log, text func() string) {
	t.Helper()
	if o.Path == "" {
		o.Path = filepath.Join(t.TempDir(), "audit")
	}
	log, err := audit.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	return log, func() string {
		t.Helper()
		_ = log.Close() // the file says it
		text, err := os.ReadFile(o.Path)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
}

// A credential that is refused has a line, with the address that a trusted proxy has named and
// the cause; a request without one is no attempt.
func TestRefusedCredentialsAreAudited(t *testing.T) {
	t.Parallel()
	log, text := openedAudit(t, audit.Options{})
	g := newGuardedRig(t, nil, func(o *Options) {
		o.Audit = log
		o.Servers[0].Access = access.Options{Audit: log}
		o.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0")}
	})
	send := func(authorization ...string) {
		h := modernHeaders("tools/call", "a")
		h.Set("X-Forwarded-For", "203.0.113.7")
		h["Authorization"] = authorization
		g.send(t, http.MethodPost, modernBody("1", "tools/call", `"name":"a"`), h)
	}
	send()
	for range 5 {
		send("Bearer forged-token")
	}
	send("Bearer a", "Bearer b")
	send("Bearer " + g.issuer.Token(resource, map[string]any{"scope": "other"}))
	got := text()
	for _, want := range []string{
		`"address":"203.0.113.7","server":"peer","method":"authenticate","kind":"credential","decision":"deny","reason":"invalid_token: `,
		`"reason":"invalid_request: two Authorization headers"`, `"reason":"insufficient_scope: `, `"times":4`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in\n%s", want, got)
		}
	}
	if strings.Contains(got, "forged-token") || strings.Contains(got, "no credential") || strings.Count(got, "\n") != 4 {
		t.Errorf("the log is\n%s", got)
	}
}

// While a required log can't be written, every client of either era is told so: over HTTP with
// 503. Once it can be, all are served.
func TestRequiredAuditInEveryEra(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip(err)
	}
	for _, required := range []bool{true, false} {
		for _, d := range doors {
			t.Run(fmt.Sprintf("%s, required %v", d.name, required), func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				path := filepath.Join(dir, "audit")
				log, _ := openedAudit(t, audit.Options{Path: path, Required: required})
				defer func() { _ = log.Close() }()
				r := newRig(t, func(o *Options) {
					o.Audit = log
					o.Servers[0].Access = access.Options{Audit: log}
				})
				r.peer.answer("tools/call", say("done"))
				ask := d.open(t, r)
				call := func() string { return ask(d.request("tools/call", `"name":"a"`)) }
				if got := call(); !strings.Contains(got, "done") {
					t.Fatalf("before: %s", got)
				}
				fill(t, path, log)
				if got := call(); strings.Contains(got, "audit.required") != required || strings.Contains(got, "done") == required {
					t.Errorf("required %v: on a full disk: %s", required, got)
				}
				if got := ask(d.request("ping", "")); required && strings.Contains(got, "audit") {
					t.Errorf("ping: %s", got)
				}
				empty(t, path, log)
				if got := call(); !strings.Contains(got, "done") {
					t.Errorf("after: %s", got)
				}
			})
		}
	}
}

// The status is 503, and says when to try again, in both eras.
func TestRequiredAuditStatus(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip(err)
	}
	path := filepath.Join(t.TempDir(), "audit")
	log, _ := openedAudit(t, audit.Options{Path: path, Required: true})
	defer func() { _ = log.Close() }()
	r := newRig(t, func(o *Options) {
		o.Audit = log
		o.Servers[0].Access = access.Options{Audit: log}
	})
	session := r.enter(t)
	fill(t, path, log)
	for what, got := range map[string]answer{
		"modern":            r.send(t, http.MethodPost, modernBody("1", "tools/call", `"name":"a"`), modernHeaders("tools/call", "a")),
		"server/discover":   r.send(t, http.MethodPost, modernBody("1", "server/discover", ""), modernHeaders("server/discover", "")),
		"legacy":            r.send(t, http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"}}`, legacyHeaders(session)),
		"legacy initialize": r.send(t, http.MethodPost, hello, legacyHeaders("")),
	} {
		if got.status != http.StatusServiceUnavailable || got.header.Get("Retry-After") != "1" || !strings.Contains(got.body, "audit log can't be written") || !strings.Contains(got.body, `"id":`) {
			t.Errorf("%s: %d, Retry-After %q, %s", what, got.status, got.header.Get("Retry-After"), got.body)
		}
	}
}
