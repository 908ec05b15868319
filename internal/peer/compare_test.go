package peer

import (
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/replicastest"
	"github.com/mcpbridge/mcpbridge/internal/replicas"
)

// An asked is a replica that is asked, and who asks.
type asked struct {
	keys, theirs []string // [testKey] by default
	clock        time.Duration
	serve        http.Handler       // in the place of the replica
	theirTLS     *tls.Config        // nil: without
	tls          func() *tls.Config // nil: without
	instance     string             // by the engine; that of the replica by default
	closed       bool
}

// compare returns what differs, and what is said of it, a line each.
func (o asked) compare(t *testing.T) (replicas.Compared, string) {
	t.Helper()
	keys := func(all []string) []string {
		if all == nil {
			return []string{testKey}
		}
		return all
	}
	there := newGroup(t, replicas.Replica{Instance: "BBBBBBBB", Version: "9.9"}, keys(o.theirs)...)
	h := o.serve
	if h == nil {
		h = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			e, err := there.Open(r)
			if err != nil {
				Refuse(w, err)
				return
			}
			there.ServeHello(w, r, e)
		})
	}
	s := httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug) // of handshakes
	if s.TLS = o.theirTLS; s.TLS != nil {
		s.StartTLS()
	} else {
		s.Start()
	}
	if t.Cleanup(s.Close); o.closed {
		s.Close()
	}
	opts := Options{Engine: replicastest.Alone(edge), Keys: keys(o.keys)}
	if o.tls != nil {
		opts.TLS = o.tls()
		if s.TLS != nil && opts.TLS.RootCAs == nil {
			opts.TLS.RootCAs = x509.NewCertPool()
			opts.TLS.RootCAs.AddCert(s.Certificate())
		}
	}
	here, err := New(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(here.Close)
	to := replicas.Replica{Instance: o.instance, Addr: s.Listener.Addr().String()}
	c := here.Compare(t.Context(), to, func() time.Time { return time.Now().Add(o.clock) })
	var lines []string
	for _, d := range c.Differs {
		lines = append(lines, d.What+": "+d.Text)
	}
	return c, strings.Join(lines, "\n")
}

// about takes what is known to a second for what it should be.
var about = strings.NewReplacer(" 9s ", " 10s ", " 11s ", " 10s ", " 19s ", " 20s ", " 21s ", " 20s ", " 1m29s ", " 1m30s ", " 1m31s ", " 1m30s ")

func TestCompare(t *testing.T) {
	const (
		theirKeys = "keys: it does not have the first of replicas.keys, which signs; compare them"
		ourKeys   = "keys: it signs with a key that replicas.keys does not have; compare them"
		wantsTLS  = "tls: it wants TLS, and replicas.tls is not set here"
		noAnswer  = "answer: it does not answer; see whether this machine may connect there: "
	)
	clock := func(by string) string {
		return "clock: its clock is " + by + " the one here; have NTP set both: over 15s apart, requests are refused"
	}
	bare := func() *tls.Config { return &tls.Config{MinVersion: tls.VersionTLS12} }
	strange := func() *tls.Config { return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: x509.NewCertPool()} }
	for _, tt := range []struct {
		name string
		o    asked
		want string // ends with … if more follows
	}{
		{"good", asked{instance: "BBBBBBBB"}, ""},
		{"good, of which the address alone is known", asked{}, ""},
		{"good, with keys in steps", asked{keys: []string{otherKey, testKey}, theirs: []string{testKey, otherKey}}, ""},
		{"good, over TLS", asked{theirTLS: bare(), tls: bare}, ""},
		{"other keys", asked{theirs: []string{otherKey}}, theirKeys},
		{"a key that only signs there", asked{theirs: []string{otherKey, testKey}}, ourKeys},
		{"a key that only signs here", asked{keys: []string{otherKey, testKey}}, theirKeys},
		{"a clock within the bound", asked{clock: -3 * time.Second}, ""},
		{"a clock that is behind and accepted", asked{clock: 10 * time.Second}, clock("10s behind")},
		{"a clock far behind", asked{clock: 20 * time.Second}, clock("20s behind")},
		{"a clock far ahead", asked{clock: -90 * time.Second}, clock("1m30s ahead of")},
		{"a clock and keys", asked{clock: 20 * time.Second, theirs: []string{otherKey}}, clock("20s behind") + "\n" + theirKeys},
		{"TLS there", asked{theirTLS: bare()}, wantsTLS},
		{"TLS here", asked{tls: bare}, "tls: it is without TLS, and replicas.tls is set here"},
		{"another authority", asked{theirTLS: bare(), tls: strange}, "tls: its certificate is not accepted here; compare client_ca and server_name of replicas.tls: …"},
		{"a certificate that is wanted", asked{theirTLS: &tls.Config{MinVersion: tls.VersionTLS12, ClientAuth: tls.RequireAnyClientCert}, tls: bare}, "tls: it does not accept the certificate of replicas.tls; compare client_ca there: …"},
		{"a certificate that counts no more", asked{serve: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { RefuseConnection(w) })}, "tls: it does not accept the certificate of replicas.tls any more; compare client_ca there"},
		{"another version", asked{serve: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { Refuse(w, &RefusedError{Status: 401, Version: true}) })}, "version: it does not understand the requests of this version; compare the versions of mcpbridge"},
		{"another replica", asked{instance: "CCCCCCCC"}, "address: replica BBBBBBBB answers at its address; compare replicas.advertise there"},
		{"another server", asked{serve: http.NotFoundHandler()}, "address: what answers there is no replica: HTTP status 404"},
		{"nobody", asked{closed: true}, noAnswer + "…"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c, got := tt.o.compare(t)
			got = about.Replace(got)
			if want, more := strings.CutSuffix(tt.want, "…"); got != want && (!more || !strings.HasPrefix(got, want)) {
				t.Errorf("differs\n%s\nwant\n%s", got, tt.want)
			}
			if apart := (c.Clock + tt.o.clock).Abs(); !tt.o.closed && !strings.HasPrefix(got, "tls: it") && apart > 1500*time.Millisecond && !strings.Contains(tt.name, "authority") {
				t.Errorf("its clock is %v ahead, want %v", c.Clock, -tt.o.clock)
			}
			if tt.want == "" && (c.Instance != "BBBBBBBB" || c.Version != "9.9") {
				t.Errorf("it is %+v", c.Replica)
			}
		})
	}
}
