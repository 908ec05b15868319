package fetch

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
)

func TestMain(m *testing.M) { os.Exit(bridgetest.Main(m)) }

// names is a lookup of names that are in no DNS.
func names(of map[string]string) func(context.Context, string) ([]netip.Addr, error) {
	return func(_ context.Context, host string) ([]netip.Addr, error) {
		a, ok := of[host]
		switch {
		case host == "nowhere.example":
			return nil, nil
		case !ok:
			return nil, errors.New("no such host")
		}
		return []netip.Addr{netip.MustParseAddr(a)}, nil
	}
}

func noProxy(*http.Request) (*url.URL, error) { return nil, nil }

// A document that a server names must not lead to hosts that only the gateway can reach
// (CWE-918): other schemes, addresses inside, and spellings that hide them.
func TestRefusesURLsThatPointInside(t *testing.T) {
	for _, tt := range []struct{ near, url, why string }{
		{"https://mcp.example/mcp", "http://as.example/", "http://"},
		{"https://mcp.example/mcp", "ftp://as.example/", "not one of https"},
		{"https://mcp.example/mcp", "file:///etc/passwd", "host"},
		{"https://mcp.example/mcp", "javascript:alert(1)", "host"},
		{"https://mcp.example/mcp", "https://user:pass@as.example/", "user name"},
		{"https://mcp.example/mcp", "https://127.0.0.1/", "loopback"},
		{"https://mcp.example/mcp", "https://localhost/", "loopback"},
		{"https://mcp.example/mcp", "https://LOCALHOST:8443/", "loopback"},
		{"https://mcp.example/mcp", "https://a.localhost/", "loopback"},
		{"https://mcp.example/mcp", "https://[::1]/", "loopback"},
		{"https://mcp.example/mcp", "https://[::ffff:127.0.0.1]/", "loopback"},
		{"https://mcp.example/mcp", "https://[::ffff:10.0.0.1]/", "private"},
		{"https://mcp.example/mcp", "https://10.0.0.1/", "private"},
		{"https://mcp.example/mcp", "https://192.168.1.1/", "private"},
		{"https://mcp.example/mcp", "https://100.64.0.1/", "private"},
		{"https://mcp.example/mcp", "https://[fd00::1]/", "private"},
		{"https://mcp.example/mcp", "https://169.254.169.254/latest/meta-data/", "special"},
		{"https://mcp.example/mcp", "https://[fe80::1]/", "special"},
		{"https://mcp.example/mcp", "https://[fe80::1%25eth0]/", "special"},
		{"https://mcp.example/mcp", "https://0.0.0.0/", "special"},
		{"https://mcp.example/mcp", "https://[::]/", "special"},
		{"https://mcp.example/mcp", "https://[64:ff9b::7f00:1]/", "special"},
		{"https://mcp.example/mcp", "https://[2002:7f00:1::]/", "special"},
		{"https://mcp.example/mcp", "https://[::127.0.0.1]/", "special"},
		// A private server has private issuers, but none on this machine or at a cloud's.
		{"https://10.0.0.5/mcp", "https://127.0.0.1/", "loopback"},
		{"https://10.0.0.5/mcp", "https://169.254.169.254/", "special"},
		{"https://10.0.0.5/mcp", "http://10.0.0.6/", "http://"},
		{"http://127.0.0.1:1/mcp", "https://10.0.0.1/", "private"},
		{"http://127.0.0.1:1/mcp", "http://10.0.0.1/", "http://"},
		{"http://127.0.0.1:1/mcp", "http://evil.example/", "http://"},
		{"https://169.254.169.254/mcp", "https://169.254.1.1/", "special"}, // nobody is at home there
		{"https://mcp.example/mcp", "https:as.example", "host"},
		{"https://nowhere.example/mcp", "https://10.0.0.1/", "private"},
	} {
		c := New(Options{Near: []string{tt.near}, Proxy: noProxy, lookup: names(map[string]string{"mcp.example": "192.0.1.1"})})
		if err := c.Check(t.Context(), tt.url); err == nil || !strings.Contains(err.Error(), tt.why) {
			t.Errorf("near %s: Check(%s) = %v, want a refusal for %q", tt.near, tt.url, err, tt.why)
		}
		resp, err := c.HTTP().Get(tt.url)
		if err == nil {
			resp.Body.Close()
			t.Errorf("near %s: fetched %s", tt.near, tt.url)
		}
	}
}

// A host that is allowed may have any address, but what is sent to it is not in the open.
func TestAllowedHostsNeedTLS(t *testing.T) {
	c := New(Options{Near: []string{"https://mcp.example/mcp"}, AllowHosts: []string{"127.0.0.1", "LocalHost"}, Proxy: noProxy, lookup: names(map[string]string{"mcp.example": "192.0.1.1"})})
	for _, in := range []string{"http://127.0.0.1/", "http://localhost/"} {
		if err := c.Check(t.Context(), in); err == nil || !strings.Contains(err.Error(), "http://") {
			t.Errorf("Check(%s) = %v, want a refusal", in, err)
		}
	}
	s := httptest.NewTLSServer(nil)
	defer s.Close()
	for _, host := range []string{"127.0.0.1", "LOCALHOST"} {
		if err := c.Check(t.Context(), "https://"+host+"/"); err != nil {
			t.Errorf("Check(https://%s/) = %v", host, err)
		}
		conn, err := c.guard.dial(t.Context(), "tcp4", host+s.URL[strings.LastIndexByte(s.URL, ':'):])
		if err != nil {
			t.Fatalf("dial(%s) = %v", host, err)
		}
		conn.Close()
	}
}

