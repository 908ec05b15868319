package tap

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"mime"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
)

const sessionHeader = "Mcp-Session-Id"

// A Tap is a reverse proxy that reads along. Its methods are safe for concurrent
// use.
type Tap struct {
	// Set by New, read-only after.
	base    *url.URL
	schemas *Schemas
	server  *httptest.Server
	out     *http.Transport

	// mu guards the fields below.
	mu       sync.Mutex
	sessions map[string]*Session // by session id, or by the target of posts for HTTP+SSE
	open     map[*response]struct{}
	messages []Message
	problems []string
	resumed  []string
	passed   []Passed
	streams  map[string]string // by the ids of their events
	posts    int
}

// A Passed is one message, or batch, that passed in either direction.
type Passed struct {
	// Stream names the response that it was on, or was the request for: "GET" for
	// the streams of GET requests, else one name for each POST. What came after a
	// resumption is on the stream that was resumed, for a POST's with [Again] behind
	// its name.
	Stream string
	Up     bool // from the client
	Text   string
}

// Again ends the names of POST streams that were resumed.
const Again = " again"

// A Message is what the server sent.
type Message struct {
	Revision string // the session's
	Text     string
}

// A response is one that is under way.
type response struct {
	stop context.CancelFunc
	get  bool
	cut  bool // guarded by Tap.mu
}

// New returns a Tap before the server at base, which may have a path. Without
// schemas it judges nothing. Whoever gets one calls Close.
func New(base string, s *Schemas) (*Tap, error) {
	u, err := url.Parse(base)
	if err != nil {
		return nil, err
	}
	t := &Tap{base: u, schemas: s, sessions: make(map[string]*Session), open: make(map[*response]struct{}), streams: make(map[string]string)}
	t.out = &http.Transport{MaxIdleConnsPerHost: 100, DisableCompression: true}
	t.server = httptest.NewUnstartedServer(t)
	t.server.Config.ErrorLog = log.New(io.Discard, "", 0)
	t.server.Start()
	return t, nil
}

// URL is where a client finds what the server has at path.
func (t *Tap) URL(path string) string { return t.server.URL + path }

// Close ends all that is under way.
func (t *Tap) Close() {
	t.Cut(nil)
	t.server.CloseClientConnections()
	t.server.Close()
	t.out.CloseIdleConnections()
}

// Problems are what was wrong with messages, in order.
func (t *Tap) Problems() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.problems)
}

// Messages are all that the server sent, in order.
func (t *Tap) Messages() []Message {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.messages)
}

// Passed are all messages of both directions, in the order in which they came.
func (t *Tap) Passed() []Passed {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.passed)
}

// Forget forgets all that has passed.
func (t *Tap) Forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.passed, t.messages, t.problems, t.resumed = nil, nil, nil, nil
}

// take notes what the client sends, and returns the name of the stream for what
// answers it.
func (t *Tap) take(r *http.Request, body []byte) (stream string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if r.Method != http.MethodPost {
		switch stream = strings.TrimSuffix(t.streams[r.Header.Get("Last-Event-ID")], Again); stream {
		case "", http.MethodGet:
			return r.Method
		}
		return stream + Again
	}
	t.posts++
	stream = fmt.Sprintf("POST %d", t.posts)
	t.passed = append(t.passed, Passed{stream, true, string(body)})
	return stream
}

// Resumed are the values of Last-Event-ID that clients came back with.
func (t *Tap) Resumed() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.resumed)
}

// Cut breaks the connections of the responses under way, those to GET or the
// others if get is not nil, and returns how many there were.
func (t *Tap) Cut(get *bool) (n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for r := range t.open {
		if get == nil || r.get == *get {
			r.cut = true
			r.stop()
			n++
		}
	}
	return n
}

