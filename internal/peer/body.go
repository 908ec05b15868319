package peer

import (
	"bytes"
	"errors"
	"io"
	"sync"
)

// maxKept bounds what is kept of a body until a replica has it, in bytes: what is read before
// that is connected to.
const maxKept = 32 << 10

var errBodyLost = errors.New("the body was sent to a replica that is gone")

// A keptBody is a request's body that another replica can be sent if the first one is gone. Who
// made the request closes the body.
type keptBody struct {
	body io.ReadCloser

	mu   sync.Mutex // held while the body is read; guards the fields below
	kept []byte     // what was read
	lost bool       // more than that was, or is read still
	over bool       // rest was called
}

// Read implements [io.Reader].
func (b *keptBody) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.over {
		return 0, errBodyLost
	}
	n, err := b.body.Read(p)
	if b.lost = b.lost || len(b.kept)+n > maxKept; b.lost {
		b.kept = nil
		return n, err
	}
	b.kept = append(b.kept, p[:n]...)
	return n, err
}

// Close implements [io.Closer].
func (b *keptBody) Close() error { return nil }

// rest returns the body as it was before it was read. Nobody reads it by b after that.
func (b *keptBody) rest() io.ReadCloser {
	if !b.mu.TryLock() {
		return lostBody{b.body} // somebody reads still
	}
	defer b.mu.Unlock()
	b.over = true
	switch {
	case b.lost:
		return lostBody{b.body}
	case len(b.kept) == 0:
		return b.body
	}
	return struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(b.kept), b.body), b.body}
}

// A lostBody is what is left of a body that was sent in part.
type lostBody struct{ io.Closer }

// Read implements [io.Reader].
func (lostBody) Read([]byte) (int, error) { return 0, errBodyLost }
