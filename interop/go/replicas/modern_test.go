package replicas

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const envelope = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"replicas","version":"1"},` +
	`"io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}`

// lastID gives every request an id of its own.
var lastID atomic.Int64

// An answer is what came back for one request.
type answer struct {
	err    error // of the transport, or of what came
	status int
	text   string // the message
	code   int64  // of a JSON-RPC error; 0 for a result
	said   string // the message of that error, or the first text of a result
	took   time.Duration

	state     string            // of an input_required result
	questions map[string]string // key -> message
}

// problem says why an answer is no plain result, "" if it is.
func (a *answer) problem() string {
	switch {
	case a.err != nil:
		return a.err.Error()
	case a.code != 0 || a.status != http.StatusOK || a.state != "" || strings.Contains(a.text, `"isError":true`):
		return fmt.Sprintf("%d %s", a.status, a.text)
	}
	return ""
}

// retry returns the params that answer the questions, each with what it says.
func (a *answer) retry() string {
	responses := make(map[string]any)
	for key, message := range a.questions {
		responses[key] = map[string]any{"action": "accept", "content": map[string]any{"nonce": message}}
	}
	text, err := json.Marshal(responses)
	if err != nil {
		panic(err) // strings alone
	}
	return fmt.Sprintf(`,"inputResponses":%s,"requestState":%q`, text, a.state)
}

// callTool calls a tool at a URL as a modern client. header may be nil.
func (w *world) callTool(ctx context.Context, url, name string, args any, more string, header http.Header) answer {
	text, err := json.Marshal(args)
	if err != nil {
		return answer{err: err}
	}
	return w.ask(ctx, url, "tools/call", name, fmt.Sprintf(`"name":%q,"arguments":%s%s`, name, text, more), header)
}

// mark calls the tool that both servers write down in their ledgers.
func (w *world) mark(ctx context.Context, url, nonce string) answer {
	return w.callTool(ctx, url, "mark", map[string]any{"nonce": nonce}, "", nil)
}

// ask sends a modern request.
func (w *world) ask(ctx context.Context, url, method, name, params string, header http.Header) answer {
	begun, id := time.Now(), lastID.Add(1)
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":{%s,%s}}`, id, method, envelope, params)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return answer{err: err}
	}
	req.Header = http.Header{
		"Content-Type":         {"application/json"},
		"Accept":               {"application/json, text/event-stream"},
		"Mcp-Protocol-Version": {"2026-07-28"},
		"Mcp-Method":           {method},
	}
	if name != "" {
		req.Header.Set("Mcp-Name", name)
	}
	for key, values := range header {
		req.Header[key] = values
	}
	a := exchange(w.clients, req, id)
	a.took = time.Since(begun)
	return a
}

// answerTime is the longest that any answer is waited for.
const answerTime = time.Minute

// exchange sends a request and reads the one response to the id.
func exchange(c *http.Client, req *http.Request, id int64) answer {
	ctx, cancel := context.WithTimeout(req.Context(), answerTime)
	defer cancel()
	res, err := c.Do(req.WithContext(ctx))
	if err != nil {
		return answer{err: err}
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	a := answer{status: res.StatusCode}
	if err != nil {
		a.err = fmt.Errorf("reading the response, of which %.300q came: %w", body, err)
		return a
	}
	texts := []string{strings.TrimSpace(string(body))}
	if strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		texts = nil
		for line := range strings.Lines(string(body)) {
			if data, ok := strings.CutPrefix(line, "data: "); ok && !strings.Contains(data, `"method":`) && strings.TrimSpace(data) != "" {
				texts = append(texts, strings.TrimSpace(data))
			}
		}
	}
	if len(texts) != 1 {
		a.err = fmt.Errorf("status %d, %d responses: %.300q", a.status, len(texts), body)
		return a
	}
	a.parse(id, texts[0])
	return a
}

func (a *answer) parse(id int64, text string) {
	var m struct {
		ID     json.RawMessage
		Result *struct {
			Content       []struct{ Text string }
			Contents      []struct{ Text string }
			InputRequests map[string]struct {
				Params struct{ Message string }
			}
			RequestState string
		}
		Error *struct {
			Code    int64
			Message string
		}
	}
	a.text = text
	err := json.Unmarshal([]byte(text), &m)
	if err != nil || (m.Result == nil) == (m.Error == nil) || m.Result != nil && string(m.ID) != fmt.Sprint(id) {
		a.err = fmt.Errorf("status %d: the response to %d is %.300q, %v", a.status, id, text, err)
		return
	}
	if m.Error != nil {
		a.code, a.said = m.Error.Code, m.Error.Message
		return
	}
	for _, c := range append(m.Result.Content, m.Result.Contents...) {
		if a.said == "" {
			a.said = c.Text
		}
	}
	a.state, a.questions = m.Result.RequestState, make(map[string]string)
	for key, q := range m.Result.InputRequests {
		a.questions[key] = q.Params.Message
	}
}

// toolsTopic stands for the list of tools where topics are named; others are named by their
// URI.
const toolsTopic = "tools"

