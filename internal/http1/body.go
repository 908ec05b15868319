package http1

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httputil"
	"sync"
)

// A body is the rest of an exchange. One goroutine reads it; Close may be called
// beside it.
type body struct {
	x      *exchange
	left   int64     // bytes to come of a body whose length is known; -1 of others
	chunks io.Reader // nil: the body is not chunked
	err    error     // what ended it; owned by the reader

	// mu guards the fields below. No more than flags are set under it.
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

// Read implements [io.Reader]. The end comes along with the last bytes where it
// is known.
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

// trailer passes over what follows the last chunk, and returns io.EOF.
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

// Close implements [io.Closer]. It ends the connection unless the body was read
// to its end, and unblocks Read.
func (b *body) Close() error {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.end(false)
	return nil
}

// EndConnection ends the connection that a response came on, and reports whether it is
// one of a Transport's own. What follows on it can't be trusted: as soon as there is
// one answer too many each request gets that of another.
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

// end ends the exchange, once.
func (b *body) end(whole bool) {
	b.mu.Lock()
	ended := b.ended
	b.ended = true
	b.mu.Unlock()
	if !ended {
		b.x.end(whole)
	}
}
