package server

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/backtest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
)

// from returns a request of a client of an era.
func from(era spec.Era, method, params string) *mcp.Request {
	revision := spec.LatestLegacy
	if era == spec.Modern {
		revision = spec.LatestModern
	}
	return &mcp.Request{
		Method: method, Params: []byte(params), Era: era, Revision: revision,
		Profile: mcp.Profile{Scope: "odd/a", Capabilities: []byte("{}")},
	}
}

// open opens the back of a server until the test ends.
func open(t *testing.T, s *Server) mcp.Back {
	t.Helper()
	b, err := s.Open(nil)
	if err != nil {
		t.Fatal(err)
	}
	backtest.CloseAfter(t, b)
	b.Start()
	return b
}

// slowModern is a play of a modern server that refuses initialize at once, and answers
// discovery from a time on.
func slowModern(after time.Duration) play {
	return func(p *process) error {
		ready := time.Now().Add(after)
		var answering sync.WaitGroup
		defer answering.Wait()
		for {
			m, ok := p.next()
			switch {
			case !ok:
				return nil
			case m.Method == spec.MethodInitialize:
				p.answer(m, backtest.SaysRefused)
			case m.Method == spec.MethodDiscover:
				answering.Go(func() { // ends with the time
					time.Sleep(time.Until(ready))
					p.answer(m, backtest.SaysModern)
				})
			case !m.ID.IsZero():
				p.answer(m, backtest.SaysUnknown)
			}
		}
	}
}

// A refusal of initialize that names a modern revision proves the era, and discovery is
// waited for. There is one process.
func TestU01ARefusalThatNamesAModernRevisionIsProof(t *testing.T) {
	for _, tt := range []struct {
		name      string
		client    spec.Era
		oneClient bool
	}{
		{"legacy, wrap", spec.Legacy, true},
		{"modern, wrap", spec.Modern, true},
		{"legacy, serve", spec.Legacy, false},
		{"modern, serve", spec.Modern, false},
	} {
		bridgetest.RunBubble(t, tt.name, func(t *testing.T) {
			const start = 15 * time.Second
			o := options("")
			o.OneClient = tt.oneClient
			s, starts := byCommand(t, o, slowModern(start))
			b, begun := open(t, s), time.Now()
			d, err := b.Describe(t.Context(), from(tt.client, spec.MethodDiscover, "{}"))
			if err != nil || string(d.Capabilities) != `{"tools":{}}` || b.Era() != spec.Modern {
				t.Errorf("Describe = %+v, %v of a server that is %v, want the capabilities of a modern one", d, err, b.Era())
			}
			if took, n := time.Since(begun), starts.Load(); took > start+5*time.Second || n != 1 {
				t.Errorf("answered after %v by %d processes, want after about %v by one", took, n, start)
			}
		})
	}
}

// A command that is known to be legacy is asked in the process that is started next. That
// process serves, whatever it answers.
func TestU02CommandIsAskedWhenItIsStartedNext(t *testing.T) {
	for _, tt := range []struct {
		name string
		play play
		want spec.Era
		err  string // of starting the process; empty for none
	}{
		{"legacy still", serve(map[string]string{spec.MethodInitialize: backtest.SaysWelcome}), spec.Unknown, ""},
		{"modern by now", serve(map[string]string{spec.MethodDiscover: backtest.SaysModern}), spec.Modern, mcp.ErrOtherEra.Error()},
		{"crashes", script("exit"), spec.Unknown, "it ended: exit status 1"},
	} {
		bridgetest.RunBubble(t, tt.name, func(t *testing.T) {
			s, starts := byCommand(t, options(""), tt.play)
			if f := s.Find(t.Context(), spec.Legacy); f.Era != spec.Unknown || f.Why != "it is asked when it is started next" || starts.Load() != 0 {
				t.Fatalf("finding %v, %q after %d processes, want that it is asked later, and none", f.Era, f.Why, starts.Load())
			}
			p, err := s.launcher.Dial(t.Context())
			if got := textOf(err); got != tt.err || errors.Is(err, mcp.ErrOtherEra) != (tt.want == spec.Modern) {
				t.Errorf("Dial = %q, want %q", got, tt.err)
			}
			if err == nil {
				_ = p.Close()
			}
			if tt.want == spec.Unknown {
				return
			}
			f := s.Find(t.Context(), spec.Legacy)
			if f.Era != tt.want || f.Description == nil || starts.Load() != 1 || !s.launcher.HasKept() {
				t.Errorf("finding %+v after %d processes, want %v by the one, which is kept", f, starts.Load(), tt.want)
			}
		})
	}
}