// ServeHTTP passes a request on.
func (t *Tap) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, stop := context.WithCancel(r.Context())
	defer stop()
	under := &response{stop: stop, get: r.Method == http.MethodGet}
	t.mu.Lock()
	t.open[under] = struct{}{}
	if id := r.Header.Get("Last-Event-ID"); id != "" {
		t.resumed = append(t.resumed, id)
	}
	t.mu.Unlock()
	whole := t.pass(ctx, w, r)
	t.mu.Lock()
	cut := under.cut
	delete(t.open, under)
	t.mu.Unlock()
	if cut || !whole {
		panic(http.ErrAbortHandler) // net/http closes the connection without a word
	}
}

// pass reports whether the response came to its end.
func (t *Tap) pass(ctx context.Context, w http.ResponseWriter, r *http.Request) (whole bool) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return false
	}
	to := *t.base
	to.Path, to.RawQuery = strings.TrimSuffix(to.Path, "/")+r.URL.Path, r.URL.RawQuery
	out, err := http.NewRequestWithContext(ctx, r.Method, to.String(), bytes.NewReader(body))
	if err != nil {
		return false
	}
	out.Header = r.Header.Clone()
	s := t.session(r)
	s.Asked(body)
	stream := t.take(r, body)
	res, err := t.out.RoundTrip(out)
	if err != nil {
		return false // the client sees a broken connection, as it would directly
	}
	defer res.Body.Close()
	if id := res.Header.Get(sessionHeader); id != "" {
		t.name(id, s)
	}
	for k, vs := range res.Header {
		w.Header()[k] = vs
	}
	w.WriteHeader(res.StatusCode)
	if kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type")); kind == "text/event-stream" {
		return t.stream(w, res, s, stream)
	}
	text, err := io.ReadAll(res.Body)
	if res.StatusCode == http.StatusOK && len(text) > 0 { // errors of HTTP need no JSON-RPC
		t.judge(s, text, stream)
	}
	_, err2 := w.Write(text)
	return err == nil && err2 == nil
}

// session returns the one that a request is in, or a new one without a name yet.
func (t *Tap) session(r *http.Request) *Session {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.sessions[r.Header.Get(sessionHeader)]; s != nil {
		return s
	}
	if s := t.sessions[r.URL.RequestURI()]; s != nil {
		return s
	}
	return NewSession(t.schemas)
}

func (t *Tap) name(id string, s *Session) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.sessions[id] == nil {
		t.sessions[id] = s
	}
}

// stream passes an event stream on, piece by piece.
func (t *Tap) stream(w http.ResponseWriter, res *http.Response, s *Session, stream string) (whole bool) {
	flush := http.NewResponseController(w)
	if flush.Flush() != nil {
		return false
	}
	var all events
	for piece := make([]byte, 32<<10); ; {
		n, err := res.Body.Read(piece)
		for _, e := range all.add(piece[:n]) {
			t.event(s, e, stream)
		}
		if _, err := w.Write(piece[:n]); err != nil || flush.Flush() != nil {
			return false
		}
		if err != nil {
			return err == io.EOF
		}
	}
}

// event judges what an event says. That of HTTP+SSE which says where to post
// names the session.
func (t *Tap) event(s *Session, e event, stream string) {
	if e.id != "" {
		t.mu.Lock()
		t.streams[e.id] = stream
		t.mu.Unlock()
	}
	switch {
	case e.name == "endpoint":
		if at := string(e.data); strings.HasPrefix(at, "/") {
			t.name(at, s)
		} else {
			t.problem(fmt.Sprintf("the endpoint %s leads past the tap", at))
		}
	case len(e.data) > 0: // else it is there for its id
		t.judge(s, e.data, stream)
	}
}

func (t *Tap) judge(s *Session, text []byte, stream string) {
	if t.schemas != nil {
		if err := s.Judge(text); err != nil {
			t.problem(fmt.Sprintf("%s: %v", text, err))
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.messages = append(t.messages, Message{s.Revision(), string(text)})
	t.passed = append(t.passed, Passed{stream, false, string(text)})
}

func (t *Tap) problem(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.problems = append(t.problems, text)
}
