package firststart

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/interop/internal/rig"
)

// BenchmarkTenCommands tells how much later wrap --all answers initialize than the slowest of its
// ten commands does when a client starts them all itself, side by side: each is a server that is
// ready after a second. Remembered ones are not waited for, and are held against the start of
// mcpbridge. The ratio is that to 100 ms.
func BenchmarkTenCommands(b *testing.B) {
	const runs, bound = 5, 100 * time.Millisecond
	command := []string{"/bin/sh", "-c", "sleep 1; exec " + fill("{bin}/everything-v1.6.1")}
	b.Run("new", func(b *testing.B) {
		var late []time.Duration
		for range runs {
			alone := slowest(b, command)
			took := initializeAll(b, wrapAll(b, command))
			b.Logf("initialize: %v by the slowest of ten commands, %v through wrap --all", alone, took)
			late = append(late, took-alone)
		}
		rig.Judge(b, float64(medianOf(late))/float64(bound), 1)
	})
	b.Run("remembered", func(b *testing.B) {
		argv := wrapAll(b, command)
		initializeAll(b, argv)
		var took []time.Duration
		for range runs {
			took = append(took, initializeAll(b, argv))
		}
		b.Logf("initialize of ten remembered commands through wrap --all: %v", took)
		rig.Judge(b, float64(medianOf(took))/float64(bound), 1)
	})
}

func medianOf(times []time.Duration) time.Duration {
	slices.Sort(times)
	return times[len(times)/2]
}

// slowest starts ten commands and returns when the last one has answered initialize.
func slowest(b *testing.B, command []string) (took time.Duration) {
	b.Helper()
	begin := time.Now()
	var all [10]*pipe
	for i := range all {
		all[i] = openPipe(b, command...)
	}
	for _, p := range all {
		if a, _, err := p.ask(asksInitialize, time.Minute); err != nil || a.Error != nil {
			b.Fatalf("initialize: %+v, %v", a, err)
		}
	}
	took = time.Since(begin)
	for _, p := range all {
		if _, err := p.end(); err != nil {
			b.Fatal(err)
		}
	}
	return took
}

// wrapAll returns what wraps a file of ten commands, with a memory of its own.
func wrapAll(b *testing.B, command []string) (argv []string) {
	b.Helper()
	type server struct {
		Command string   `json:"command"`
		Args    []string `json:"args"`
	}
	servers := make(map[string]server)
	for i := range 10 {
		servers[fmt.Sprint("server", i)] = server{command[0], command[1:]}
	}
	text, err := json.Marshal(map[string]any{"mcpServers": servers})
	dir := b.TempDir()
	file := filepath.Join(dir, "mcp.json")
	if err != nil || os.WriteFile(file, text, 0o600) != nil {
		b.Fatal("the file of ten commands was not written")
	}
	return []string{"/usr/bin/env", "XDG_CACHE_HOME=" + dir, fill("{bridge}"), "wrap", "--all", file}
}

// initializeAll starts wrap, and returns when it has answered initialize. Its tools are listed then,
// so that they are remembered.
func initializeAll(b *testing.B, argv []string) (took time.Duration) {
	b.Helper()
	p := openPipe(b, argv...)
	a, _, err := p.ask(asksInitialize, time.Minute)
	took = time.Since(p.began)
	if err != nil || a.Error != nil {
		b.Fatalf("initialize: %+v, %v; mcpbridge wrote:\n%s", a, err, p.log.String())
	}
	if _, err := p.in.Write([]byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n")); err != nil {
		b.Fatal(err)
	}
	if a, _, err := p.ask(`{"jsonrpc":"2.0","id":4,"method":"tools/list"}`, time.Minute); err != nil || len(a.Result.Tools) == 0 {
		b.Fatalf("tools/list: %+v, %v; mcpbridge wrote:\n%s", a, err, p.log.String())
	}
	if _, err := p.end(); err != nil {
		b.Fatalf("mcpbridge ended: %v; it wrote:\n%s", err, p.log.String())
	}
	return took
}