// A frame is a change that was told of, and when, as Unix time in nanoseconds.
type frame struct {
	at    int64
	topic string
}

// A stream is one listen stream of a modern client, read by a goroutine that ends with it.
type stream struct {
	at    *replica // nil for the balancer's
	id    string
	want  []string // topics
	conn  net.Conn
	acked chan struct{} // closed when the acknowledgment has come
	done  chan struct{} // closed when the stream has ended

	// mu guards the fields below.
	mu       sync.Mutex
	ackAt    int64
	endAt    int64
	frames   []frame
	ending   string // "" while it is open, then left, graceful, or why it broke
	problems []string
	left     bool // we ended it
}

// listen opens a stream at a replica. A topic is a URI or toolsTopic.
func (w *world) listen(r *replica, server string, topics ...string) (*stream, error) {
	s := &stream{at: r, want: topics, id: fmt.Sprint(lastID.Add(1)), acked: make(chan struct{}), done: make(chan struct{})}
	var f struct {
		Tools bool     `json:"toolsListChanged,omitempty"`
		URIs  []string `json:"resourceSubscriptions,omitempty"`
	}
	for _, topic := range topics {
		if topic == toolsTopic {
			f.Tools = true
		} else {
			f.URIs = append(f.URIs, topic)
		}
	}
	notifications, err := json.Marshal(f)
	if err != nil {
		return nil, err
	}
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"subscriptions/listen","params":{%s,"notifications":%s}}`, s.id, envelope, notifications)
	if s.conn, err = net.Dial("tcp", r.listen); err != nil {
		return nil, err
	}
	_, err = fmt.Fprintf(s.conn, "POST /mcp/%s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"+
		"MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: subscriptions/listen\r\nContent-Length: %d\r\n\r\n%s", server, r.listen, len(body), body)
	if err != nil {
		return nil, errors.Join(err, s.conn.Close())
	}
	go s.read() // ends with the connection
	return s, nil
}

// mustListen opens a stream that ends with the test, and waits for the acknowledgment.
func (w *world) mustListen(r *replica, server string, topics ...string) *stream {
	w.t.Helper()
	s, err := w.listen(r, server, topics...)
	if err == nil {
		w.t.Cleanup(s.close)
		err = s.wait(recovery)
	}
	if err != nil {
		w.t.Fatalf("listening at %s: %v", r.name, err)
	}
	return s
}

// wait waits for the acknowledgment.
func (s *stream) wait(d time.Duration) error {
	select {
	case <-s.acked:
		return nil
	case <-s.done:
		ending, problems := s.status()
		return fmt.Errorf("no acknowledgment: %s %q", ending, problems)
	case <-time.After(d):
		return fmt.Errorf("no acknowledgment within %v", d)
	}
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
	s.endAt = time.Now().UnixNano()
	switch {
	case s.ending != "":
	case s.left:
		s.ending = "left"
	default:
		s.ending = fmt.Sprintf("it broke: %v", err)
	}
}

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
	for lines := bufio.NewReaderSize(res.Body, 512); ; {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return err
		}
		if data, ok := bytes.CutPrefix(line, []byte("data: ")); ok {
			s.take(time.Now().UnixNano(), data)
		}
	}
}

// take keeps what a message tells of.
func (s *stream) take(at int64, text []byte) {
	var m struct {
		Method string
		Params struct {
			URI string
		}
		Result, Error json.RawMessage
	}
	err := json.Unmarshal(text, &m)
	s.mu.Lock()
	defer s.mu.Unlock()
	topic := ""
	switch {
	case err != nil:
		s.problems = append(s.problems, fmt.Sprintf("message %s: %v", text, err))
	case m.Error != nil:
		s.ending = "refused: " + string(m.Error)
	case m.Result != nil:
		s.ending = "graceful"
	case m.Method == "notifications/subscriptions/acknowledged" && s.ackAt == 0:
		s.ackAt = at
		close(s.acked)
	case m.Method == "notifications/resources/updated":
		topic = m.Params.URI
	case m.Method == "notifications/tools/list_changed":
		topic = toolsTopic
	default:
		s.problems = append(s.problems, "message "+string(text))
	}
	if topic != "" {
		s.frames = append(s.frames, frame{at, topic})
		if !slices.Contains(s.want, topic) {
			s.problems = append(s.problems, "not asked for: "+string(text))
		}
	}
}

// status returns how the stream ended, if it did, and what was wrong with it.
func (s *stream) status() (ending string, problems []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ending, slices.Clone(s.problems)
}

// count returns how often the stream was told of a topic since a time.
func (s *stream) count(topic string, since int64) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.frames {
		if f.topic == topic && f.at >= since {
			n++
		}
	}
	return n
}

// heard returns when the stream was first told of a topic at or after a time, 0 if never.
func (s *stream) heard(topic string, since int64) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := int64(0)
	for i := len(s.frames) - 1; i >= 0 && s.frames[i].at >= since; i-- {
		if s.frames[i].topic == topic {
			at = s.frames[i].at
		}
	}
	return at
}
