package certs

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
)

// A mutual is a server that wants client certificates of one authority, over a real
// socket.
type mutual struct {
	*httptest.Server
	servers *bridgetest.Authority
	ca      string // the file of the clients' authority
}

func newMutual(t *testing.T, clients *bridgetest.Authority, required bool) *mutual {
	t.Helper()
	m := &mutual{servers: bridgetest.NewAuthority(t, "servers")}
	cert, key, _ := m.servers.Files(t.TempDir(), bridgetest.Leaf{})
	_, _, m.ca = clients.Files(t.TempDir(), bridgetest.Leaf{})
	s, err := Open(Files{Cert: cert, Key: key, CA: m.ca}, nil)
	if err != nil {
		t.Fatal(err)
	}
	m.Server = httptest.NewUnstartedServer(s.Guard(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := "nobody"
		if r.TLS != nil && len(r.TLS.VerifiedChains) > 0 {
			name = r.TLS.VerifiedChains[0][0].Subject.CommonName
		}
		_, _ = io.WriteString(w, name)
	})))
	m.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug)
	m.TLS = s.Server(required)
	m.StartTLS()
	t.Cleanup(m.Close)
	return m
}

// client returns a client that shows certificates.
func (m *mutual) client(t *testing.T, shown ...tls.Certificate) *http.Client {
	tr := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: bridgetest.Pool(m.servers), ClientSessionCache: tls.NewLRUClientSessionCache(8)}}
	if len(shown) > 0 {
		// By this function the certificate is shown even if its authority is not among
		// those that the server names.
		tr.TLSClientConfig.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &shown[0], nil }
	}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

func (m *mutual) get(c *http.Client) (int, string, error) {
	resp, err := c.Get(m.URL)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text), err
}

// Nobody gets in with a certificate that is not of the authority, or not valid any more.
func TestHardeningClientCertificates(t *testing.T) {
	clients := bridgetest.NewAuthority(t, "clients")
	foreign := bridgetest.NewAuthority(t, "clients") // of the same name
	for _, tt := range []struct {
		name     string
		required bool
		shown    []tls.Certificate
		want     string // empty: refused
	}{
		{"valid", true, []tls.Certificate{clients.Pair(bridgetest.Leaf{})}, "test"},
		{"valid, optional", false, []tls.Certificate{clients.Pair(bridgetest.Leaf{})}, "test"},
		{"none", true, nil, ""},
		{"none, optional", false, nil, "nobody"},
		{"expired", true, []tls.Certificate{clients.Pair(bridgetest.Leaf{NotAfter: time.Now().Add(-time.Minute)})}, ""},
		{"expired, optional", false, []tls.Certificate{clients.Pair(bridgetest.Leaf{NotAfter: time.Now().Add(-time.Minute)})}, ""},
		{"of another authority", true, []tls.Certificate{foreign.Pair(bridgetest.Leaf{})}, ""},
		{"of another authority, optional", false, []tls.Certificate{foreign.Pair(bridgetest.Leaf{})}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := newMutual(t, clients, tt.required)
			code, text, err := m.get(m.client(t, tt.shown...))
			if tt.want == "" && err == nil || tt.want != "" && (err != nil || code != 200 || text != tt.want) {
				t.Errorf("GET = %d %q, %v, want %q", code, text, err, tt.want)
			}
		})
	}
}

// A connection that is open when its authority is removed serves no further request, nor
// can its session be resumed.
func TestHardeningRemovedAuthority(t *testing.T) {
	old, next := bridgetest.NewAuthority(t, "old"), bridgetest.NewAuthority(t, "next")
	m := newMutual(t, old, true)
	c := m.client(t, old.Pair(bridgetest.Leaf{}))
	if code, _, err := m.get(c); code != 200 || err != nil {
		t.Fatalf("GET = %d, %v", code, err)
	}
	write(t, m.ca, next.PEM())
	time.Sleep(look)
	if code, text, err := m.get(c); code != http.StatusMisdirectedRequest {
		t.Errorf("GET on the open connection = %d %q, %v, want 421", code, text, err)
	}
	if code, text, err := m.get(c); err == nil {
		t.Errorf("GET on a new connection = %d %q, want it refused", code, text)
	}
	if code, text, err := m.get(m.client(t, next.Pair(bridgetest.Leaf{}))); code != 200 || err != nil {
		t.Errorf("GET with a certificate of the new authority = %d %q, %v, want 200", code, text, err)
	}
}

