package clients

import (
	"context"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/sse"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// maxMessage limits a message, in bytes; shownText how much is quoted of what is none;
// endWithin how long the end of a session may take.
const (
	maxMessage = sse.DefaultMaxEventSize
	shownText  = 200
	endWithin  = 2 * time.Second
)

// OverHTTP returns the way to an endpoint, a valid URL. header is sent beside that of the
// client.
func OverHTTP(url string, header http.Header, t http.RoundTripper) Way {
	return &overHTTP{url: url, header: header, transport: t}
}

type overHTTP struct {
	url       string
	header    http.Header
	transport http.RoundTripper
	last      http.Header // of a message of the session
	streams   []io.Closer // of GET, which are open until Close
}

// Send implements [Way].
func (w *overHTTP) Send(ctx context.Context, verb string, header http.Header, body []byte, id wire.ID) (Answer, error) {
	resp, err := w.do(ctx, verb, header, body)
	if err != nil {
		return Answer{}, err
	}
	a := Answer{Status: resp.StatusCode, Session: resp.Header.Get(spec.HeaderSession)}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if verb == http.MethodGet && resp.StatusCode < 300 {
		w.streams = append(w.streams, resp.Body)
		return a, nil
	}
	defer func() { _ = resp.Body.Close() }() // it has been read
	switch {
	case resp.StatusCode < 300 && id.IsZero():
		return a, nil
	case resp.StatusCode < 300 && kind == "text/event-stream":
		a.Message, err = response(sse.NewReader(resp.Body, sse.ReaderOptions{MaxEventSize: maxMessage}), id)
		return a, err
	}
	text, err := transport.ReadAll(resp.Body, 0, maxMessage)
	if err != nil {
		return a, err
	}
	if m, err := wire.Parse(text, wire.Options{}); err == nil {
		a.Message = m
	} else {
		a.Text = strings.TrimSpace(strings.ToValidUTF8(string(text[:min(len(text), shownText)]), ""))
	}
	return a, nil
}

func (w *overHTTP) do(ctx context.Context, verb string, header http.Header, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, verb, w.url, strings.NewReader(string(body)))
	if err != nil {
		return nil, err
	}
	req.Header = header.Clone()
	for name, values := range w.header {
		req.Header[name] = values
	}
	if req.Header.Get("User-Agent") == "" {
		req.Header["User-Agent"] = nil // rather than Go's
	}
	resp, err := w.transport.RoundTrip(req)
	if err != nil {
		return nil, transport.Cause(err)
	}
	if header.Get(spec.HeaderSession) != "" {
		w.last = header
	}
	return resp, nil
}

// response reads a stream until the response to id.
func response(r *sse.Reader, id wire.ID) (wire.Message, error) {
	for {
		e, err := r.Next()
		if err != nil {
			return wire.Message{}, fmt.Errorf("the stream ended before the response: %w", err)
		}
		m, err := wire.Parse(r.Take(), wire.Options{})
		switch {
		case err != nil:
			return m, fmt.Errorf("an event of type %q is no message: %w", e.Type, err)
		case m.Kind() == wire.Response && (m.ID == id || m.ID.IsZero()):
			return m, nil
		}
	}
}

// Close implements [Way]: it ends the streams and the session.
func (w *overHTTP) Close() error {
	for _, s := range w.streams {
		_ = s.Close() // what it would still have sent is of no use
	}
	if w.last == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), endWithin)
	defer cancel()
	resp, err := w.do(ctx, http.MethodDelete, w.last, nil)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

// OverPipe returns the way to a server that conn is connected to. There, messages have no
// headers, and what is none is not sent.
func OverPipe(conn transport.Conn) Way { return overPipe{conn} }

type overPipe struct{ transport.Conn }

// Send implements [Way].
func (p overPipe) Send(ctx context.Context, _ string, _ http.Header, body []byte, id wire.ID) (Answer, error) {
	if body == nil {
		return Answer{}, nil
	}
	stop := context.AfterFunc(ctx, func() { _ = p.Close() }) // ends Read and Write
	defer stop()
	err := p.Write(body)
	for err == nil && !id.IsZero() {
		var text []byte
		if text, err = p.Read(); err != nil {
			break
		}
		m, wrong := wire.Parse(text, wire.Options{})
		if wrong == nil && m.Kind() == wire.Response && m.ID == id {
			return Answer{Message: m}, nil
		}
	}
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return Answer{}, err
}
