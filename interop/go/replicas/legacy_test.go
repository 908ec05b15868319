package replicas

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

const legacyRevision = "2025-11-25"

// A session is a client of the legacy era, in plain HTTP. Each of its requests says which
// replica gets it.
type session struct {
	w      *world
	server string
	id     string // its Mcp-Session-Id; "" over HTTP+SSE
	posts  string // over HTTP+SSE: the path and query of its messages
	header http.Header
	once   bool // who asks tries again itself

	// mu guards the fields below.
	mu      sync.Mutex
	waiting map[int64]chan answer // over HTTP+SSE: the requests whose answers come on the stream
	feed    *feed
}

// A feed is a GET stream.
type feed struct {
	stop context.CancelFunc
	done chan struct{} // closed when it has ended

	// mu guards the fields below.
	mu     sync.Mutex
	events []event
	ended  error // nil while it is open
}

// An event is one of a GET stream.
type event struct {
	at       int64 // Unix time in nanoseconds
	id, data string
}

// again reports whether a request is to be sent again: a replica that got no processor in time was
// taken for one that does not answer, and nothing was done. In the full form none may be refused.
func (w *world) again(status int, text string, end time.Time) bool {
	if full || w.setup.strict || status != http.StatusServiceUnavailable || !strings.Contains(text, "does not answer; try again") || time.Now().After(end) {
		return false
	}
	time.Sleep(200 * time.Millisecond)
	return true
}

// open initializes a session at a replica. header goes with each of its requests.
func (w *world) open(ctx context.Context, r *replica, server string, header http.Header) (*session, error) {
	s := &session{w: w, server: server, header: header}
	id := lastID.Add(1)
	req, err := s.request(ctx, r, http.MethodPost, s.initialize(id))
	if err != nil {
		return nil, err
	}
	res, err := w.clients.Do(req)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(res.Body)
	res.Body.Close()
	if s.id = res.Header.Get("Mcp-Session-Id"); err != nil || res.StatusCode != http.StatusOK || s.id == "" {
		return nil, fmt.Errorf("initialize = %d %s, %v", res.StatusCode, text, err)
	}
	if a := s.notify(ctx, r, "notifications/initialized"); a != http.StatusAccepted {
		return nil, fmt.Errorf("initialized: status %d", a)
	}
	return s, nil
}

