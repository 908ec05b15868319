package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync"
)

// lines serves a server over a pair of pipes, a message to a line. A stream is cancelled
// by a notification, and is not answered then.
type lines struct {
	s       *server
	running sync.WaitGroup // streams

	writing sync.Mutex // serializes writes to out
	out     *bufio.Writer

	mu   sync.Mutex // guards open
	open map[string]context.CancelFunc
}

// serveLines serves until ctx or the input ends.
func serveLines(ctx context.Context, s *server, in io.ReadCloser, out io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	l := &lines{s: s, out: bufio.NewWriter(out), open: make(map[string]context.CancelFunc)}
	defer l.running.Wait()
	defer cancel()
	over := context.AfterFunc(ctx, func() { _ = in.Close() })
	defer over()
	r := bufio.NewScanner(in)
	r.Buffer(nil, 4<<20)
	for r.Scan() {
		var m message
		if err := json.Unmarshal(r.Bytes(), &m); err != nil {
			return fmt.Errorf("reading %q: %w", r.Text(), err)
		}
		l.take(ctx, &m)
	}
	return nil
}

func (l *lines) take(ctx context.Context, m *message) {
	switch {
	case m.ID == nil && m.Method == "notifications/cancelled":
		l.cancel(string(m.Params.RequestID))
	case m.ID == nil:
	case m.Method == "events/stream":
		l.stream(ctx, m)
	default:
		result, failed := l.s.answer(m)
		_ = l.send(answered(m.ID, result, failed)) // the input ends, too, if it fails
	}
}

func (l *lines) stream(ctx context.Context, m *message) {
	t, failed := m.ask()
	if failed != nil {
		_ = l.send(answered(m.ID, "", failed)) // the input ends, too, if it fails
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	l.mu.Lock()
	l.open[string(m.ID)] = cancel
	l.mu.Unlock()
	l.running.Go(func() { // ends with its stream, which cancel or the input's end ends
		defer l.cancel(string(m.ID))
		if l.s.stream(ctx, m.ID, t, l.send) {
			_ = l.send(ended(m.ID)) // the input ends, too, if it fails
		}
	})
}

func (l *lines) cancel(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if cancel := l.open[id]; cancel != nil {
		cancel()
		delete(l.open, id)
	}
}

func (l *lines) send(msg string) error {
	l.writing.Lock()
	defer l.writing.Unlock()
	_, _ = l.out.WriteString(msg) // Flush says it, too
	_ = l.out.WriteByte('\n')
	return l.out.Flush()
}
