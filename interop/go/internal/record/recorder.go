package record

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"sync"
)

// An Exchange is one HTTP request, and what came of it so far.
type Exchange struct {
	Method string
	Asked  http.Header
	Body   []byte
	Status int
	Said   http.Header
	Answer []byte
}

// A Recorder passes HTTP on to one address. Its methods are safe for concurrent use.
type Recorder struct {
	URL string // of the Recorder, without a path

	server *httptest.Server
	mu     sync.Mutex // guards the field below, and what it points to
	kept   []*Exchange
}

// Start starts a Recorder before the host of a URL. Whoever gets it calls Close.
func Start(to string) (*Recorder, error) {
	u, err := url.Parse(to)
	if err != nil {
		return nil, err
	}
	r := new(Recorder)
	proxy := &httputil.ReverseProxy{
		FlushInterval:  -1,
		Transport:      &http.Transport{},
		Rewrite:        func(p *httputil.ProxyRequest) { p.SetURL(&url.URL{Scheme: u.Scheme, Host: u.Host}) },
		ModifyResponse: r.answered,
	}
	r.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		proxy.ServeHTTP(w, r.asked(req))
	}))
	r.URL = r.server.URL
	return r, nil
}

// Close ends the Recorder and the streams through it.
func (r *Recorder) Close() {
	r.server.CloseClientConnections()
	r.server.Close()
}

// Exchanges returns a copy of what was passed on.
func (r *Recorder) Exchanges() []Exchange {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []Exchange
	for _, e := range r.kept {
		c := *e
		c.Answer = slices.Clone(e.Answer)
		all = append(all, c)
	}
	return all
}

// Forget lets the next Exchanges begin here.
func (r *Recorder) Forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.kept = nil
}

type contextKey struct{}

func (r *Recorder) asked(req *http.Request) *http.Request {
	body, _ := io.ReadAll(req.Body) // a half one is passed on as it is
	req.Body = io.NopCloser(bytes.NewReader(body))
	e := &Exchange{Method: req.Method, Asked: req.Header.Clone(), Body: body}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.kept = append(r.kept, e)
	return req.WithContext(withExchange(req.Context(), e))
}

func (r *Recorder) answered(res *http.Response) error {
	e := exchangeOf(res.Request.Context())
	r.mu.Lock()
	defer r.mu.Unlock()
	e.Status, e.Said = res.StatusCode, res.Header.Clone()
	res.Body = &reading{res.Body, r, e}
	return nil
}

// A reading keeps what is read of a response.
type reading struct {
	io.ReadCloser
	r *Recorder
	e *Exchange
}

func (b *reading) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.r.mu.Lock()
	defer b.r.mu.Unlock()
	b.e.Answer = append(b.e.Answer, p[:n]...)
	return n, err
}
