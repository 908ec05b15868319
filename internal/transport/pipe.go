package transport

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"sync"
)

// pipeDepth is how many messages are queued in each direction before Write blocks.
const pipeDepth = 64

// NewPipe returns the two ends of a connection in memory. Each end reads what the other writes. A few
// messages are queued; then Write blocks for up to [DefaultWriteTimeout], and WriteUntil until its
// context ends. After one end is closed, the other reads the queued messages, then io.EOF; its writes
// fail with [io.ErrClosedPipe].
func NewPipe() (Conn, Conn) {
	ab, ba := make(chan []byte, pipeDepth), make(chan []byte, pipeDepth)
	a := &pipe{in: ba, out: ab, done: make(chan struct{})}
	b := &pipe{in: ab, out: ba, done: make(chan struct{}), peerDone: a.done}
	a.peerDone = b.done
	return a, b
}

// A pipe is one end. The message channels are never closed, because the end that closes
// may not be the sender.
type pipe struct {
	in       <-chan []byte
	out      chan<- []byte
	once     sync.Once
	done     chan struct{} // closed by Close
	peerDone <-chan struct{}
}

func (p *pipe) Read() ([]byte, error) {
	select {
	case <-p.done:
		return nil, ErrClosed
	default:
	}
	select {
	case msg := <-p.in:
		return msg, nil
	case <-p.done:
		return nil, ErrClosed
	case <-p.peerDone:
	}
	select {
	case msg := <-p.in: // written before the peer closed
		return msg, nil
	default:
		return nil, io.EOF
	}
}

func (p *pipe) Write(msg []byte) error {
	late := fmt.Errorf("%w after %v", ErrWriteTimeout, DefaultWriteTimeout)
	ctx, cancel := context.WithTimeoutCause(context.Background(), DefaultWriteTimeout, late)
	defer cancel()
	return p.WriteUntil(ctx, msg)
}

// WriteUntil is [WriteUntil] for a pipe.
func (p *pipe) WriteUntil(ctx context.Context, msg []byte) error {
	select {
	case <-p.done:
		return ErrClosed
	case <-p.peerDone:
		return io.ErrClosedPipe
	default:
	}
	msg = bytes.Clone(bytes.TrimSpace(msg))
	select {
	case p.out <- msg:
		return nil
	default:
	}
	select {
	case p.out <- msg:
		return nil
	case <-p.done:
		return ErrClosed
	case <-p.peerDone:
		return io.ErrClosedPipe
	case <-ctx.Done():
		return fmt.Errorf("writing to pipe: %w: %w", ErrUnwritten, context.Cause(ctx))
	}
}

func (p *pipe) Close() error {
	p.once.Do(func() { close(p.done) })
	return nil
}