// What is no address belongs to nobody.
func TestNoAddressIsSpecial(t *testing.T) {
	if z := zoneOf(netip.Addr{}); z != special {
		t.Errorf("zoneOf of none = %v", z)
	}
}

func TestAllowsWhatIsOfTheServersKind(t *testing.T) {
	for _, tt := range []struct{ near, url string }{
		{"https://mcp.example/mcp", "https://as.example/"},
		{"https://mcp.example/mcp", "https://93.184.216.34/"},
		{"https://mcp.example/mcp", "https://inside.corp/"}, // its address decides
		{"https://inside.corp/mcp", "https://10.9.9.9/"},
		{"https://10.0.0.5/mcp", "https://192.168.7.7/"},
		{"http://127.0.0.1:1/mcp", "http://127.0.0.1:2/"},
		{"http://localhost:1/mcp", "http://[::1]:2/"},
		{"https://mcp.example/mcp", "https://10.1.1.1/"}, // allowed by name
	} {
		c := New(Options{Near: []string{tt.near}, AllowHosts: []string{"10.1.1.1"}, Proxy: noProxy,
			lookup: names(map[string]string{"mcp.example": "192.0.1.1", "inside.corp": "10.2.3.4"})})
		if err := c.Check(t.Context(), tt.url); err != nil {
			t.Errorf("near %s: Check(%s) = %v, want nil", tt.near, tt.url, err)
		}
	}
}

// A name that looks public is checked by the address to which the connection is made: what
// it resolved to before counts for nothing (CWE-367, DNS rebinding).
func TestChecksTheAddressThatIsDialled(t *testing.T) {
	reached := false
	inside := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached = true }))
	defer inside.Close()
	g := newGuard(&Options{Near: []string{"https://mcp.example/mcp"}, lookup: names(map[string]string{"mcp.example": "192.0.1.1"})})
	_, err := g.dial(t.Context(), "tcp", "localhost:"+inside.URL[strings.LastIndexByte(inside.URL, ':')+1:])
	var refused *RefusedError
	if !errors.As(err, &refused) || reached {
		t.Errorf("dial = %v, reached %v, want a refusal before anything is sent", err, reached)
	}
	if strings.Contains(refused.Public(), "localhost") {
		t.Errorf("clients are told %q, with the host", refused.Public())
	}
}

// Who has the server's name in DNS must not be able to move it inside later, and so to
// have what is inside fetched.
func TestServersKindIsDecidedOnce(t *testing.T) {
	address := "192.0.1.1"
	c := New(Options{Near: []string{"https://mcp.example/mcp"}, Proxy: noProxy, lookup: func(context.Context, string) ([]netip.Addr, error) {
		return []netip.Addr{netip.MustParseAddr(address)}, nil
	}})
	if err := c.Check(t.Context(), "https://10.0.0.1/"); err == nil {
		t.Error("a public server led to a private address")
	}
	address = "10.0.0.9"
	if err := c.Check(t.Context(), "https://10.0.0.1/"); err == nil {
		t.Error("a server that moved inside led to a private address")
	}
}

// Of two lookups at once, the answer that came first stands.
func TestServersKindIsDecidedByTheFirst(t *testing.T) {
	slow, asked := make(chan string), make(chan bool, 2)
	g := newGuard(&Options{Near: []string{"https://mcp.example/mcp"}, lookup: func(context.Context, string) ([]netip.Addr, error) {
		asked <- true
		return []netip.Addr{netip.MustParseAddr(<-slow)}, nil
	}})
	zones := make(chan zone, 2)
	for range 2 {
		go func() { zones <- g.zoneOfNear(t.Context(), 0) }()
		<-asked
	}
	slow <- "192.0.1.1"
	first := <-zones
	slow <- "10.0.0.9"
	if second := <-zones; first != public || second != public || g.zoneOfNear(t.Context(), 0) != public {
		t.Errorf("the zone is %v, and then %v, want the first answer's", first, second)
	}
}

// One public address among private ones is enough to be an outsider's.
func TestMixedAddressesAreNotInside(t *testing.T) {
	c := New(Options{Near: []string{"https://mcp.example/mcp"}, Proxy: noProxy, lookup: func(context.Context, string) ([]netip.Addr, error) {
		return []netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("192.0.1.1")}, nil
	}})
	if err := c.Check(t.Context(), "https://10.0.0.1/"); err == nil {
		t.Error("a server with a public address led to a private one")
	}
}

