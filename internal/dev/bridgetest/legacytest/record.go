package legacytest

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// Seen is one request as it came.
type Seen struct {
	Verb   string
	Host   string
	Header http.Header
	Body   string
	Method string // of the message
}

// A record is what a server was sent, in order.
type record struct {
	mu   sync.Mutex // guards seen
	seen []Seen
}

// receive reads the message of a request, and records it unless quiet. It returns false if
// the back has left.
func (r *record) receive(req *http.Request, quiet bool) (m wire.Message, ok bool) {
	data, err := io.ReadAll(req.Body)
	if err != nil {
		return m, false
	}
	m, _ = wire.Parse(data, wire.Options{})
	if !quiet {
		r.add(req, data, m)
	}
	return m, true
}

func (r *record) add(req *http.Request, body []byte, m wire.Message) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen = append(r.seen, Seen{req.Method, req.Host, req.Header.Clone(), string(body), m.Method})
}

// Last returns the last request.
func (r *record) Last() Seen {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.seen[len(r.seen)-1]
}

// Requests returns what came of a message method, or of a verb.
func (r *record) Requests(name string) []Seen {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []Seen
	for _, s := range r.seen {
		if s.Method == name || s.Verb == name {
			out = append(out, s)
		}
	}
	return out
}

// Order returns everything that came, one word each.
func (r *record) Order() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []string
	for _, s := range r.seen {
		word := s.Verb
		if s.Method != "" {
			word = s.Method
		} else if s.Verb == http.MethodPost {
			word = s.Body
		}
		out = append(out, word)
	}
	return strings.Join(out, " ")
}

// Seen returns everything that came.
func (r *record) Seen() []Seen {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.seen)
}
