package bridgetest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// Client returns a RoundTripper that sends requests by next and records them with their
// responses, each exchange in a channel of its own. A response is recorded as its body
// is read. name says what a request is about, from its body; it may be nil.
func (r *Recorder) Client(wire string, next http.RoundTripper, name func(body []byte) string) http.RoundTripper {
	return &recordedClient{r, wire, next, name}
}

type recordedClient struct {
	r    *Recorder
	wire string
	next http.RoundTripper
	name func([]byte) string
}

// RoundTrip implements [http.RoundTripper].
func (c *recordedClient) RoundTrip(req *http.Request) (*http.Response, error) {
	var body []byte
	if req.GetBody != nil {
		again, err := req.GetBody()
		if err != nil {
			return nil, err
		}
		if body, err = io.ReadAll(again); err != nil {
			return nil, err
		}
	}
	ch := c.r.openRequest(c.wire, req, body, c.name)
	resp, err := c.next.RoundTrip(req)
	if err != nil {
		ch.add("=", failing(req))
		return nil, err
	}
	ch.add("<", head(fmt.Sprint(resp.StatusCode), resp.Header))
	resp.Body = &recordedBody{log: newBodyLog(ch, resp.Header), req: req, ReadCloser: resp.Body}
	return resp, nil
}

// Handler returns a handler that records what next is asked and answers, each exchange in
// a channel of its own.
func (r *Recorder) Handler(wire string, next http.Handler, name func(body []byte) string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return // the client went away
		}
		req.Body = io.NopCloser(bytes.NewReader(body))
		rw := &recordedWriter{ResponseWriter: w, ch: r.openRequest(wire, req, body, name)}
		next.ServeHTTP(rw, req)
		rw.end(req)
	})
}

func (r *Recorder) openRequest(wire string, req *http.Request, body []byte, name func([]byte) string) *channel {
	title := req.Method
	if name != nil && len(body) > 0 {
		title += " " + name(body)
	}
	ch := r.open(wire, title)
	h := req.Header.Clone()
	if host := req.Host; host != "" {
		h.Set("Host", host)
	}
	text := head(req.Method+" "+req.URL.RequestURI(), h)
	if len(body) > 0 {
		text += "\n\n" + string(body)
	}
	ch.add(">", text)
	return ch
}

// unrecorded are the headers that net/http sets by itself, or that follow from others.
var unrecorded = []string{"Date", "Content-Length", "Connection", "User-Agent", "Accept-Encoding"}

// head returns a first line and the headers, in the order of the alphabet.
func head(first string, h http.Header) string {
	lines := []string{first}
	for _, name := range slices.Sorted(maps.Keys(h)) {
		if slices.Contains(unrecorded, name) {
			continue
		}
		for _, value := range h[name] {
			lines = append(lines, name+": "+value)
		}
	}
	return strings.Join(lines, "\n")
}

// A bodyLog records a body: each event of an event stream by itself, anything else as a
// whole.
type bodyLog struct {
	ch     *channel
	events bool
	rest   []byte // what was not recorded yet
}

func newBodyLog(ch *channel, h http.Header) *bodyLog {
	return &bodyLog{ch: ch, events: h.Get("Content-Type") == "text/event-stream"}
}

func (l *bodyLog) write(p []byte) {
	l.rest = append(l.rest, p...)
	for l.events {
		event, rest, whole := bytes.Cut(l.rest, []byte("\n\n"))
		if !whole {
			return
		}
		l.ch.add("<", string(event))
		l.rest = rest
	}
}

// end records what is left, and how it ended; a body that is no stream just ends.
func (l *bodyLog) end(how string) {
	if len(l.rest) > 0 {
		l.ch.add("<", string(l.rest))
		l.rest = nil
	}
	if l.events || how != ended {
		l.ch.add("=", how)
	}
}

// How exchanges end.
const (
	ended  = "end"
	hungUp = "the client hung up"
	broken = "the server broke off"
)

// failing tells why there is no response, or no more of it.
func failing(req *http.Request) string {
	if req.Context().Err() != nil {
		return hungUp
	}
	return broken
}

// A recordedBody records what is read of a response.
type recordedBody struct {
	io.ReadCloser
	log  *bodyLog
	req  *http.Request
	over bool
}

func (b *recordedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.log.write(p[:n])
	switch {
	case err == nil, b.over:
		return n, err
	case errors.Is(err, io.EOF) && b.req.Context().Err() == nil: // or the other end was faster to hear of the client's
		b.log.end(ended)
	default:
		b.log.end(failing(b.req))
	}
	b.over = true
	return n, err
}

// A recordedWriter records what a handler answers.
type recordedWriter struct {
	http.ResponseWriter
	ch  *channel
	log *bodyLog // nil before WriteHeader
}

func (w *recordedWriter) WriteHeader(status int) {
	w.ch.add("<", head(fmt.Sprint(status), w.Header()))
	w.log = newBodyLog(w.ch, w.Header())
	w.ResponseWriter.WriteHeader(status)
}

func (w *recordedWriter) Write(p []byte) (int, error) {
	if w.log == nil {
		w.WriteHeader(http.StatusOK)
	}
	w.log.write(p)
	return w.ResponseWriter.Write(p)
}

// Flush implements [http.Flusher].
func (w *recordedWriter) Flush() {
	if w.log == nil {
		w.WriteHeader(http.StatusOK)
	}
	_ = http.NewResponseController(w.ResponseWriter).Flush() // the client went away if it fails
}

// end is called when the handler has returned.
func (w *recordedWriter) end(req *http.Request) {
	gone := req.Context().Err() != nil
	switch {
	case w.log == nil && gone:
		w.ch.add("=", hungUp)
	case w.log == nil:
		w.WriteHeader(http.StatusOK)
	case gone:
		w.log.end(hungUp)
	default:
		w.log.end(ended)
	}
}
