package redis_test

import (
	"context"
	"crypto/tls"
	"os"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"

	"github.com/mcpbridge/mcpbridge/gateway"
	"github.com/mcpbridge/mcpbridge/gateway/replicas/redis"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/dev/replicastest/gateways"
)

func TestMain(m *testing.M) { os.Exit(bridgetest.Main(m)) }

func TestGatewaysMeet(t *testing.T) {
	m := miniredis.RunT(t)
	m.RequireUserAuth("replica", "open sesame")
	url := "redis://replica:open%20sesame@" + m.Addr()
	gateways.Meet(t, func(prefix string) gateway.Engine { return redis.Engine{URL: url, Prefix: prefix} })
}

// What is to be trusted arrives at the client.
func TestTLS(t *testing.T) {
	a := bridgetest.NewAuthority(t, "engines")
	m, err := miniredis.RunTLS(&tls.Config{Certificates: []tls.Certificate{a.Pair(bridgetest.Leaf{})}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	trusted := gateways.Join(t, redis.Engine{URL: "rediss://" + m.Addr(), TLS: &tls.Config{RootCAs: bridgetest.Pool(a)}})
	bridgetest.Eventually(t, "a server that is trusted", func() bool { return gateways.There(trusted) })
	if gateways.There(gateways.Join(t, redis.Engine{URL: "rediss://" + m.Addr()})) {
		t.Error("with an unknown authority the engine is there, want that it is away")
	}
}

// What can never work is an error of New, which does not repeat the URL.
func TestMistakes(t *testing.T) {
	for url, want := range map[string]string{
		"":                       "mcpbridge: replicas: the engine is not the URL of an engine; write nats://",
		"redis://u:s3cret@r/x":   "mcpbridge: replicas: the engine has something after the host that is no number of a database",
		"nats://u:s3cret@n:4222": "mcpbridge: replicas: the engine is one of another package; import github.com/mcpbridge/mcpbridge/gateway/replicas/nats, and use its Engine",
	} {
		g, err := gateway.New(gateway.Options{Replicas: &gateway.Replicas{Engine: redis.Engine{URL: url}, Keys: []string{"0123456789abcdef"}}})
		if err == nil {
			_ = g.Shutdown(context.Background())
		}
		if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("New with %q = %v, want %s…", url, err, want)
		}
	}
}
