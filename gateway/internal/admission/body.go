package admission

import (
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/downstream"
	"github.com/mcpbridge/mcpbridge/internal/limits"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// firstBody is the size of the first buffer for a body.
const firstBody = 16 << 10

// Bodies bound request bodies in size and time.
type Bodies struct {
	Max     int64 // in bytes
	Timeout time.Duration
}

// Bound sets the deadline for reading the body. It is called before any response is
// written, since net/http reads the rest of a body first. Read clears the deadline, which
// would otherwise end long responses.
func (b *Bodies) Bound(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength != 0 {
		// It fails only for a writer without deadlines (a test's recorder), which can't stall.
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(b.Timeout))
	}
}

// Read returns the request's body. It reports false if it has written an error, and told
// log. in reserves the memory for the body.
func (b *Bodies) Read(w http.ResponseWriter, r *http.Request, log *downstream.LimitLog, in *mcp.Reservation) ([]byte, bool) {
	body, err := b.receive(w, r, in)
	if err == nil {
		_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
		return body, true
	}
	b.Refuse(w, r, log, err)
	return nil, false
}

// A Rest is what is left of a request's body.
type Rest struct {
	body io.Reader // nil if there is nothing to take
	by   time.Time
}

// Rest returns what Finish takes of a request. Call it before the handler, which may put another body in the
// place of the request's.
func (b *Bodies) Rest(r *http.Request) Rest {
	switch {
	case r.ContentLength == 0, r.ProtoMajor != 1,
		len(r.Header["Expect"]) > 0,                             // who expects 100 sends nothing unasked
		strings.EqualFold(r.Header.Get("Upgrade"), "websocket"): // what it sends is of the socket
		return Rest{}
	}
	rest := Rest{r.Body, time.Now().Add(b.Timeout)}
	if r.ContentLength < 0 {
		body := &chunkedBody{ReadCloser: r.Body}
		rest.body, r.Body = body, body
	}
	return rest
}

// A chunkedBody knows whether its end was read: to look for it would wait for the next chunk.
type chunkedBody struct {
	io.ReadCloser
	ended atomic.Bool
}

func (b *chunkedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		b.ended.Store(true)
	}
	return n, err
}

// lingerSilent bounds how long Finish waits for a client that sends nothing.
const lingerSilent = 5 * time.Second

// Finish takes the rest of a request that was answered before all of its body had arrived, until that has
// taken Bodies.Timeout. Else net/http would close the connection half a second later, and who is still
// sending, or reads nothing before all is sent, would lose the answer and see a connection that was reset
// (RFC 9112, section 9.6). Call it once the handler has returned.
func (rest Rest) Finish(w http.ResponseWriter) {
	if rest.ended() || time.Until(rest.by) <= 0 {
		return
	}
	if _, err := w.Write(nil); err != nil {
		return // the connection is not net/http's any more
	}
	c := http.NewResponseController(w)
	if c.Flush() != nil {
		return
	}
	for left := time.Until(rest.by); left > 0; left = time.Until(rest.by) {
		if c.SetReadDeadline(time.Now().Add(min(lingerSilent, left))) != nil {
			return
		}
		if _, err := io.CopyN(io.Discard, rest.body, firstBody); err != nil {
			return // that was all, or the client sends nothing, or is gone
		}
	}
}

// ended reports whether all was read.
func (rest Rest) ended() bool {
	switch body := rest.body.(type) {
	case nil:
		return true
	case *chunkedBody:
		return body.ended.Load()
	default:
		_, err := body.Read(nil)
		return err != nil
	}
}

// receive reads a body into a buffer that grows with the bytes that arrive: a Content-Length
// alone reserves no memory (CWE-789).
func (b *Bodies) receive(w http.ResponseWriter, r *http.Request, in *mcp.Reservation) ([]byte, error) {
	from, most := r.Body, r.ContentLength
	if most < 0 || most > b.Max {
		most = b.Max + 1 // where MaxBytesReader ends it
		from = http.MaxBytesReader(w, r.Body, b.Max)
	}
	if err := in.Grow(int(min(most, firstBody))); err != nil {
		return nil, err
	}
	body := make([]byte, 0, min(most, firstBody))
	for {
		n, err := from.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		switch {
		case r.ContentLength == int64(len(body)):
			_ = from.Close() // or net/http looks for more of it once more
			return body, nil
		case err == io.EOF && r.ContentLength >= 0:
			return nil, io.ErrUnexpectedEOF
		case err == io.EOF:
			return body, nil
		case err != nil:
			return nil, err
		case len(body) == cap(body):
			size := min(most, 2*int64(cap(body)))
			if err := in.Grow(int(size) - cap(body)); err != nil {
				return nil, err
			}
			body = append(make([]byte, 0, size), body...)
		}
	}
}

// Refuse answers a request whose body could not be read.
func (b *Bodies) Refuse(w http.ResponseWriter, r *http.Request, log *downstream.LimitLog, err error) {
	var tooLarge *http.MaxBytesError
	switch {
	case mcp.MayTryLater(err):
		w.Header().Set("Connection", "close")
		downstream.WriteBusy(w, wire.ID{}, mcp.WireError(err))
	case errors.Is(err, os.ErrDeadlineExceeded):
		log.Hit("body_timeout", "request refused: body too slow", "downstream", r.RemoteAddr, "limit", b.Timeout)
		w.Header().Set("Connection", "close")
		downstream.WriteError(w, http.StatusRequestTimeout, wire.ID{}, wire.Errorf(spec.CodeInvalidRequest,
			"the request body did not arrive within %v; send it faster, or raise body_timeout", b.Timeout))
	case errors.As(err, &tooLarge):
		log.Hit(limits.Body.Key, "request refused: body too large", "downstream", r.RemoteAddr, "limit", b.Max)
		downstream.WriteError(w, http.StatusRequestEntityTooLarge, wire.ID{}, wire.Errorf(spec.CodeInvalidRequest,
			"the request body is over %d bytes; send less, or %s", b.Max, limits.Body.Raise()))
	default:
		downstream.WriteError(w, http.StatusBadRequest, wire.ID{}, wire.Errorf(spec.CodeParse, "reading the request body: %v", err))
	}
}
