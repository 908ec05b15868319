package linebuffer

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A record has what was written, and how often.
type record struct {
	mu     sync.Mutex
	text   strings.Builder
	writes int
	err    error
}

func (r *record) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.writes++
	r.text.Write(p)
	return len(p), r.err
}

func (r *record) got() (text string, writes int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.String(), r.writes
}

func TestLinesWaitForADelayAtMost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out record
		w := New(&out)
		want := ""
		for round := range 3 {
			for i := range 5 {
				line := fmt.Sprintf("line %d of %d\n", i, round)
				want += line
				_, _ = w.Write([]byte(line)) // never fails
				time.Sleep(Delay / 10)
			}
			if text, writes := out.got(); text == want || writes != round {
				t.Errorf("%d writes of %q before the delay", writes, text)
			}
			time.Sleep(Delay)
			synctest.Wait()
			if text, writes := out.got(); text != want || writes != round+1 {
				t.Errorf("%d writes of %q after the delay, want %d of %q", writes, text, round+1, want)
			}
		}
	})
}

// Many lines don't wait for the delay, and memory stays bounded.
func TestManyLinesAreWritten(t *testing.T) {
	out := record{err: errors.New("full")}
	w := New(&out)
	line := strings.Repeat("x", 999) + "\n"
	var failed error
	for range 100 {
		if _, err := w.Write([]byte(line)); err != nil {
			failed = err
		}
	}
	if _, writes := out.got(); writes != 100_000/33_000 || failed != out.err {
		t.Errorf("%d writes of 100 kB, error %v; want 3 and the writer's", writes, failed)
	}
	if _ = w.Close(); out.text.Len() != 100_000 {
		t.Errorf("%d bytes were written, want all", out.text.Len())
	}
}

func TestNothingWaitsAfterClose(t *testing.T) {
	var out record
	w := New(&out)
	_, _ = w.Write([]byte("a\n")) // never fails
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	_, _ = w.Write([]byte("b\n")) // never fails
	if text, _ := out.got(); text != "a\nb\n" {
		t.Errorf("after Close %q was written", text)
	}
}

func TestErrorsDontWait(t *testing.T) {
	var out record
	w := New(&out)
	log := slog.New(w.Handler(slog.NewTextHandler(w, nil))).With("a", 1).WithGroup("g")
	log.Warn("soon")
	if text, _ := out.got(); text != "" {
		t.Errorf("a warning was written at once: %q", text)
	}
	log.Error("at once")
	if text, _ := out.got(); !strings.Contains(text, "soon") || !strings.Contains(text, "at once") || !strings.Contains(text, "a=1") {
		t.Errorf("after an error %q was written", text)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// Lines that are written at the same time stay whole, and none is lost.
func TestConcurrentLines(t *testing.T) {
	var out record
	w := New(&out)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 1000 {
				_, _ = w.Write([]byte(strings.Repeat(string(rune('a'+i)), 20) + "\n")) // never fails
			}
		})
	}
	wg.Wait()
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	text, _ := out.got()
	for line := range strings.Lines(text) {
		if line != strings.Repeat(line[:1], 20)+"\n" {
			t.Fatalf("line %q", line)
		}
	}
	if n := strings.Count(text, "\n"); n != 8000 {
		t.Errorf("%d lines, want 8000", n)
	}
}
