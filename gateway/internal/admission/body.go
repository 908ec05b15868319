package admission

import (
	"errors"
	"io"
	"net/http"
	"os"
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

// Finish takes what is left of the body of a request that was answered before all of it had arrived, until
// the deadline that Bound has set. Else net/http would close the connection half a second later, and who
// is still sending, or reads nothing before all is sent, would lose the answer and see a connection that
// was reset (RFC 9112, section 9.6). Call it once the handler has returned.
func (b *Bodies) Finish(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength == 0 || r.ProtoMajor != 1 || len(r.Header["Expect"]) > 0 || len(r.Header["Upgrade"]) > 0 {
		return // there is none; or a stream's own; or it is not sent unasked; or the connection is not net/http's any more
	}
	if r.ContentLength > 0 {
		if _, err := r.Body.Read(nil); err != nil {
			return // all of it was read
		}
	}
	if http.NewResponseController(w).Flush() == nil {
		_, _ = io.Copy(io.Discard, r.Body) // until its end, the deadline, or the end of the connection
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