func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// pinned is a play of a server that takes its first request for what all others will be:
// after initialize it refuses all, as the older era's refuses discovery.
func pinned(p *process) error {
	m, ok := p.next()
	switch {
	case !ok:
		return nil
	case m.Method == spec.MethodDiscover:
		p.answer(m, backtest.SaysModern)
		return serve(map[string]string{spec.MethodDiscover: backtest.SaysModern})(p)
	}
	p.answer(m, backtest.SaysUnknown)
	return serve(nil)(p)
}

// A process that refuses both eras because of what it was asked first is replaced once, and
// the new one is asked for discovery first.
func TestU02ProcessThatRefusesBothErasIsReplaced(t *testing.T) {
	bridgetest.RunBubble(t, "modern", func(t *testing.T) {
		o := options("")
		o.OneClient = true // so that initialize is the first request
		s, starts := byCommand(t, o, pinned)
		b := open(t, s)
		d, err := b.Describe(t.Context(), from(spec.Legacy, spec.MethodDiscover, "{}"))
		if err != nil || d == nil || b.Era() != spec.Modern || starts.Load() != 2 || s.launcher.First() != spec.MethodDiscover {
			t.Errorf("Describe = %+v, %v of a server that is %v, with %d processes and first %q, want a modern one by the second", d, err, b.Era(), starts.Load(), s.launcher.First())
		}
	})
	bridgetest.RunBubble(t, "of no era", func(t *testing.T) {
		o := options("")
		o.OneClient = true
		s, starts := byCommand(t, o, serve(nil))
		b := open(t, s)
		for range 3 {
			if _, err := b.Describe(t.Context(), from(spec.Legacy, spec.MethodDiscover, "{}")); err == nil || !strings.Contains(err.Error(), "Method not found") {
				t.Errorf("Describe = %v, want the refusal", err)
			}
			time.Sleep(time.Minute)
		}
		if n := starts.Load(); n != 4 {
			t.Errorf("%d processes for a server that refuses all, want one for each request, and for the first one more", n)
		}
	})
}

// A command that has exited on server/discover gets initialize first from then on.
func TestU01CommandThatExitsOnDiscovery(t *testing.T) {
	bridgetest.RunBubble(t, "exit", func(t *testing.T) {
		s, starts := byCommand(t, options(""), script("exit"), serve(map[string]string{spec.MethodInitialize: backtest.SaysWelcome, spec.MethodToolsList: backtest.SaysTools}))
		b := open(t, s)
		got, err := backtest.Body(b.Serve(t.Context(), from(spec.Modern, spec.MethodToolsList, "{}"), nil))
		if err != nil || !strings.Contains(got, `"tools":[]`) || starts.Load() != 2 {
			t.Errorf("tools/list = %s, %v by %d processes, want the empty list by the second", got, err, starts.Load())
		}
		f := s.Find(t.Context(), spec.Unknown)
		if f.Era != spec.Legacy || !strings.Contains(f.Why, "it exited") || starts.Load() != 2 {
			t.Errorf("finding %v, %q, %d processes, want that it exited, and none", f.Era, f.Why, starts.Load())
		}
	})
}

// With one client nothing is sent before its first request, which is the probe.
func TestU01FirstRequestOfTheOnlyClientIsTheProbe(t *testing.T) {
	legacy := serve(map[string]string{spec.MethodInitialize: backtest.SaysWelcome, spec.MethodToolsList: backtest.SaysTools})
	bridgetest.RunBubble(t, "legacy", func(t *testing.T) {
		var first string
		o := options("")
		o.OneClient = true
		s, starts := byCommand(t, o, func(p *process) error {
			m, ok := p.next()
			if !ok {
				return nil
			}
			first = m.Method
			p.answer(m, backtest.SaysWelcome)
			return legacy(p)
		})
		b := open(t, s)
		time.Sleep(time.Minute)
		got, err := backtest.Body(b.Serve(t.Context(), from(spec.Legacy, spec.MethodToolsList, "{}"), nil))
		if err != nil || !strings.Contains(got, `"tools":[]`) || starts.Load() != 1 || first != spec.MethodInitialize {
			t.Errorf("tools/list = %s, %v by %d processes, the first request %q, want the empty list and initialize first", got, err, starts.Load(), first)
		}
	})
}