func (s *session) initialize(id int64) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"initialize","params":{"protocolVersion":%q,"capabilities":{"elicitation":{}},"clientInfo":{"name":"replicas","version":"1"}}}`, id, legacyRevision)
}

func (w *world) mustOpen(r *replica, server string, header http.Header) *session {
	w.t.Helper()
	s, err := w.open(w.t.Context(), r, server, header)
	if err != nil {
		w.t.Fatalf("a session at %s: %v", r.name, err)
	}
	return s
}

// request makes a request of the session.
func (s *session) request(ctx context.Context, r *replica, method, body string) (*http.Request, error) {
	to := r.url(s.server)
	if s.posts != "" {
		to = "http://" + r.listen + s.posts
	}
	var content io.Reader
	if body != "" {
		content = strings.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, method, to, content)
	if err != nil {
		return nil, err
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
	} else {
		req.Header.Set("Accept", "text/event-stream")
	}
	if s.id != "" {
		req.Header.Set("Mcp-Session-Id", s.id)
		req.Header.Set("Mcp-Protocol-Version", legacyRevision)
	}
	for key, values := range s.header {
		req.Header[key] = values
	}
	return req, nil
}

// ask sends a request of the session to a replica. params is JSON.
func (s *session) ask(ctx context.Context, r *replica, method, params string) (a answer) {
	for end := time.Now().Add(soon); ; {
		begun, id := time.Now(), lastID.Add(1)
		req, err := s.request(ctx, r, http.MethodPost, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, id, method, params))
		if err != nil {
			return answer{err: err}
		}
		if s.posts != "" {
			a = s.hear(ctx, req, id)
		} else {
			a = exchange(s.w.clients, req, id)
		}
		a.took = time.Since(begun)
		if s.once || !s.w.again(a.status, a.text, end) {
			return a
		}
	}
}

// begin sends a request of the session over Streamable HTTP, and returns the stream of its
// response.
func (s *session) begin(r *replica, method, params string) (f *feed, id int64, err error) {
	f, err = s.stream(method, func(ctx context.Context) (*http.Request, error) {
		id = lastID.Add(1)
		return s.request(ctx, r, http.MethodPost, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, id, method, params))
	})
	return f, id, err
}

// stream sends the request that build builds, and returns the stream of its response. what names it.
func (s *session) stream(what string, build func(context.Context) (*http.Request, error)) (*feed, error) {
	for end := time.Now().Add(soon); ; {
		f, status, err := s.streamOnce(what, build)
		if err == nil || s.once || !s.w.again(status, err.Error(), end) {
			return f, err
		}
	}
}

// streamOnce returns the status, too, if there is a response.
func (s *session) streamOnce(what string, build func(context.Context) (*http.Request, error)) (*feed, int, error) {
	ctx, stop := context.WithCancel(context.Background())
	req, err := build(ctx)
	if err != nil {
		stop()
		return nil, 0, err
	}
	res, err := s.w.clients.Do(req)
	if err != nil {
		stop()
		return nil, 0, err
	}
	kind := res.Header.Get("Content-Type")
	if res.StatusCode != http.StatusOK || req.Method == http.MethodPost && !strings.HasPrefix(kind, "text/event-stream") {
		text, _ := io.ReadAll(res.Body)
		res.Body.Close()
		stop()
		return nil, res.StatusCode, fmt.Errorf("%s = %d %s", what, res.StatusCode, text)
	}
	f := &feed{stop: stop, done: make(chan struct{})}
	go f.read(res.Body, nil) // ends with stop, or when the stream does
	return f, res.StatusCode, nil
}

// call calls a tool.
func (s *session) call(ctx context.Context, r *replica, name string, args any) answer {
	text, err := json.Marshal(args)
	if err != nil {
		return answer{err: err}
	}
	return s.ask(ctx, r, "tools/call", fmt.Sprintf(`{"name":%q,"arguments":%s}`, name, text))
}

func (s *session) mark(ctx context.Context, r *replica, nonce string) answer {
	return s.call(ctx, r, "mark", map[string]any{"nonce": nonce})
}

func (s *session) subscribe(ctx context.Context, r *replica, uri string) answer {
	return s.ask(ctx, r, "resources/subscribe", fmt.Sprintf(`{"uri":%q}`, uri))
}

// reply answers a question of the server.
func (s *session) reply(ctx context.Context, r *replica, id json.RawMessage, result string) int {
	return s.send(ctx, r, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, id, result))
}

func (s *session) notify(ctx context.Context, r *replica, method string) int {
	return s.send(ctx, r, fmt.Sprintf(`{"jsonrpc":"2.0","method":%q}`, method))
}

// send posts a message that has no answer, and returns the status, 0 if none came.
func (s *session) send(ctx context.Context, r *replica, body string) int {
	return s.tell(ctx, r, http.MethodPost, body)
}

// end deletes the session, and returns the status.
func (s *session) end(ctx context.Context, r *replica) int {
	return s.tell(ctx, r, http.MethodDelete, "")
}

// tell sends what has no answer, and returns the status, 0 if none came.
func (s *session) tell(ctx context.Context, r *replica, method, body string) int {
	for end := time.Now().Add(soon); ; {
		req, err := s.request(ctx, r, method, body)
		if err != nil {
			return 0
		}
		res, err := s.w.clients.Do(req)
		if err != nil {
			return 0
		}
		text, _ := io.ReadAll(res.Body) // all of it: the connection is used again
		res.Body.Close()
		if s.once || !s.w.again(res.StatusCode, string(text), end) {
			return res.StatusCode
		}
	}
}

// follow opens the GET stream at a replica, behind the event after unless that is "".
func (s *session) follow(r *replica, after string) (*feed, error) {
	return s.stream("GET", func(ctx context.Context) (*http.Request, error) {
		req, err := s.request(ctx, r, http.MethodGet, "")
		if err == nil && after != "" {
			req.Header.Set("Last-Event-ID", after)
		}
		return req, err
	})
}

func (f *feed) close() {
	f.stop()
	<-f.done
}

func (f *feed) read(body io.ReadCloser, tell func(event)) {
	defer close(f.done)
	defer body.Close()
	var e event
	for lines := bufio.NewReaderSize(body, 1024); ; {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			f.mu.Lock()
			f.ended = err
			f.mu.Unlock()
			return
		}
		line = bytes.TrimRight(line, "\r\n")
		if id, ok := bytes.CutPrefix(line, []byte("id:")); ok {
			e.id = strings.TrimSpace(string(id))
		} else if data, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			e.data += strings.TrimPrefix(string(data), " ")
		} else if len(line) == 0 && e.data != "" {
			e.at = time.Now().UnixNano()
			f.mu.Lock()
			f.events = append(f.events, e)
			f.mu.Unlock()
			if tell != nil {
				tell(e)
			}
			e = event{}
		} else if len(line) == 0 {
			e = event{}
		}
	}
}

// all returns what has come so far.
func (f *feed) all() []event {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]event(nil), f.events...)
}

// open reports whether the stream has not ended.
func (f *feed) open() bool {
	select {
	case <-f.done:
		return false
	default:
		return true
	}
}

// with returns the events that have all words.
func (f *feed) with(words ...string) (found []event) {
next:
	for _, e := range f.all() {
		for _, word := range words {
			if !strings.Contains(e.data, word) {
				continue next
			}
		}
		found = append(found, e)
	}
	return found
}

// find waits for an event that has all words.
func (f *feed) find(d time.Duration, words ...string) (event, error) {
	for end := time.Now().Add(d); ; time.Sleep(5 * time.Millisecond) {
		if found := f.with(words...); len(found) > 0 {
			return found[0], nil
		}
		if time.Now().After(end) || !f.open() && len(f.with(words...)) == 0 {
			return event{}, fmt.Errorf("no event with %q; %d came: %.1000s", words, len(f.all()), fmt.Sprint(f.all()))
		}
	}
}

// openOld opens a session over HTTP+SSE, whose stream is at a replica.
func (w *world) openOld(ctx context.Context, r *replica, server string, header http.Header) (*session, error) {
	s := &session{w: w, server: server, header: header, waiting: make(map[int64]chan answer)}
	streaming, stop := context.WithCancel(context.Background())
	req, err := http.NewRequestWithContext(streaming, http.MethodGet, r.old(server), nil)
	if err != nil {
		stop()
		return nil, err
	}
	req.Header.Set("Accept", "text/event-stream")
	for key, values := range header {
		req.Header[key] = values
	}
	res, err := w.clients.Do(req)
	if err != nil {
		stop()
		return nil, err
	}
	endpoint := make(chan string, 1)
	s.feed = &feed{stop: stop, done: make(chan struct{})}
	go s.feed.read(res.Body, func(e event) { // ends with stop, or when the stream does
		if strings.Contains(e.data, "sessionId=") && !strings.HasPrefix(e.data, "{") {
			endpoint <- e.data
			return
		}
		s.arrived(e)
	})
	select {
	case text := <-endpoint:
		at, err := url.Parse(text)
		if err != nil {
			return nil, err
		}
		s.posts = at.RequestURI()
	case <-s.feed.done:
		return nil, errors.New("the stream ended at once")
	case <-time.After(recovery):
		s.feed.close()
		return nil, errors.New("no endpoint event")
	}
	id := lastID.Add(1)
	req, err = s.request(ctx, r, http.MethodPost, s.initialize(id))
	if err != nil {
		return nil, err
	}
	if a := s.hear(ctx, req, id); a.problem() != "" {
		return nil, fmt.Errorf("initialize: %s", a.problem())
	}
	if status := s.notify(ctx, r, "notifications/initialized"); status != http.StatusAccepted {
		return nil, fmt.Errorf("initialized: status %d", status)
	}
	return s, nil
}

// arrived gives an answer to whom it is for.
func (s *session) arrived(e event) {
	var m struct {
		ID     *int64
		Method string
	}
	if json.Unmarshal([]byte(e.data), &m) != nil || m.ID == nil || m.Method != "" {
		return
	}
	s.mu.Lock()
	to := s.waiting[*m.ID]
	delete(s.waiting, *m.ID)
	s.mu.Unlock()
	if to != nil {
		a := answer{status: http.StatusOK}
		a.parse(*m.ID, e.data)
		to <- a
	}
}

// hear posts a request whose answer comes on the stream.
func (s *session) hear(ctx context.Context, req *http.Request, id int64) answer {
	to := make(chan answer, 1)
	s.mu.Lock()
	s.waiting[id] = to
	s.mu.Unlock()
	res, err := s.w.clients.Do(req)
	if err != nil {
		return answer{err: err}
	}
	text, _ := io.ReadAll(res.Body)
	res.Body.Close()
	if res.StatusCode != http.StatusAccepted {
		a := answer{status: res.StatusCode}
		a.parse(id, strings.TrimSpace(string(text)))
		return a
	}
	select {
	case a := <-to:
		return a
	case <-s.feed.done:
		return answer{err: errors.New("the stream ended")}
	case <-ctx.Done():
		return answer{err: ctx.Err()}
	case <-time.After(recovery):
		return answer{err: errors.New("no answer on the stream")}
	}
}
