package transport

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"
)

// A client that goes on sending on the connection of its stream must not be read
// for as long as it likes: its connection ends (CWE-770).
func TestStrayBytesEndTheStream(t *testing.T) {
	cause := make(chan error, 1)
	ss := newStreamServer(t, func(ctx context.Context, s *Stream) {
		_, _ = io.WriteString(s, "one")
		<-ctx.Done()
		cause <- context.Cause(ctx)
	})
	ss.Start()
	c := ss.dial(t)
	write(t, c, streamRequest)
	<-ss.taken
	piece := make([]byte, 4<<10)
	for sent := 0; sent < 64*maxStray; sent += len(piece) {
		if _, err := c.Write(piece); err != nil {
			break // as it should
		}
	}
	select {
	case err := <-cause:
		if !errors.Is(err, ErrStray) {
			t.Errorf("cause = %v, want %v", err, ErrStray)
		}
	case <-time.After(5 * time.Second):
		t.Errorf("the stream is open after %d bytes that don't belong there", 64*maxStray)
	}
}