// In a group the only client's first request says nothing of a command, which is asked as any other:
// at the start, for discovery first, so that what it is does not hang on who asks.
func TestU01OnlyClientOfAGroup(t *testing.T) {
	bridgetest.RunBubble(t, "modern", func(t *testing.T) {
		o := options("")
		o.OneClient, o.InGroup = true, true
		s, starts := byCommand(t, o, pinned)
		b := open(t, s)
		b.Start()
		time.Sleep(time.Second)
		if b.Era() != spec.Modern || starts.Load() != 1 {
			t.Errorf("the server is %v after %d processes, want a modern one before anybody asks", b.Era(), starts.Load())
		}
		if _, err := b.Describe(t.Context(), from(spec.Legacy, spec.MethodDiscover, "{}")); err != nil || starts.Load() != 1 {
			t.Errorf("Describe: %v, by %d processes", err, starts.Load())
		}
	})
}

// A probe of a command is quiet: its end is logged, and counted with its start.
func TestProbeOfARealCommand(t *testing.T) {
	var log bridgetest.Log
	var counts startCounts
	o := options("")
	o.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	o.Metrics = &counts
	// A race build takes a second over its exit unless told otherwise.
	o.Command = transport.CommandOptions{Argv: []string{os.Args[0], exitsOnRequest}, Name: "odd", Logger: o.Logger, Env: map[string]string{"GORACE": "atexit_sleep_ms=0"}}
	s := New(o)
	f := s.Find(context.Background(), spec.Unknown)
	s.Close()
	if f.Era != spec.Legacy || !strings.Contains(f.Why, "exit status 7") {
		t.Errorf("finding %v, %q, want legacy by its end", f.Era, f.Why)
	}
	if text := log.String(); !strings.Contains(text, "command ended by itself") || strings.Contains(text, "is down") || strings.Contains(text, "level=WARN") {
		t.Errorf("log\n%s\nwant the command's end, no server that is down, and no warning", text)
	}
	if n := counts.Count("odd"); n != 1 {
		t.Errorf("%d starts are counted, want 1", n)
	}
}

// startCounts count the starts of commands.
type startCounts struct {
	mcp.NoMetrics
	bridgetest.Counts
}

func (c *startCounts) CommandStarted(server string) { c.Add(server) }

// A process that was silent, and has refused to open a session, may only have been slow to
// answer: it is asked once more before another is started.
func TestU01SlowProcessIsAskedOnceMore(t *testing.T) {
	bridgetest.RunBubble(t, "slow", func(t *testing.T) {
		s, starts := byCommand(t, options(""), func(p *process) error {
			var answering sync.WaitGroup
			defer answering.Wait()
			for begun := time.Now(); ; {
				m, ok := p.next()
				switch {
				case !ok:
					return nil
				case m.Method != spec.MethodDiscover:
					p.answer(m, backtest.SaysUnknown)
				default:
					answering.Go(func() { // ends with the time
						time.Sleep(time.Until(begun.Add(silentTime + time.Second)))
						p.answer(m, backtest.SaysModern)
					})
				}
			}
		})
		b := open(t, s)
		d, err := b.Describe(t.Context(), from(spec.Legacy, spec.MethodDiscover, "{}"))
		if err != nil || d == nil || b.Era() != spec.Modern || starts.Load() != 1 {
			t.Errorf("Describe = %+v, %v of a server that is %v, by %d processes, want a modern one by one", d, err, b.Era(), starts.Load())
		}
	})
}

// A process that answers is kept, and what was held against it is forgotten. Its requests
// have ids of their own.
func TestU02ProcessThatAnswersIsKept(t *testing.T) {
	bridgetest.RunBubble(t, "modern", func(t *testing.T) {
		var ids []string
		s, starts := byCommand(t, options(""), func(p *process) error {
			for {
				m, ok := p.next()
				if !ok {
					return nil
				}
				ids = append(ids, m.ID.String())
				p.answer(m, backtest.SaysModern)
			}
		})
		p, err := s.launcher.Dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		p.SetRefused(true)
		p.SetSilent(true)
		s.launcher.Keep(p)
		for range 2 {
			judge(t, s, spec.Modern, 0)
		}
		if !s.launcher.HasKept() || s.launcher.HasRefused() || p.IsSilent() || starts.Load() != 1 {
			t.Errorf("kept: %v, as one that refused: %v, and was silent: %v, of %d processes, want the one that answered", s.launcher.HasKept(), s.launcher.HasRefused(), p.IsSilent(), starts.Load())
		}
		if len(ids) != 2 || ids[0] == ids[1] {
			t.Errorf("ids %q, want two", ids)
		}
	})
}
