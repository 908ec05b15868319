package trunk

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
	"syscall"
	"time"
)

// A filter is what a stream wants, or was acknowledged.
type filter struct {
	Tools bool     `json:"toolsListChanged,omitempty"`
	URIs  []string `json:"resourceSubscriptions,omitempty"`
}

// toolsTopic stands for the list of tools where topics are named; others are
// named by their URI.
const toolsTopic = "tools"

func (f filter) topics() []string {
	if f.Tools {
		return append([]string{toolsTopic}, f.URIs...)
	}
	return f.URIs
}

// A stream is one listen stream, read by a goroutine that ends with it.
type stream struct {
	id    string // as JSON, as it was sent
	want  filter
	began time.Time
	conn  net.Conn
	acked chan struct{} // closed when the acknowledgment has come
	done  chan struct{} // closed when the stream has ended

	// mu guards the fields below.
	mu       sync.Mutex
	ack      filter
	ackAt    int64
	frames   []frame
	ending   ending
	problems []string
	left     bool // we ended it
}

// A frame is a change that was told of, and when, as Unix time in nanoseconds.
type frame struct {
	at    int64
	topic string
}

// ending is how a stream ended.
type ending string

const (
	isOpen   ending = "open"
	graceful ending = "graceful"
	left     ending = "left"
	refused  ending = "refused" // with a JSON-RPC error
	abrupt   ending = "abrupt"
)

const envelope = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`

// open opens a stream. id is its JSON.
func (w *world) open(id string, want filter) *stream {
	w.t.Helper()
	return w.openBy(&net.Dialer{}, id, want)
}

func (w *world) openBy(d *net.Dialer, id string, want filter) *stream {
	w.t.Helper()
	s, err := dialStream(d, w.listen, id, want)
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

func dialStream(d *net.Dialer, addr, id string, want filter) (*stream, error) {
	s := &stream{id: id, want: want, began: time.Now(), ending: isOpen, acked: make(chan struct{}), done: make(chan struct{})}
	var err error
	if s.conn, err = dialRaw(d, addr, id, want); err != nil {
		return nil, err
	}
	go s.read() // ends with the connection
	return s, nil
}

// dialRaw sends a listen request and reads nothing.
func dialRaw(d *net.Dialer, addr, id string, want filter) (net.Conn, error) {
	notifications, err := json.Marshal(want)
	if err != nil {
		return nil, err
	}
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"subscriptions/listen","params":{%s,"notifications":%s}}`, id, envelope, notifications)
	conn, err := d.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	_, err = fmt.Fprintf(conn, "POST /mcp/legacy HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"+
		"MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: subscriptions/listen\r\nContent-Length: %d\r\n\r\n%s", addr, len(body), body)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

// smallWindow has the kernel take little for a stream that nobody reads.
func smallWindow(_, _ string, c syscall.RawConn) error {
	var err error
	if e := c.Control(func(fd uintptr) {
		err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 4<<10)
	}); e != nil {
		return e
	}
	return err
}

// close leaves the stream and waits for its goroutine.
func (s *stream) close() {
	s.mu.Lock()
	s.left = true
	s.mu.Unlock()
	_ = s.conn.Close() // what it says comes from the reader
	<-s.done
}

func (s *stream) read() {
	defer close(s.done)
	defer s.conn.Close()
	err := s.readResponse(bufio.NewReaderSize(s.conn, 1<<10))
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.ending != isOpen:
	case s.left:
		s.ending = left
	default:
		s.ending = abrupt
		s.problems = append(s.problems, fmt.Sprintf("the stream broke: %v", err))
	}
}

