package main

import (
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
)

func TestServeAndWrapReturnMemory(t *testing.T) {
	releasers := func() int {
		stacks := make([]byte, 1<<20)
		return strings.Count(string(stacks[:runtime.Stack(stacks, true)]), ".startReleaser in goroutine ")
	}
	s := serve(t, nil)
	bridgetest.Eventually(t, "a releaser under serve", func() bool { return releasers() == 1 })
	s.stop()
	bridgetest.Eventually(t, "stopped after serve", func() bool { return releasers() == 0 })

	in, client, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close() }()
	out, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = out.Close() }()
	ended := make(chan error, 1)
	p := process{args: []string{"mcpbridge", "wrap", "http://127.0.0.1:1"}, stdin: in, stdout: out, stderr: &bridgetest.Log{}}
	go func() { ended <- p.run(t.Context()) }() // until the client closes its end
	bridgetest.Eventually(t, "a releaser under wrap", func() bool { return releasers() == 1 })
	_ = client.Close()
	if err := <-ended; err != nil {
		t.Errorf("wrap = %v", err)
	}
	bridgetest.Eventually(t, "stopped after wrap", func() bool { return releasers() == 0 })
}
