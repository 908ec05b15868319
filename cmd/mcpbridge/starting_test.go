package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/output"
	"github.com/mcpbridge/mcpbridge/gateway"
	"github.com/mcpbridge/mcpbridge/internal/config"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
)

// A fakeTerminal shows what a person sees: it knows the sequences that a screen
// uses.
type fakeTerminal struct {
	mu    sync.Mutex
	lines []string // the last one is that of the cursor
	wrote int      // calls of Write
	raw   []byte   // everything that was written
}

var erasing = regexp.MustCompile("\r\x1b\\[([0-9]+)A\x1b\\[J")

func (f *fakeTerminal) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.wrote++
	f.raw = append(f.raw, p...)
	if f.lines == nil {
		f.lines = []string{""}
	}
	text := p
	if at := erasing.FindSubmatchIndex(text); at != nil && at[0] == 0 {
		up, _ := strconv.Atoi(string(text[at[2]:at[3]]))
		f.lines = append(f.lines[:len(f.lines)-1-up], "")
		text = text[at[1]:]
	}
	for i, line := range bytes.Split(text, []byte("\n")) {
		if i > 0 {
			f.lines = append(f.lines, "")
		}
		f.lines[len(f.lines)-1] += string(line)
	}
	return len(p), nil
}

// seen returns the lines above the cursor.
func (f *fakeTerminal) seen() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.lines[:max(len(f.lines)-1, 0)])
}

func (f *fakeTerminal) screen() *output.Screen { return output.NewScreen(f, func() int { return 40 }) }

func wantSeen(t *testing.T, f *fakeTerminal, want ...string) {
	t.Helper()
	if got := f.seen(); !slices.Equal(got, want) {
		t.Errorf("the terminal shows %q, want %q", got, want)
	}
}

// A stateList is servers as a test sets them.
type stateList struct {
	mu  sync.Mutex
	all []gateway.ServerSnapshot
}

func (l *stateList) set(name string, state gateway.State, err string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.all {
		if l.all[i].Name == name {
			l.all[i].State, l.all[i].Error = state, err
			return
		}
	}
	l.all = append(l.all, gateway.ServerSnapshot{Name: name, State: state, Error: err})
}

func (l *stateList) get() []gateway.ServerSnapshot {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.all)
}

// A person sees who is still starting, for how long, and what became of it; log
// lines stay whole above that.
func TestShowsWhoIsStarting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var servers stateList
		for _, name := range []string{"quick", "files", "docs"} {
			servers.set(name, "starting", "")
		}
		term := new(fakeTerminal)
		s := term.screen()
		log := slog.New(slog.NewTextHandler(s, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}}))
		w := watchStart(t.Context(), s, servers.get)
		time.Sleep(1500 * time.Millisecond)
		synctest.Wait()
		servers.set("quick", "ready", "")
		wantSeen(t, term)

		time.Sleep(time.Second)
		synctest.Wait()
		wantSeen(t, term, "still starting: files (2s)", "still starting: docs (2s)")
		log.Info("one")
		wantSeen(t, term, "level=INFO msg=one", "still starting: files (2s)", "still starting: docs (2s)")

		time.Sleep(10 * time.Second)
		synctest.Wait()
		wantSeen(t, term, "level=INFO msg=one", "still starting: files (12s)", "still starting: docs (12s)")

		servers.set("docs", "down", "no\nluck \x1b[2J")
		time.Sleep(time.Second)
		synctest.Wait()
		wantSeen(t, term, "level=INFO msg=one", "down: docs after 12s: no luck \uFFFD[2J", "still starting: files (13s)")

		servers.set("files", "ready", "")
		time.Sleep(time.Second)
		<-w.done // by itself
		log.Info("two")
		wantSeen(t, term, "level=INFO msg=one", "down: docs after 12s: no luck \uFFFD[2J", "ready: files after 13s", "level=INFO msg=two")
		w.stop()
	})
}

