package console

import (
	"context"
	"crypto/tls"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
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

// Who does not answer is told apart, with what to do.
func TestAskWhoDoesNotAnswer(t *testing.T) {
	const nobody = "http://127.0.0.1:1"
	socket := filepath.Join(t.TempDir(), "s")
	late, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()
	for _, tt := range []struct {
		name string
		ctx  context.Context
		a    Address
		want string
	}{
		{"nobody", t.Context(), Address{URL: nobody}, "mcpbridge does not answer at " + nobody + ": connection refused; is it running, with this configuration?"},
		{"no socket", t.Context(), Address{Socket: socket}, "mcpbridge does not answer at unix:" + socket + ": there is no such socket; is it running, with this configuration?"},
		{"too late", late, Address{URL: nobody}, "mcpbridge does not answer at " + nobody + ": it took too long; --timeout allows more"},
		{"no URL", t.Context(), Address{URL: "http://%zz"}, `http://%zz is not an address that can be asked: parse "http://%zz/healthz": invalid URL escape "%zz"`},
	} {
		if got, err := Ask(tt.ctx, tt.a, "/healthz"); err == nil || err.Error() != tt.want || got != "" {
			t.Errorf("%s: Ask = %q, %v, want %s", tt.name, got, err, tt.want)
		}
	}
}

// saysOK is a process that is well.
func saysOK(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"status":"ok"}`) }

// A process is known by the certificate of its configuration: whatever the names in it, and however
// long ago it has expired, since that is for clients to see.
func TestAskKnowsTheCertificate(t *testing.T) {
	dir := t.TempDir()
	cert, key, _ := bridgetest.NewAuthority(t, "authority").Files(dir, bridgetest.Leaf{Names: []string{"mcp.example.com"}, NotAfter: time.Now().Add(-time.Minute)})
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(http.HandlerFunc(saysOK))
	s.TLS, s.Config.ErrorLog = &tls.Config{Certificates: []tls.Certificate{pair}}, log.New(io.Discard, "", 0)
	s.StartTLS()
	defer s.Close()
	if got, err := Ask(t.Context(), Address{URL: s.URL, Cert: cert}, "/healthz"); got != "ok" || err != nil {
		t.Errorf("Ask = %q, %v, want ok", got, err)
	}
	if got, err := Ask(t.Context(), Address{URL: s.URL, Cert: cert + ".none"}, "/healthz"); err == nil || got != "" {
		t.Errorf("Ask = %q, %v without the file", got, err)
	}
}

// A healthcheck over TLS is answered by who has the certificate of the configuration, or
// not at all.
func TestHardeningHealthcheckKnowsTheCertificate(t *testing.T) {
	cert, _, _ := bridgetest.NewAuthority(t, "authority").Files(t.TempDir(), bridgetest.Leaf{})
	other := httptest.NewUnstartedServer(http.HandlerFunc(saysOK))
	other.Config.ErrorLog = log.New(io.Discard, "", 0)
	other.StartTLS()
	defer other.Close()
	if got, err := Ask(t.Context(), Address{URL: other.URL, Cert: cert}, "/healthz"); err == nil || !strings.HasSuffix(err.Error(), ": the certificate is not that of "+cert) {
		t.Errorf("Ask = %q, %v, want another certificate refused", got, err)
	}
}