// Redirects could lead anywhere, and take a POST's secrets along.
func TestFollowsNoRedirect(t *testing.T) {
	reached := 0
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/there", http.StatusTemporaryRedirect)
	})
	mux.HandleFunc("/there", func(http.ResponseWriter, *http.Request) { reached++ })
	s := httptest.NewServer(mux)
	defer s.Close()
	c := New(Options{Near: []string{s.URL}})
	err := c.JSON(t.Context(), s.URL, new(struct{}))
	var refused *RefusedError
	if !errors.As(err, &refused) || reached != 0 {
		t.Errorf("JSON = %v, reached %d times, want a refusal", err, reached)
	}
	resp, err := c.HTTP().PostForm(s.URL, url.Values{"client_secret": {"secret"}})
	if err == nil {
		resp.Body.Close()
		t.Error("a POST followed a redirect")
	}
}

// A document without end, or one that comes a byte a minute, must not occupy the gateway
// (CWE-400).
func TestBoundsDocuments(t *testing.T) {
	for _, tt := range []struct {
		name  string
		serve http.HandlerFunc
		want  string
	}{
		{"endless body", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"issuer":"`)
			for {
				if _, err := io.WriteString(w, strings.Repeat("a", 64<<10)); err != nil {
					return
				}
			}
		}, "larger than 1048576 bytes"},
		{"one byte too many", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"a":"`+strings.Repeat("a", MaxBody-7)+`"}`)
		}, "larger than 1048576 bytes"},
		{"endless header", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Long", strings.Repeat("a", 128<<10))
		}, "exceeded"},
		{"slow body", func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, `{`)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}, ""},
		{"slow header", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, ""},
		{"an array", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `[{}]`) }, "JSON object"},
		{"a page", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `<html>`) }, "JSON object"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := httptest.NewServer(tt.serve)
			defer s.Close()
			timeout := 30 * time.Second
			if tt.want == "" {
				timeout = 300 * time.Millisecond // nothing more comes
			}
			c := New(Options{Near: []string{s.URL}, Timeout: timeout})
			var doc map[string]any
			if err := c.JSON(t.Context(), s.URL, &doc); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("JSON = %v, want an error with %q", err, tt.want)
			}
		})
	}
}

// A compressed bomb is counted as it comes, and then is no JSON.
func TestDoesNotDecompress(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if e := r.Header.Get("Accept-Encoding"); e != "" {
			t.Errorf("Accept-Encoding = %q, want none", e)
		}
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write([]byte{0x1f, 0x8b})
	}))
	defer s.Close()
	if err := New(Options{Near: []string{s.URL}}).JSON(t.Context(), s.URL, new(struct{})); err == nil {
		t.Error("a compressed document was read")
	}
}

// Through a proxy only names can be checked, and are.
func TestChecksNamesBehindProxy(t *testing.T) {
	var asked []string
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Host)
		w.WriteHeader(http.StatusBadGateway)
	}))
	defer proxy.Close()
	at, _ := url.Parse(proxy.URL)
	c := New(Options{Near: []string{"https://mcp.example/"}, Proxy: http.ProxyURL(at), lookup: names(map[string]string{"mcp.example": "192.0.1.1"})})
	for _, inside := range []string{"https://10.0.0.1/", "https://localhost/", "https://169.254.169.254/"} {
		if err := c.JSON(t.Context(), inside, new(struct{})); err == nil || len(asked) != 0 {
			t.Errorf("%s: %v, the proxy was asked for %q", inside, err, asked)
		}
	}
	if err := c.JSON(t.Context(), "https://as.example/", new(struct{})); err == nil || len(asked) != 1 {
		t.Errorf("as.example: %v, the proxy was asked for %q, want it once", err, asked)
	}
}

// A server's own authority and client certificate are for that server: an issuer that it
// names is neither trusted for them, nor shown the certificate.
func TestServersTLSIsForTheServerAlone(t *testing.T) {
	serve := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "{}") })
	server, other := httptest.NewTLSServer(serve), httptest.NewTLSServer(serve)
	defer server.Close()
	defer other.Close()
	own := server.Client().Transport.(*http.Transport).TLSClientConfig
	c := New(Options{Near: []string{server.URL}, Server: server.URL, TLS: own})
	if err := c.JSON(t.Context(), server.URL+"/x", new(struct{})); err != nil {
		t.Errorf("from the server: %v", err)
	}
	if err := c.JSON(t.Context(), other.URL, new(struct{})); err == nil {
		t.Error("another host was trusted by the server's authority")
	}
}

func FuzzCheck(f *testing.F) {
	f.Add("https://[::ffff:127.0.0.1]/")
	f.Add("https://0x7f.1/")
	c := New(Options{Near: []string{"https://mcp.example/mcp"}, Proxy: noProxy, lookup: names(map[string]string{"mcp.example": "192.0.1.1"})})
	f.Fuzz(func(t *testing.T, text string) {
		if c.Check(context.Background(), text) != nil {
			return
		}
		u, err := url.Parse(text)
		if err != nil || u.Scheme != "https" || u.Hostname() == "" {
			t.Fatalf("allowed %q", text)
		}
		if a, err := netip.ParseAddr(u.Hostname()); err == nil && zoneOf(a) != public {
			t.Fatalf("allowed the address of %q", text)
		}
	})
}
