package server

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/backtest"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// events receives changes.
type events chan fanout.Event

func (e events) Publish(event fanout.Event) { e <- event }
func (e events) Wanted(fanout.Topic) bool   { return false }
func (e events) End(fanout.Topic, error)    {}

// A run of mcpbridge knows how a command described itself in the last one, and what it has
// to be sent first; but not what the configuration hides by now. If the command says
// another thing, clients are told of the change.
func TestRememberedCommand(t *testing.T) {
	const welcome = `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{},"experimental":{"odd":{},"even":{}}},"serverInfo":{"name":"odd","version":"1"}}}`
	legacy := serve(map[string]string{spec.MethodInitialize: welcome, spec.MethodToolsList: backtest.SaysTools})
	changed := serve(map[string]string{spec.MethodInitialize: backtest.SaysWelcome, spec.MethodToolsList: backtest.SaysTools})
	bridgetest.RunBubble(t, "legacy", func(t *testing.T) {
		o := options("")
		o.StateDir = filepath.Join(t.TempDir(), "servers")
		o.Command.Argv = []string{os.Args[0]}
		req := from(spec.Modern, spec.MethodDiscover, "{}")
		req.Principal = mcp.Anonymous

		first, _ := byCommand(t, o, script("exit"), legacy)
		b, err := first.Open(nil)
		if err != nil {
			t.Fatal(err)
		}
		d, err := b.Describe(t.Context(), req)
		if err != nil || string(d.Capabilities) != `{"tools":{},"experimental":{"odd":{},"even":{}}}` {
			t.Fatalf("Describe = %+v, %v, want what the command says", d, err)
		}
		if err := b.Close(t.Context()); err != nil {
			t.Fatal(err)
		}

		o.Settings.Extensions.Hide = []string{"odd"}
		second, starts := byCommand(t, o, func(p *process) error {
			time.Sleep(connect / 2)
			return changed(p)
		})
		told := make(events, 100)
		b, err = second.Open(told)
		if err != nil {
			t.Fatal(err)
		}
		backtest.CloseAfter(t, b)
		b.Start()
		if got := second.launcher.First(); got != spec.MethodInitialize {
			t.Errorf("the first request is %q, want %q: it exited on the other", got, spec.MethodInitialize)
		}
		begun := time.Now()
		d, err = b.Describe(t.Context(), req)
		if took := time.Since(begun); err != nil || string(d.Capabilities) != `{"tools":{},"experimental":{"even":{}}}` || took != 0 || b.Era() != spec.Legacy {
			t.Errorf("Describe = %+v, %v after %v of a server that is %v, want what is remembered, and not hidden, at once", d, err, took, b.Era())
		}
		select {
		case <-told:
		case <-time.After(time.Hour):
			t.Error("no change was told")
		}
		if d, err = b.Describe(t.Context(), req); err != nil || string(d.Capabilities) != `{"tools":{}}` || starts.Load() != 1 {
			t.Errorf("Describe = %+v, %v after a change was told by %d processes, want the new one", d, err, starts.Load())
		}
		if d := second.remembered().Recall(req); d == nil || string(d.Capabilities) != `{"tools":{}}` {
			t.Errorf("remembered %+v, want the new one", d)
		}
	})
}

// Nothing is remembered of a URL, without a folder, and of a program that is nowhere.
func TestNothingIsRemembered(t *testing.T) {
	url, nowhere, missing := options(nobodyURL), options(""), options("")
	url.StateDir = t.TempDir()
	nowhere.Command.Argv = []string{os.Args[0]}
	missing.StateDir, missing.Command.Argv = filepath.Join(t.TempDir(), "servers"), []string{"/no/such/program"}
	for name, o := range map[string]Options{"a URL": url, "no folder": nowhere} {
		if m := New(o).remembered(); m != nil {
			t.Errorf("of %s: %v, want nil", name, m)
		}
	}
	m := New(missing).remembered()
	m.Found(spec.Legacy)
	m.Described(from(spec.Modern, spec.MethodDiscover, "{}"), spec.Legacy, &mcp.Description{Capabilities: []byte("{}")})
	if _, err := os.Stat(missing.StateDir); !os.IsNotExist(err) || m.Era() != spec.Unknown || m.Recall(from(spec.Modern, spec.MethodDiscover, "{}")) != nil {
		t.Errorf("of a program that is nowhere: era %v, folder %v, want nothing", m.Era(), err)
	}
}

// What can't be stored is logged, and no more.
func TestStoringFails(t *testing.T) {
	var log bridgetest.Logs
	o := options("")
	o.Logger = slog.New(&log)
	o.StateDir = filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(o.StateDir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	o.Command.Argv = []string{os.Args[0]}
	m := New(o).remembered()
	if m.Found(spec.Legacy); m.Era() != spec.Unknown || log.Count("remembering server") != 1 {
		t.Errorf("era %v, and %d lines of the log, want none and 1", m.Era(), log.Count("remembering server"))
	}
}
