// Package listen answers one question: what is a modern client told on a listen stream, and
// does each message keep to the rules?
//
// Streams are read by hand, so that whatever is not expected is noticed. The package knows
// nothing of the server, nor of what the client is owed.
package listen

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// A Filter is what a stream wants, or was acknowledged.
type Filter struct {
	Tools bool     `json:"toolsListChanged,omitempty"`
	URIs  []string `json:"resourceSubscriptions,omitempty"`
}

// Tools stands for the list of tools where topics are named; others are named by their URI.
const Tools = "tools"

// Topics returns what the filter has.
func (f Filter) Topics() []string {
	if f.Tools {
		return append([]string{Tools}, f.URIs...)
	}
	return f.URIs
}

// FilterOf returns a filter for topics.
func FilterOf(topics ...string) (f Filter) {
	for _, topic := range topics {
		if topic == Tools {
			f.Tools = true
		} else {
			f.URIs = append(f.URIs, topic)
		}
	}
	return f
}

// A Request is one for a stream.
type Request struct {
	Addr   string // of mcpbridge
	Server string
	Meta   string // the member _meta, as JSON text
	ID     string // as JSON text
	Want   Filter
	Dialer net.Dialer
}

// A Stream is one listen stream, read by a goroutine that ends with it.
type Stream struct {
	ID    string // as JSON, as it was sent
	Want  Filter
	Acked chan struct{} // closed when the acknowledgment has come
	Done  chan struct{} // closed when the stream has ended

	conn net.Conn

	// mu guards the fields below.
	mu       sync.Mutex
	ack      Filter
	ackAt    int64
	endAt    int64
	frames   []Frame
	ending   Ending
	problems []string
	left     bool // we ended it
}

// A Frame is a change that was told of, and when, as Unix time in nanoseconds.
type Frame struct {
	At    int64
	Topic string
}

// Ending is how a stream ended.
type Ending string

// Endings of a stream.
const (
	Open     Ending = "open"
	Graceful Ending = "graceful"
	Left     Ending = "left"
	Refused  Ending = "refused" // with a JSON-RPC error
	Abrupt   Ending = "abrupt"
)

// Dial opens a stream. Whoever gets it calls Close.
func Dial(r Request) (*Stream, error) {
	conn, err := DialRaw(r)
	if err != nil {
		return nil, err
	}
	s := &Stream{ID: r.ID, Want: r.Want, conn: conn, ending: Open, Acked: make(chan struct{}), Done: make(chan struct{})}
	go s.read() // ends with the connection
	return s, nil
}

// DialRaw sends the request, and reads nothing.
func DialRaw(r Request) (net.Conn, error) {
	notifications, err := json.Marshal(r.Want)
	if err != nil {
		return nil, err
	}
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"subscriptions/listen","params":{%s,"notifications":%s}}`, r.ID, r.Meta, notifications)
	conn, err := r.Dialer.Dial("tcp", r.Addr)
	if err != nil {
		return nil, err
	}
	_, err = fmt.Fprintf(conn, "POST /mcp/%s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"+
		"MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: subscriptions/listen\r\nContent-Length: %d\r\n\r\n%s", r.Server, r.Addr, len(body), body)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

// Close leaves the stream and waits for its goroutine.
func (s *Stream) Close() {
	s.mu.Lock()
	s.left = true
	s.mu.Unlock()
	_ = s.conn.Close() // what it says comes from the reader
	<-s.Done
}

// Wait waits until the stream is acknowledged. It returns an error if it ends before, or after
// d.
func (s *Stream) Wait(d time.Duration) error {
	select {
	case <-s.Acked:
		return nil
	case <-s.Done:
		ending, problems := s.Status()
		return fmt.Errorf("no acknowledgment: %s %q", ending, problems)
	case <-time.After(d):
		return fmt.Errorf("no acknowledgment within %v", d)
	}
}

func (s *Stream) read() {
	defer close(s.Done)
	defer s.conn.Close()
	err := s.readResponse(bufio.NewReaderSize(s.conn, 1<<10))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endAt = time.Now().UnixNano()
	switch {
	case s.ending != Open:
	case s.left:
		s.ending = Left
	default:
		s.ending = Abrupt
		s.problems = append(s.problems, fmt.Sprintf("the stream broke: %v", err))
	}
}

// readResponse reads events by hand: what a line is not expected to be is a problem.
func (s *Stream) readResponse(r *bufio.Reader) error {
	res, err := http.ReadResponse(r, nil)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if kind := res.Header.Get("Content-Type"); res.StatusCode != http.StatusOK || !strings.HasPrefix(kind, "text/event-stream") {
		text, _ := io.ReadAll(res.Body)
		return fmt.Errorf("listen = %s %s", res.Status, text)
	}
	lines := bufio.NewReaderSize(res.Body, 512)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return err
		}
		if data, ok := bytes.CutPrefix(line, []byte("data: ")); ok {
			s.take(time.Now().UnixNano(), data)
		} else if text := strings.TrimSpace(string(line)); text != "" && text[0] != ':' && text != "event: message" {
			s.problem("line %q", text)
		}
	}
}

// Status returns how the stream ended, if it did, and what was wrong with it.
func (s *Stream) Status() (Ending, []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ending, slices.Clone(s.problems)
}
