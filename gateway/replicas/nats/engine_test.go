package nats_test

import (
	"context"
	"crypto/tls"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/mcpbridge/mcpbridge/gateway"
	"github.com/mcpbridge/mcpbridge/gateway/replicas/nats"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/dev/replicastest/gateways"
)

func TestMain(m *testing.M) { os.Exit(bridgetest.Main(m)) }

// serve returns the address of a nats-server in this process.
func serve(t *testing.T, o server.Options) string {
	t.Helper()
	o.Host, o.Port, o.JetStream, o.StoreDir, o.NoSigs, o.NoLog = "127.0.0.1", server.RANDOM_PORT, true, t.TempDir(), true, true
	s, err := server.NewServer(&o)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	if !s.ReadyForConnections(bridgetest.Patience) {
		t.Fatal("nats-server is not ready")
	}
	return s.Addr().String()
}

func TestGatewaysMeet(t *testing.T) {
	url := "nats://replica:open%20sesame@" + serve(t, server.Options{Username: "replica", Password: "open sesame"})
	gateways.Meet(t, func(prefix string) gateway.Engine { return nats.Engine{URL: url, Prefix: prefix} })
}

// What is to be trusted arrives at the client.
func TestTLS(t *testing.T) {
	a := bridgetest.NewAuthority(t, "engines")
	addr := serve(t, server.Options{TLS: true, TLSConfig: &tls.Config{Certificates: []tls.Certificate{a.Pair(bridgetest.Leaf{})}}})
	trusted := gateways.Join(t, nats.Engine{URL: "tls://" + addr, TLS: &tls.Config{RootCAs: bridgetest.Pool(a)}})
	bridgetest.Eventually(t, "a server that is trusted", func() bool { return gateways.There(trusted) })
	if gateways.There(gateways.Join(t, nats.Engine{URL: "tls://" + addr})) {
		t.Error("with an unknown authority the engine is there, want that it is away")
	}
}

// What can never work is an error of New, which does not repeat the URL.
func TestMistakes(t *testing.T) {
	absent := filepath.Join(t.TempDir(), "absent.creds")
	for _, tt := range []struct {
		e    nats.Engine
		want string
	}{
		{nats.Engine{}, "mcpbridge: replicas: the engine is not the URL of an engine; write nats://"},
		{nats.Engine{URL: "etcd://u:s3cret@e"}, "mcpbridge: replicas: the engine etcd:// is no engine; write nats://"},
		{nats.Engine{URL: "redis://u:s3cret@r:6379"}, "mcpbridge: replicas: the engine is one of another package; import github.com/mcpbridge/mcpbridge/gateway/replicas/redis, and use its Engine"},
		{nats.Engine{URL: "nats://127.0.0.1:1", Credentials: absent}, "mcpbridge: replicas: reaching NATS: nats: open " + absent},
	} {
		g, err := gateway.New(gateway.Options{Replicas: &gateway.Replicas{Engine: tt.e, Keys: []string{"0123456789abcdef"}}})
		if err == nil {
			_ = g.Shutdown(context.Background())
		}
		if err == nil || !strings.HasPrefix(err.Error(), tt.want) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("New with %+v = %v, want %s…", tt.e, err, tt.want)
		}
	}
}
