package server

import (
	"context"
	"errors"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/backtest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// records are those of an engine.
type records struct {
	mu  sync.Mutex // guards all
	all map[string][]byte
}

func (r *records) Get(_ context.Context, key string) ([]byte, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if text, ok := r.all[key]; ok {
		return text, nil
	}
	return nil, errors.New("no such record")
}

func (r *records) Put(_ context.Context, key string, record []byte, _ time.Duration) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all[key] = record
	return nil
}

// What a replica has found of a command, the others know without a process, whatever their
// variables; a command of another definition is another one.
func TestReplicasLearnOfACommand(t *testing.T) {
	says := serve(map[string]string{spec.MethodInitialize: backtest.SaysWelcome, spec.MethodToolsList: backtest.SaysTools})
	bridgetest.RunBubble(t, "legacy", func(t *testing.T) {
		o := options("")
		o.Records, o.Definition = &records{all: make(map[string][]byte)}, "a"
		o.Command.Argv = []string{os.Args[0]}
		req := from(spec.Modern, spec.MethodDiscover, "{}")
		req.Principal = mcp.Anonymous

		first, starts := byCommand(t, o, says, says)
		b, err := first.Open(nil)
		if err != nil {
			t.Fatal(err)
		}
		backtest.CloseAfter(t, b)
		b.Start()
		time.Sleep(time.Minute)
		if n := starts.Load(); n != 0 {
			t.Errorf("%d processes before the first request", n)
		}
		said, err := b.Describe(t.Context(), req)
		if err != nil || starts.Load() == 0 || b.Era() != spec.Legacy {
			t.Fatalf("Describe = %+v, %v, of a server that is %v, by %d processes", said, err, b.Era(), starts.Load())
		}

		o.Command.Env = map[string]string{"POD": "another"}
		second, starts := byCommand(t, o, says)
		if b, err = second.Open(nil); err != nil {
			t.Fatal(err)
		}
		backtest.CloseAfter(t, b)
		b.Start()
		if n := starts.Load(); b.Era() != spec.Legacy || n != 0 {
			t.Errorf("another replica takes it for %v, after %d processes", b.Era(), n)
		}

		o.Definition = "b"
		third, _ := byCommand(t, o, says)
		if b, err = third.Open(nil); err != nil {
			t.Fatal(err)
		}
		backtest.CloseAfter(t, b)
		if b.Start(); b.Era() != spec.Unknown {
			t.Errorf("one of another definition is taken for %v", b.Era())
		}
	})
}
