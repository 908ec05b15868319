package nats_test

import (
	"context"
	"fmt"
	"os"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/mcpbridge/mcpbridge/gateway"
	"github.com/mcpbridge/mcpbridge/gateway/replicas/nats"
)

// startNATS returns the URL of a NATS in this process, and what stops it.
func startNATS() (url string, stop func()) {
	dir, err := os.MkdirTemp("", "nats")
	if err != nil {
		panic(err)
	}
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: dir, NoSigs: true, NoLog: true})
	if err != nil {
		panic(err)
	}
	s.Start() // clients wait until it is ready
	return "nats://" + s.Addr().String(), func() {
		s.Shutdown()
		s.WaitForShutdown()
		_ = os.RemoveAll(dir)
	}
}

// A gateway is one of several replicas, which know each other by a NATS. All have the same
// keys, and an address each where the others connect.
func ExampleEngine() {
	url, stop := startNATS()
	defer stop()
	g, err := gateway.New(gateway.Options{
		Servers: []gateway.ServerOptions{{Name: "docs", URL: "https://docs.example.com/mcp"}},
		Replicas: &gateway.Replicas{
			Engine: nats.Engine{URL: url, Prefix: "docs"},
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
