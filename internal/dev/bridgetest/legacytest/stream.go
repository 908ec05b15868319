package legacytest

import (
	"bufio"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
)

// A Stream reads a stream event by event.
type Stream struct {
	Response *http.Response
	Lines    *bufio.Scanner // of its body
	Last     string         // the last event's id

	t testing.TB
}

// Read reads the stream that res is.
func Read(t testing.TB, res *http.Response) *Stream {
	t.Helper()
	if typ := res.Header.Get("Content-Type"); typ != "text/event-stream" {
		body, _ := io.ReadAll(res.Body)
		t.Fatalf("Content-Type = %q, want a stream; %d %s", typ, res.StatusCode, body)
	}
	return &Stream{Response: res, t: t, Lines: bufio.NewScanner(res.Body)}
}

// Next returns the data of the next event that has some; ok is false at the end. The
// stream is closed if nothing comes.
func (s *Stream) Next() (data string, ok bool) {
	s.t.Helper()
	late := time.AfterFunc(bridgetest.Patience, func() { s.Response.Body.Close() })
	data, ok = s.next()
	if !late.Stop() && !ok {
		s.t.Fatalf("no event came for %v", bridgetest.Patience)
	}
	return data, ok
}

func (s *Stream) next() (data string, ok bool) {
	for s.Lines.Scan() {
		line := s.Lines.Text()
		if id, found := strings.CutPrefix(line, "id: "); found {
			s.Last = id
		}
		if d, found := strings.CutPrefix(line, "data: "); found && d != "" {
			return d, true
		}
	}
	return "", false
}

// Want reads the next event, whose data must be want.
func (s *Stream) Want(want string) {
	s.t.Helper()
	if got, ok := s.Next(); !ok || got != want {
		s.t.Errorf("event = %q, %v\nwant    %q", got, ok, want)
	}
}

// Ends wants the stream to end, and closes it.
func (s *Stream) Ends() {
	s.t.Helper()
	if got, ok := s.Next(); ok {
		s.t.Errorf("event = %s, want the end", got)
	}
	s.Response.Body.Close()
}