// readResponse reads events by hand: what a line is not expected to be is a
// problem.
func (s *stream) readResponse(r *bufio.Reader) error {
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

// A message is any that a stream may carry.
type message struct {
	ID     json.RawMessage
	Method string
	Params struct {
		URI           string
		Notifications *filter
		Meta          stamp `json:"_meta"`
	}
	Result *struct {
		ResultType string
		Meta       stamp `json:"_meta"`
	}
	Error json.RawMessage
}

type stamp struct {
	ID json.RawMessage `json:"io.modelcontextprotocol/subscriptionId"`
}

// take holds a message against the rules, and keeps what it tells of.
func (s *stream) take(at int64, text []byte) {
	var m message
	if err := json.Unmarshal(text, &m); err != nil {
		s.problem("message %s: %v", text, err)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ending != isOpen {
		s.problemLocked("a message after the last: %s", text)
	}
	switch {
	case m.Error != nil:
		s.ending = refused
		s.problemLocked("refused: %s", text)
	case m.Result != nil:
		s.ending = graceful
		if m.Result.ResultType != "complete" || string(m.ID) != s.id {
			s.problemLocked("result %s", text)
		}
		s.checkStampLocked(m.Result.Meta, text)
	default:
		s.checkStampLocked(m.Params.Meta, text)
		s.noticeLocked(at, &m, text)
	}
}

// checkStampLocked wants the id of the listen request, in value and type.
func (s *stream) checkStampLocked(got stamp, text []byte) {
	if string(got.ID) != s.id {
		s.problemLocked("the stamp is %s, want %s: %s", got.ID, s.id, text)
	}
}

func (s *stream) noticeLocked(at int64, m *message, text []byte) {
	if s.ackAt == 0 {
		if m.Method != "notifications/subscriptions/acknowledged" || m.Params.Notifications == nil {
			s.problemLocked("before the acknowledgment: %s", text)
			return
		}
		s.ack, s.ackAt = *m.Params.Notifications, at
		close(s.acked)
		return
	}
	topic := ""
	switch m.Method {
	case "notifications/resources/updated":
		topic = m.Params.URI
	case "notifications/tools/list_changed":
		topic = toolsTopic
	}
	if !slices.Contains(s.ack.topics(), topic) {
		s.problemLocked("not acknowledged: %s", text)
	}
	s.frames = append(s.frames, frame{at, topic})
}

func (s *stream) problem(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.problemLocked(format, args...)
}

func (s *stream) problemLocked(format string, args ...any) {
	s.problems = append(s.problems, fmt.Sprintf(format, args...))
}

// status returns how the stream ended, if it did, and what was wrong with it.
func (s *stream) status() (ending, []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ending, slices.Clone(s.problems)
}

// isAcked reports whether the acknowledgment has come.
func (s *stream) isAcked() bool {
	select {
	case <-s.acked:
		return true
	default:
		return false
	}
}

// told reports whether the stream was told of a topic at or after a time.
func (s *stream) told(topic string, since int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.toldLocked(topic, since)
}

func (s *stream) toldLocked(topic string, since int64) bool {
	for i := len(s.frames) - 1; i >= 0 && s.frames[i].at >= since; i-- {
		if s.frames[i].topic == topic {
			return true
		}
	}
	return false
}

// untold returns the acknowledged topics that the stream was not told of since
// a time.
func (s *stream) untold(since int64) (topics []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, topic := range s.ack.topics() {
		if !s.toldLocked(topic, since) {
			topics = append(topics, topic)
		}
	}
	return topics
}

// callTool calls a tool without arguments through mcpbridge.
func callTool[T any](w *world, name string) (out T, problem string) {
	w.t.Helper()
	header := http.Header{
		"Content-Type":         {"application/json"},
		"Accept":               {"application/json, text/event-stream"},
		"Mcp-Protocol-Version": {"2026-07-28"},
		"Mcp-Method":           {"tools/call"},
		"Mcp-Name":             {name},
	}
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{%s,"name":%q,"arguments":{}}}`, envelope, name)
	text := request(w.t, w.http, http.MethodPost, "http://"+w.listen+"/mcp/legacy", header, []byte(body))
	var answer struct {
		Result struct{ StructuredContent *T }
		Error  json.RawMessage
	}
	if err := json.Unmarshal(text, &answer); err != nil || answer.Result.StructuredContent == nil {
		return out, fmt.Sprintf("%s = %s, %v", name, text, err)
	}
	return *answer.Result.StructuredContent, ""
}
