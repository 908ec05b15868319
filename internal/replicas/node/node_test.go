package node

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/certs"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/peer"
)

// freeAddrs returns addresses of loopback that nobody listens on.
func freeAddrs(t *testing.T, n int) (addrs []string) {
	t.Helper()
	for range n {
		addrs = append(addrs, bridgetest.FreeAddr(t))
	}
	return addrs
}

// joinAs has a Node at an address, which answers hellos as the gateway does.
func joinAs(t *testing.T, o Options) *Node {
	t.Helper()
	return joinAhead(t, o, 0)
}

// joinAhead has one whose clock is ahead, by what it answers.
func joinAhead(t *testing.T, o Options, ahead time.Duration) *Node {
	t.Helper()
	o.Logger, o.Version = slog.New(slog.DiscardHandler), "test"
	n, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(context.Background()); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	hello := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e, err := n.Group().Open(r)
		if err != nil {
			peer.Refuse(w, err)
			return
		}
		n.Group().ServeHello(dated{w, ahead}, r, e)
	})
	if err := n.Join(t.Context(), hello); err != nil {
		t.Fatal(err)
	}
	return n
}

// dated has responses whose date is ahead.
type dated struct {
	http.ResponseWriter
	ahead time.Duration
}

func (w dated) Write(text []byte) (int, error) {
	w.Header().Set("Date", time.Now().Add(w.ahead).UTC().Format(http.TimeFormat))
	return w.ResponseWriter.Write(text)
}

func members(n *Node) int { return len(n.Engine().View().Members) }

func TestNodesFindEachOther(t *testing.T) {
	t.Parallel()
	addrs := freeAddrs(t, 2)
	peers := "dns://" + addrs[0] + "," + addrs[1]
	keys := []string{"0123456789abcdef"}
	a := joinAs(t, Options{Peers: peers, Keys: keys, Listen: addrs[0]})
	_, port, err := net.SplitHostPort(addrs[1])
	if err != nil {
		t.Fatal(err)
	}
	b := joinAs(t, Options{Peers: peers, Keys: keys, Listen: addrs[1], Advertise: "[127.0.0.1]:" + port}) // as charts write it
	if got := b.Group().Self().Addr; got != addrs[1] {
		t.Errorf("advertised as %s, want %s", got, addrs[1])
	}
	bridgetest.Eventually(t, "two members", func() bool { return members(a) == 2 && members(b) == 2 })
	b.Drain()
	bridgetest.Eventually(t, "draining", func() bool {
		r, _ := a.Engine().View().Member(b.Group().Self().Instance)
		return r.Draining
	})
	if err := b.Leave(t.Context()); err != nil {
		t.Error(err)
	}
	bridgetest.Eventually(t, "one member", func() bool { return members(a) == 1 })
}

// A replica with another key, or whose certificate is of another authority, is no replica.
func TestStrangersAreNoReplicas(t *testing.T) {
	t.Parallel()
	addrs := freeAddrs(t, 3)
	peers := "dns://" + addrs[0] + "," + addrs[1] + "," + addrs[2]
	keys := []string{"0123456789abcdef"}
	server, client := material(t, "replicas.example")
	otherServer, otherClient := material(t, "replicas.example")
	a := joinAs(t, Options{Peers: peers, Keys: keys, Listen: addrs[0], ServerTLS: server, ClientTLS: client})
	key := joinAs(t, Options{Peers: peers, Keys: []string{"fedcba9876543210"}, Listen: addrs[1], ServerTLS: server, ClientTLS: client})
	ca := joinAs(t, Options{Peers: peers, Keys: keys, Listen: addrs[2], ServerTLS: otherServer, ClientTLS: otherClient})
	time.Sleep(1500 * time.Millisecond)
	for name, n := range map[string]*Node{"the first": a, "the one with another key": key, "the one of another authority": ca} {
		if got := members(n); got != 1 {
			t.Errorf("%s knows %d members, want itself alone", name, got)
		}
	}
}

func TestNodesOverTLS(t *testing.T) {
	t.Parallel()
	addrs := freeAddrs(t, 2)
	peers := "dns://" + addrs[0] + "," + addrs[1]
	server, client := material(t, "replicas.example")
	o := Options{Peers: peers, Keys: []string{"0123456789abcdef"}, ServerTLS: server, ClientTLS: client}
	o.Listen = addrs[0]
	a := joinAs(t, o)
	o.Listen = addrs[1]
	b := joinAs(t, o)
	bridgetest.Eventually(t, "two members", func() bool { return members(a) == 2 && members(b) == 2 })
	bare := &tls.Config{InsecureSkipVerify: true} // a client without a certificate
	c, err := tls.Dial("tcp", addrs[0], bare)
	if err == nil {
		_, err = c.Read(make([]byte, 1)) // in TLS 1.3 the refusal follows the handshake
		c.Close()
	}
	if err == nil {
		t.Error("a client without a certificate is served")
	}
}

// material returns the configurations of replicas with certificates of one authority.
func material(t *testing.T, name string) (server, client *tls.Config) {
	t.Helper()
	store := materialStore(t, name)
	return store.Server(true), store.Client(name)
}

func materialStore(t *testing.T, name string) *certs.Store {
	t.Helper()
	dir := t.TempDir()
	bridgetest.NewAuthority(t, "a").Files(dir, bridgetest.Leaf{Names: []string{name}})
	store, err := certs.Open(certs.Files{Cert: filepath.Join(dir, "cert.pem"), Key: filepath.Join(dir, "key.pem"), CA: filepath.Join(dir, "ca.pem")}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func TestAnAddressInUse(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	n, err := New(Options{Peers: "dns://127.0.0.1:1", Keys: []string{"0123456789abcdef"}, Listen: l.Addr().String(), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close(context.Background())
	if err := n.Join(t.Context(), http.NotFoundHandler()); err == nil || !errors.As(err, new(*net.OpError)) {
		t.Errorf("Join = %v, want that the address is in use", err)
	}
}

// opener returns itself, or an error.
type opener struct{ err error }

// Open implements Opener.
func (o opener) Open(string, *slog.Logger) (any, error) { return o, o.err }

func TestEngineMistakes(t *testing.T) {
	const packages = "github.com/mcpbridge/mcpbridge/gateway/replicas/"
	for _, tt := range []struct {
		engine Opener
		want   string
	}{
		{opener{errors.New("the engine is no engine")}, "replicas: the engine is no engine"},
		{opener{}, "replicas: the engine node.opener is not one of mcpbridge; import " + packages + "nats or " + packages + "redis, and use its Engine"},
	} {
		n, err := New(Options{Engine: tt.engine, Keys: []string{"0123456789abcdef"}, Logger: slog.New(slog.DiscardHandler)})
		if err == nil {
			n.Close(context.Background())
		}
		if err == nil || err.Error() != tt.want {
			t.Errorf("New with the engine %+v = %v, want %s", tt.engine, err, tt.want)
		}
	}
}

func TestStateKeysAreDerived(t *testing.T) {
	got, err := StateKeys([]string{"0123456789abcdef", "fedcba9876543210"})
	if err != nil || len(got) != 2 || len(got[0]) < 32 || got[0] == got[1] || slices.Contains(got, "0123456789abcdef") {
		t.Errorf("StateKeys = %q, %v: want two, of which nothing tells the keys", got, err)
	}
	again, _ := StateKeys([]string{"0123456789abcdef"})
	if again[0] != got[0] {
		t.Error("one key has two keys of states")
	}
}
