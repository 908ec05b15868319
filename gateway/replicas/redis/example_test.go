package redis_test

import (
	"context"
	"fmt"

	"github.com/alicebob/miniredis/v2"

	"github.com/mcpbridge/mcpbridge/gateway"
	"github.com/mcpbridge/mcpbridge/gateway/replicas/redis"
)

// A gateway is one of several replicas, which know each other by a Redis. All have the same
// keys, and an address each where the others connect.
func ExampleEngine() {
	server, err := miniredis.Run()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	g, err := gateway.New(gateway.Options{
		Servers: []gateway.ServerOptions{{Name: "docs", URL: "https://docs.example.com/mcp"}},
		Replicas: &gateway.Replicas{
			Engine: redis.Engine{URL: "redis://" + server.Addr(), Prefix: "docs"},
			Keys:   []string{"a secret of all replicas"},
			Listen: "127.0.0.1:0",
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	// The others hear of it before it serves clients.
	if err := g.Join(context.Background()); err != nil {
		fmt.Println(err)
	}
	fmt.Println("replicas:", len(g.Snapshot().Replicas.Members))
	_ = g.Shutdown(context.Background())
	// Output: replicas: 1
}