// What is shown goes when the daemon ends, and the goroutine with it.
func TestStartWatchStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var servers stateList
		for i := range startLines + 3 {
			servers.set(fmt.Sprintf("a-server-with-a-name-that-is-far-too-long-%d", i), "starting", "")
		}
		term := new(fakeTerminal)
		w := watchStart(t.Context(), term.screen(), servers.get)
		time.Sleep(3*time.Second + startLook/2)
		synctest.Wait()
		got := term.seen()
		if len(got) != startLines+1 || len(got[0]) != 39 || got[startLines] != "still starting: 3 more" {
			t.Errorf("the terminal shows %q, want %d lines that are cut, and how many more there are", got, startLines)
		}
		// It is drawn anew when something has changed: once for each second.
		if term.wrote != 2 {
			t.Errorf("the terminal was written to %d times, want 2", term.wrote)
		}
		w.stop()
		wantSeen(t, term)
	})
}

// Lines of many goroutines stay whole around a status that changes.
func TestScreenConcurrent(t *testing.T) {
	term := new(fakeTerminal)
	s := term.screen()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for n := range 100 {
				s.Show([]string{"status " + strconv.Itoa(n)})
				_, _ = io.WriteString(s, "a line\n")
			}
		})
	}
	wg.Wait()
	s.Show(nil)
	if got := term.seen(); len(got) != 400 || slices.ContainsFunc(got, func(l string) bool { return l != "a line" }) {
		t.Errorf("the terminal shows %d lines, want 400: %q", len(got), got[:min(len(got), 10)])
	}
}

// stopOnceShown waits until the line is written, and where nobody wants it until it
// would have been, and then stops the program. It ends with that.
func (f *fakeTerminal) stopOnceShown(ctx context.Context, stop func(), line string, wanted bool) {
	defer stop()
	most := startQuiet + 1500*time.Millisecond
	if wanted {
		most = bridgetest.Patience
	}
	for begin := time.Now(); ctx.Err() == nil && time.Since(begin) < most; time.Sleep(10 * time.Millisecond) {
		if f.wasWritten(line) {
			return
		}
	}
}

func (f *fakeTerminal) wasWritten(text string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return bytes.Contains(f.raw, []byte(text))
}

// Only a person at a terminal is shown anything, and nobody who wants JSON.
func TestShowsStartingOnTerminalsAlone(t *testing.T) {
	const line = "still starting: sleep ("
	for _, tt := range []struct {
		name    string
		args    []string
		environ []string
		stderr  func(*fakeTerminal) io.Writer
		want    bool
	}{
		{"terminal", nil, nil, func(f *fakeTerminal) io.Writer { return f.screen() }, true},
		{"no terminal", nil, nil, func(f *fakeTerminal) io.Writer { return f }, false},
		{"JSON", []string{"--json"}, nil, func(f *fakeTerminal) io.Writer { return f.screen() }, false},
		{"a terminal that can't", nil, []string{"TERM=dumb"}, func(f *fakeTerminal) io.Writer { return f.screen() }, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			term := new(fakeTerminal)
			go term.stopOnceShown(ctx, cancel, line, tt.want)
			args := slices.Concat([]string{"mcpbridge", "serve", "--listen", "127.0.0.1:0", "--admin", "off"}, tt.args, []string{"--", "sleep", "30"})
			p := process{args: args, environ: append(tt.environ, "MCPBRIDGE_DRAIN=1s"), stdout: io.Discard, stderr: tt.stderr(term)}
			if err := p.run(ctx); err != nil {
				t.Fatal(err)
			}
			if got := term.wasWritten(line); got != tt.want {
				t.Errorf("shown: %v, want %v; written was %q", got, tt.want, term.raw)
			}
			if left := strings.Join(term.seen(), "\n"); strings.Contains(left, line) {
				t.Errorf("it was left on the terminal: %s", left)
			}
		})
	}
}

func TestScreenOf(t *testing.T) {
	term := new(fakeTerminal)
	s := term.screen()
	if output.ScreenOf(s) != s || output.ScreenOf(new(bridgetest.Log)) != nil {
		t.Error("ScreenOf does not tell terminals from others")
	}
	log := output.NewLog(s, config.Log{Level: "info", Format: "auto"}, nil)
	log.Info("seen")
	if got := term.seen(); len(got) != 1 || !strings.Contains(got[0], "\x1b[") {
		t.Errorf("logged %q, want text with colours", got)
	}
}
