package sessions

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

const legacyRevision = "2025-11-25"

// A session is a client of the legacy era, in plain HTTP.
type session struct {
	http *http.Client
	url  string
	id   string // its Mcp-Session-Id
	done chan struct{}

	// mu guards the fields below.
	mu         sync.Mutex
	last       int
	subscribed map[string]int64   // Unix time in nanoseconds of the answer, by URI
	heard      map[string][]int64 // of the updates, by URI
	ended      error              // why the GET stream ended; nil while it is open
}

// An rpcError is a JSON-RPC error.
type rpcError struct {
	Code    int64
	Message string
}

func (e *rpcError) Error() string { return fmt.Sprintf("%d: %s", e.Code, e.Message) }

// open initializes a session and opens its GET stream, which ends with ctx.
func open(ctx context.Context, c *http.Client, url string) (*session, error) {
	s := &session{http: c, url: url, done: make(chan struct{}), subscribed: make(map[string]int64), heard: make(map[string][]int64)}
	_, err := s.call(ctx, "initialize", map[string]any{
		"protocolVersion": legacyRevision, "capabilities": struct{}{},
		"clientInfo": map[string]string{"name": "sessions", "version": "1"},
	})
	if err != nil {
		return nil, fmt.Errorf("initialize: %w", err)
	}
	if s.id == "" {
		return nil, errors.New("initialize: the answer names no session")
	}
	res, err := s.post(ctx, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	if err != nil {
		return nil, err
	}
	res.Body.Close()
	if res.StatusCode != http.StatusAccepted {
		return nil, fmt.Errorf("initialized: status %d, want 202", res.StatusCode)
	}
	return s, s.listen(ctx)
}

func (s *session) request(ctx context.Context, method, accept string, body io.Reader) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, s.url, body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", accept)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if s.id != "" {
		req.Header.Set("Mcp-Session-Id", s.id)
		req.Header.Set("Mcp-Protocol-Version", legacyRevision)
	}
	return s.http.Do(req)
}

func (s *session) post(ctx context.Context, body string) (*http.Response, error) {
	return s.request(ctx, http.MethodPost, "application/json, text/event-stream", strings.NewReader(body))
}

// call returns a result, or an [*rpcError].
func (s *session) call(ctx context.Context, method string, params any) (json.RawMessage, error) {
	text, err := json.Marshal(params)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.last++
	id := s.last
	s.mu.Unlock()
	res, err := s.post(ctx, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, id, method, text))
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if method == "initialize" {
		s.id = res.Header.Get("Mcp-Session-Id")
	}
	if res.StatusCode != http.StatusOK {
		why, _ := io.ReadAll(res.Body) // for the message alone
		return nil, fmt.Errorf("status %d: %s", res.StatusCode, why)
	}
	return answer(res, id)
}

// answer reads the response to a request, from JSON or a stream.
func answer(res *http.Response, id int) (json.RawMessage, error) {
	stream := strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream")
	lines := bufio.NewReader(res.Body)
	for {
		line, err := lines.ReadBytes('\n')
		if data, ok := bytes.CutPrefix(line, []byte("data:")); ok || !stream && len(line) > 0 {
			if !stream {
				data = line
			}
			var m struct {
				ID     *int
				Result json.RawMessage
				Error  *rpcError
			}
			if json.Unmarshal(data, &m) == nil && m.ID != nil && *m.ID == id {
				if m.Error != nil {
					return nil, m.Error
				}
				return m.Result, nil
			}
		}
		if err != nil {
			return nil, fmt.Errorf("the response ended without an answer to %d: %w", id, err)
		}
	}
}

// listen opens the GET stream and returns when it is open.
func (s *session) listen(ctx context.Context) error {
	res, err := s.request(ctx, http.MethodGet, "text/event-stream", nil)
	if err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK {
		res.Body.Close()
		return fmt.Errorf("opening the GET stream: status %d", res.StatusCode)
	}
	go s.read(res.Body) // ends with ctx, or when mcpbridge ends the stream
	return nil
}

func (s *session) read(body io.ReadCloser) {
	defer close(s.done)
	defer body.Close()
	lines := bufio.NewReaderSize(body, 1024)
	for {
		line, err := lines.ReadBytes('\n')
		if data, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			s.note(data)
		}
		if err != nil {
			s.mu.Lock()
			s.ended = err
			s.mu.Unlock()
			return
		}
	}
}

func (s *session) note(data []byte) {
	var m struct {
		Method string
		Params struct{ URI string }
	}
	if json.Unmarshal(data, &m) != nil || m.Method != "notifications/resources/updated" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heard[m.Params.URI] = append(s.heard[m.Params.URI], time.Now().UnixNano())
}

func (s *session) subscribe(ctx context.Context, uri string) error {
	_, err := s.call(ctx, "resources/subscribe", map[string]string{"uri": uri})
	if err != nil {
		return fmt.Errorf("subscribing to %s: %w", uri, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.subscribed[uri] = time.Now().UnixNano()
	return nil
}

// alive says what is wrong with a session that ought to live: its GET stream
// still the first one, and pings answered.
func (s *session) alive(ctx context.Context) error {
	s.mu.Lock()
	ended := s.ended
	s.mu.Unlock()
	if ended != nil {
		return fmt.Errorf("the GET stream ended: %w", ended)
	}
	_, err := s.call(ctx, "ping", struct{}{})
	return err
}

// heardSince counts the updates of a URI from a time on, up to another.
func (s *session) heardSince(uri string, from, to int64) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, at := range s.heard[uri] {
		if at >= from && at < to {
			n++
		}
	}
	return n
}
