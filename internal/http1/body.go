package http1

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httputil"
	"sync"
)

// A body is a response's body. One goroutine reads it; another may call Close
// concurrently.
type body struct {
	x      *exchange
	left   int64     // bytes left of a body of known length; else -1
	chunks io.Reader // nil: the body is not chunked
	err    error     // the error that ended it; owned by the reader

	// mu guards the fields below, and is held only to read or set them.
	mu     sync.Mutex
	ended  bool
	closed bool
}

func (b *body) frame(f framing) {
	b.left = f.length
	if f.chunked {
		b.left, b.chunks = -1, httputil.NewChunkedReader(b.x.c.br)
	}
	if b.left == 0 {
		b.err, b.ended = io.EOF, true
	}
}

// Read implements [io.Reader]. If the length is known, it returns io.EOF together with
// the last bytes.
func (b *body) Read(p []byte) (int, error) {
	switch {
	case b.isClosed():
		return 0, http.ErrBodyReadAfterClose
	case b.err != nil:
		return 0, b.err
	case len(p) == 0:
		return 0, nil
	}
	n, err := b.next(p)
	if err == nil {
		return n, nil
	}
	if ctx := b.x.ctx; err != io.EOF && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	b.err = err
	b.end(err == io.EOF)
	return n, err
}

func (b *body) next(p []byte) (int, error) {
	if b.chunks != nil {
		n, err := b.chunks.Read(p)
		if err == io.EOF {
			err = b.trailer()
		}
		return n, err
	}
	if b.left > 0 && int64(len(p)) > b.left {
		p = p[:b.left]
	}
	n, err := b.x.c.br.Read(p)
	if b.left < 0 {
		return n, err
	}
	switch b.left -= int64(n); {
	case b.left == 0:
		return n, io.EOF
	case err == io.EOF:
		return n, io.ErrUnexpectedEOF
	}
	return n, err
}

// trailer skips the trailer section, and returns io.EOF.
func (b *body) trailer() error {
	_, err := readBlock(b.x.c.br, b.x.c.t.maxHeader)
	switch {
	case err == io.EOF:
		return io.ErrUnexpectedEOF
	case errors.Is(err, errHeaderTooLong):
		return malformed("its trailer is too long")
	case err != nil:
		return err
	}
	return io.EOF
}

// Close implements [io.Closer]. It closes the connection unless the body was read to its
// end, and unblocks Read.
func (b *body) Close() error {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.end(false)
	return nil
}

// EndConnection closes the connection of a response, and reports whether it is a
// connection of a Transport. Call it if the server may have sent more than one response:
// later requests on the connection would then get each other's responses.
func EndConnection(resp *http.Response) bool {
	b, ok := resp.Body.(*body)
	if ok {
		b.x.c.stop()
	}
	return ok
}

func (b *body) isClosed() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.closed
}

// end ends the exchange. Only the first call has an effect.
func (b *body) end(whole bool) {
	b.mu.Lock()
	ended := b.ended
	b.ended = true
	b.mu.Unlock()
	if !ended {
		b.x.end(whole)
	}
}
