package node

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/certs"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/dev/replicastest"
	"github.com/mcpbridge/mcpbridge/internal/peer"
	"github.com/mcpbridge/mcpbridge/internal/replicas"
)

// A guarded is a listener for other replicas, and one of them.
type guarded struct {
	own, others string // folders of certificates
	to          replicas.Replica
	from, here  *peer.Group
	served      int
}

// ServeHTTP implements http.Handler: it counts what is served but hellos.
func (g *guarded) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e, err := g.here.Open(r)
	switch {
	case err != nil:
		peer.Refuse(w, err)
	case r.URL.Path == peer.HelloPath:
		g.here.ServeHello(w, r, e)
	default:
		g.served++
	}
}

func newGuarded(t *testing.T) *guarded {
	t.Helper()
	g := &guarded{own: t.TempDir(), others: t.TempDir(), to: replicas.Replica{Instance: "BBBBBBBB"}}
	a := bridgetest.NewAuthority(t, "first")
	a.Files(g.own, bridgetest.Leaf{Names: []string{"replicas.example"}})
	a.Files(g.others, bridgetest.Leaf{Names: []string{"replicas.example"}})
	here := g.open(t, g.own)
	l, err := listen(t.Context(), Options{
		Listen: "127.0.0.1:0", ServerTLS: here.Server(true), Trusts: here.Trusts, Logger: slog.New(slog.DiscardHandler),
	}, g)
	if err != nil {
		t.Fatal(err)
	}
	l.start()
	t.Cleanup(func() {
		if err := l.shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
	g.to.Addr = l.Addr().String()
	if g.here, err = peer.New(peer.Options{Engine: replicastest.Alone(g.to), Keys: []string{"0123456789abcdef"}}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.here.Close)
	g.from, err = peer.New(peer.Options{Engine: replicastest.Alone(replicas.Replica{Instance: "AAAAAAAA"}), Keys: []string{"0123456789abcdef"}, TLS: g.open(t, g.others).Client("replicas.example")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.from.Close)
	return g
}

func (g *guarded) open(t *testing.T, dir string) *certs.Store {
	t.Helper()
	store, err := certs.Open(certs.Files{Cert: filepath.Join(dir, "cert.pem"), Key: filepath.Join(dir, "key.pem"), CA: filepath.Join(dir, "ca.pem")}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func (g *guarded) send(t *testing.T) error {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, g.from.URL(g.to, "/x"), io.NopCloser(strings.NewReader("{}")))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := g.from.RoundTripper(g.to, nil).RoundTrip(r)
	if err == nil {
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
	}
	return err
}

// An open connection serves nothing once the authority of its certificate is removed; with
// another certificate the replica is back at once, and does not count as gone.
func TestHardeningRemovedAuthorityOfReplicas(t *testing.T) {
	g := newGuarded(t)
	for range 3 {
		if err := g.send(t); err != nil {
			t.Fatal(err)
		}
	}
	g.trust(t, "second")
	silent := (*peer.SilentError)(nil)
	if err := g.send(t); !errors.As(err, &silent) || g.served != 3 {
		t.Errorf("with the old certificate: %v, and %d requests were served; want 3", err, g.served)
	}
	if err := g.send(t); err != nil || g.served != 4 {
		t.Errorf("with the new certificate: %v, and %d requests were served", err, g.served)
	}
}

// trust has the listener trust another authority alone, which has a certificate for the other
// replica. The listener's own stays.
func (g *guarded) trust(t *testing.T, name string) {
	t.Helper()
	next := bridgetest.NewAuthority(t, name)
	cert, key := next.Issue(bridgetest.Leaf{Names: []string{"replicas.example"}})
	for path, text := range map[string][]byte{
		filepath.Join(g.others, "cert.pem"): cert, filepath.Join(g.others, "key.pem"): key, filepath.Join(g.own, "ca.pem"): next.PEM(),
	} {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(1100 * time.Millisecond) // files are looked at once a second
}

// Nobody without a certificate is served, not even with the keys.
func TestHardeningReplicaWithoutCertificate(t *testing.T) {
	g := newGuarded(t)
	bare, err := peer.New(peer.Options{Engine: replicastest.Alone(replicas.Replica{Instance: "AAAAAAAA"}), Keys: []string{"0123456789abcdef"}, TLS: &tls.Config{InsecureSkipVerify: true}})
	if err != nil {
		t.Fatal(err)
	}
	defer bare.Close()
	g.from = bare
	if err := g.send(t); err == nil || g.served != 0 {
		t.Errorf("send = %v, and %d requests were served", err, g.served)
	}
}