// A connection outlives its client's certificate by no request.
func TestHardeningExpiryOnAnOpenConnection(t *testing.T) {
	clients := bridgetest.NewAuthority(t, "clients")
	m := newMutual(t, clients, true)
	end := time.Now().Add(4 * time.Second).Truncate(time.Second) // certificates count seconds
	c := m.client(t, clients.Pair(bridgetest.Leaf{NotAfter: end}))
	if code, _, err := m.get(c); code != 200 || err != nil {
		t.Fatalf("GET = %d, %v", code, err)
	}
	time.Sleep(time.Until(end) + time.Millisecond)
	if code, text, err := m.get(c); code != http.StatusMisdirectedRequest {
		t.Errorf("GET after the certificate expired = %d %q, %v, want 421", code, text, err)
	}
}

// What is shown to a server is what the files hold when a connection is made.
func TestClientShowsReplacedCertificate(t *testing.T) {
	old, next := bridgetest.NewAuthority(t, "old"), bridgetest.NewAuthority(t, "next")
	m := newMutual(t, next, true)
	dir := t.TempDir()
	cert, key, _ := old.Files(dir, bridgetest.Leaf{})
	_, _, ca := m.servers.Files(t.TempDir(), bridgetest.Leaf{})
	tr := &http.Transport{TLSClientConfig: Files{Cert: cert, Key: key, CA: ca}.Client("", nil)}
	defer tr.CloseIdleConnections()
	c := &http.Client{Transport: tr}
	if code, text, err := m.get(c); err == nil {
		t.Fatalf("GET with the old certificate = %d %q, want it refused", code, text)
	}
	next.Files(dir, bridgetest.Leaf{})
	time.Sleep(look)
	if code, text, err := m.get(c); code != 200 || err != nil {
		t.Errorf("GET with the new certificate = %d %q, %v", code, text, err)
	}
}

// A server is known by the authorities that the file has when a connection is made, and by
// its name: with a name of its own the configuration verifies by itself.
func TestHardeningServersOfReplacedAuthorities(t *testing.T) {
	m := newMutual(t, bridgetest.NewAuthority(t, "clients"), false)
	get := func(f Files, name string) error {
		tr := &http.Transport{TLSClientConfig: f.Client(name, nil), DisableKeepAlives: true}
		code, text, err := m.get(&http.Client{Transport: tr})
		if err == nil && code != 200 {
			err = fmt.Errorf("%d %s", code, text)
		}
		return err
	}
	dir := t.TempDir()
	_, _, ca := bridgetest.NewAuthority(t, "another").Files(dir, bridgetest.Leaf{})
	tr := &http.Transport{TLSClientConfig: Files{CA: ca}.Client("localhost", nil), DisableKeepAlives: true}
	c := &http.Client{Transport: tr}
	unknown := x509.UnknownAuthorityError{}
	if _, text, err := m.get(c); !errors.As(err, &unknown) {
		t.Fatalf("GET from a server of another authority = %q, %v", text, err)
	}
	m.servers.Files(dir, bridgetest.Leaf{})
	time.Sleep(look)
	if code, text, err := m.get(c); code != 200 || err != nil {
		t.Errorf("GET with its authority = %d %q, %v", code, text, err)
	}
	wrong := x509.HostnameError{}
	if err := get(Files{CA: ca}, "another.example"); !errors.As(err, &wrong) {
		t.Errorf("GET from a server of another name = %v", err)
	}
	bridgetest.NewAuthority(t, "another").Files(dir, bridgetest.Leaf{})
	time.Sleep(look)
	if _, text, err := m.get(c); !errors.As(err, &unknown) {
		t.Errorf("GET once its authority is removed = %q, %v", text, err)
	}
}

// A server's certificate that has expired is refused.
func TestHardeningExpiredServer(t *testing.T) {
	a := bridgetest.NewAuthority(t, "servers")
	_, _, ca := a.Files(t.TempDir(), bridgetest.Leaf{})
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.TLS = &tls.Config{Certificates: []tls.Certificate{a.Pair(bridgetest.Leaf{NotAfter: time.Now().Add(-time.Minute)})}}
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
	s.StartTLS()
	defer s.Close()
	tr := &http.Transport{TLSClientConfig: Files{CA: ca}.Client("localhost", nil), DisableKeepAlives: true}
	if resp, err := (&http.Client{Transport: tr}).Get(s.URL); err == nil {
		_ = resp.Body.Close()
		t.Error("a server is accepted whose certificate has expired")
	}
}

// Older revisions of TLS are not spoken.
func TestHardeningOldTLS(t *testing.T) {
	m := newMutual(t, bridgetest.NewAuthority(t, "clients"), false)
	for version, want := range map[uint16]bool{tls.VersionTLS10: false, tls.VersionTLS11: false, tls.VersionTLS12: true, tls.VersionTLS13: true} {
		c, err := tls.Dial("tcp", m.Listener.Addr().String(), &tls.Config{RootCAs: bridgetest.Pool(m.servers), MinVersion: version, MaxVersion: version})
		if err == nil {
			_ = c.Close()
		}
		if (err == nil) != want {
			t.Errorf("%s: %v, want it spoken: %v", tls.VersionName(version), err, want)
		}
	}
}
