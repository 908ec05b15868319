package transport

import (
	"bufio"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// stdio returns a Stdio and the client's ends of its files.
func stdio(t *testing.T, opts StdioOptions) (s *Stdio, in, out *os.File) {
	t.Helper()
	var files [2]*os.File
	var errs [2]error
	opts.In, in, errs[0] = os.Pipe()
	out, opts.Out, errs[1] = os.Pipe()
	files[0], files[1] = opts.In, opts.Out
	if err := errors.Join(errs[:]...); err != nil {
		t.Fatal(err)
	}
	s, err := OpenStdio(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = s.Close()
		closeAll(files[0], files[1], in, out)
	})
	closeAll(files[1]) // the client sees the end when the conn's own is closed
	return s, in, out
}

func TestStdioCarriesLines(t *testing.T) {
	s, in, out := stdio(t, StdioOptions{MaxMessage: 100})
	text := "{\"a\":1}\n\n  \r\n" + strings.Repeat("x", 101) + "\n[2] \nnot JSON\n{\"last\":true}"
	if _, err := in.WriteString(text); err != nil {
		t.Fatal(err)
	}
	closeAll(in)
	if got := mustRead(t, s); got != `{"a":1}` {
		t.Errorf("Read() = %q", got)
	}
	var tooLong *TooLongError
	if _, err := s.Read(); !errors.As(err, &tooLong) || tooLong.Limit != 100 {
		t.Errorf("Read() of a long line = %v, want a TooLongError with the limit", err)
	}
	for _, want := range []string{"[2]", "not JSON", `{"last":true}`} {
		if got := mustRead(t, s); got != want {
			t.Errorf("Read() = %q, want %q", got, want)
		}
	}
	if _, err := s.Read(); err != io.EOF {
		t.Errorf("Read() at the end = %v, want io.EOF", err)
	}
	if err := s.Write([]byte(" {\"b\":\n3}\n")); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "{\"b\": 3}\n" || err != nil {
		t.Errorf("written = %q, %v, want one line", line, err)
	}
}

// If a client does not read, writes time out, including waiting ones, and reads continue.
func TestStdioStuckReader(t *testing.T) {
	s, in, _ := stdio(t, StdioOptions{WriteTimeout: 50 * time.Millisecond})
	msg := []byte(`{"x":"` + strings.Repeat("x", 100_000) + `"}`)
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			if err := s.Write(msg); !errors.Is(err, ErrWriteTimeout) {
				t.Errorf("Write() = %v, want %v", err, ErrWriteTimeout)
			}
		})
	}
	if _, err := in.WriteString("{}\n"); err != nil {
		t.Fatal(err)
	}
	if got := mustRead(t, s); got != "{}" {
		t.Errorf("Read() = %q, want {}", got)
	}
	wg.Wait()
	if err := s.Write([]byte("{}")); !errors.Is(err, ErrWriteTimeout) {
		t.Errorf("Write() after part of a message = %v, want it refused", err)
	}
}

func TestStdioCloseUnblocks(t *testing.T) {
	s, _, _ := stdio(t, StdioOptions{WriteTimeout: time.Minute})
	blocked := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, err := s.Read(); err != ErrClosed {
			t.Errorf("Read() = %v, want %v", err, ErrClosed)
		}
	})
	wg.Go(func() {
		if err := s.Write([]byte("{" + strings.Repeat(" ", 60_000) + "}")); err != nil {
			t.Error(err)
		}
		close(blocked)
		if err := s.Write([]byte("{" + strings.Repeat(" ", 1<<20) + "}")); err != ErrClosed {
			t.Errorf("Write() = %v, want %v", err, ErrClosed)
		}
	})
	<-blocked
	_ = s.Close()
	wg.Wait()
	if err := s.Write([]byte("{}")); err != ErrClosed {
		t.Errorf("Write() after Close = %v, want %v", err, ErrClosed)
	}
}

// If the client is gone, writes fail, but the process does not end.
func TestStdioBrokenPipe(t *testing.T) {
	s, _, out := stdio(t, StdioOptions{})
	closeAll(out)
	if err := s.Write([]byte("{}")); err == nil {
		t.Error("Write() to nobody = nil, want an error")
	}
}

// A file without deadlines is read through a pump, which loses nothing.
func TestStdioWithoutDeadlines(t *testing.T) {
	name := filepath.Join(t.TempDir(), "in")
	long := `{"x":"` + strings.Repeat("x", 3*copiedLine) + `"}`
	if err := os.WriteFile(name, []byte("{}\n"+long+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	s, err := OpenStdio(StdioOptions{In: f, Out: f})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close(); closeAll(f) })
	if _, ok := s.lines.src.(*pump); !ok {
		t.Fatalf("a file is read through %T, want a pump", s.lines.src)
	}
	for _, want := range []string{"{}", long} {
		if got := mustRead(t, s); got != want {
			t.Errorf("Read() = %d bytes, want %d", len(got), len(want))
		}
	}
	if _, err := s.Read(); err != io.EOF {
		t.Errorf("Read() = %v, want io.EOF", err)
	}
}

// Close does not wait for a pump whose file has no input.
func TestStdioPumpEnds(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p := &pump{f: r, parts: make(chan part)}
	closing := make(chan struct{})
	p.closing = closing
	ended := make(chan struct{})
	go func() { defer close(ended); p.run() }()
	close(closing)
	if _, err := p.Read(make([]byte, 1)); err != os.ErrClosed {
		t.Errorf("Read() = %v, want %v", err, os.ErrClosed)
	}
	closeAll(w)
	<-ended
	closeAll(r)
}
