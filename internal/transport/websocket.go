package transport

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/gorilla/websocket"

	"github.com/mcpbridge/mcpbridge/internal/wake"
)

const (
	// Subprotocol is the subprotocol of a WebSocket that carries MCP.
	Subprotocol = "mcp"

	// DefaultKeepAlive is the interval of pings on a WebSocket.
	DefaultKeepAlive = 15 * time.Second
)

// ErrSilent is wrapped by the error of a Read that ended because the peer sent nothing,
// not even a pong.
var ErrSilent = errors.New("transport: peer is silent")

// ErrSlow is wrapped by the error of a Read that ended because the peer took too long to
// send a message.
var ErrSlow = errors.New("transport: peer is slow")

// WebSocketOptions configure a WebSocket. The zero value is useful; negative values are
// errors.
type WebSocketOptions struct {
	MaxMessage int // bytes of a message read; zero means DefaultMaxMessage

	// WriteTimeout is that of one message. Zero means DefaultWriteTimeout for an accepted
	// connection, and none for a dialed one: a server that is busy reads later.
	WriteTimeout time.Duration

	// KeepAlive is the interval of pings. If the peer sends nothing for twice as long
	// while Read is running, the connection is closed. Zero means DefaultKeepAlive.
	KeepAlive time.Duration

	// MessageTimeout is how long a message may take from its first frame to its end, with
	// the precision of KeepAlive, because its part is held in memory. Zero means no limit
	// while the peer sends.
	MessageTimeout time.Duration

	// Memory is what a message takes until Read returns it. If there is none, the connection
	// is closed with code 1013. Nil means that it is not counted.
	Memory Room
}

func (o *WebSocketOptions) fill() error {
	if o.MaxMessage < 0 || o.WriteTimeout < 0 || o.KeepAlive < 0 || o.MessageTimeout < 0 {
		return errors.New("transport: negative limit of a WebSocket")
	}
	o.MaxMessage = cmp.Or(o.MaxMessage, DefaultMaxMessage)
	o.KeepAlive = cmp.Or(o.KeepAlive, DefaultKeepAlive)
	return nil
}

// A WebSocket is a Conn over a WebSocket. Each text message, of one or more frames, is a
// message. Binary messages and invalid UTF-8 close the connection with a close code.
//
// If the peer closes the connection, nothing can be sent either, so Read returns a
// [*CloseError], not io.EOF.
//
// Spec: RFC 6455. MCP allows custom transports (2025-11-25, basic/transports, Custom
// Transports).
type WebSocket struct {
	// Set by newWebSocket, read-only after.
	ws    *websocket.Conn
	opts  WebSocketOptions
	skips bool // what is too long is skipped; else it ends the connection

	writing writeLock
	reading chan struct{} // capacity 1: holds a token while a Read is running
	tooLong bool          // Read has returned a TooLongError; owned by the token's holder

	born    time.Time
	heard   atomic.Int64 // when the peer last sent something, since born
	waiting atomic.Bool  // a Read is running
	begun   atomic.Int64 // when the message being read began, since born; 0 for none

	// What control sends, without a time-out: capacity 1, the latest.
	pingDue chan struct{}
	pongDue chan string

	closing chan struct{} // closed when End begins
	once    sync.Once     // of End

	finishOnce sync.Once
	done       chan struct{} // closed when the connection is over
	err        error         // why it ended; read only after done
	running    sync.WaitGroup
}

// newWebSocket takes over a connection, and starts the goroutines that ping the peer, which
// end with the connection.
func newWebSocket(ws *websocket.Conn, opts WebSocketOptions, skips bool) *WebSocket {
	w := &WebSocket{
		ws: ws, opts: opts, skips: skips, born: time.Now(),
		reading: make(chan struct{}, 1), closing: make(chan struct{}), done: make(chan struct{}),
		pingDue: make(chan struct{}, 1), pongDue: make(chan string, 1),
	}
	w.writing = writeLock{
		turn: make(chan struct{}, 1), timeout: opts.WriteTimeout, doing: "writing to the WebSocket",
		closing: w.closing, gone: w.done, goneErr: func() error { return w.err },
	}
	w.handleControl()
	w.running.Go(w.watch)
	if opts.WriteTimeout == 0 {
		w.running.Go(w.control)
	}
	return w
}

// Read returns the next message; see [Conn] and [WebSocket].
//
// After a [*TooLongError], the next Read of an accepted connection closes it with code
// 1009, so that there is time for a response before; that of a dialed connection
// continues.
func (w *WebSocket) Read() ([]byte, error) {
	select {
	case w.reading <- struct{}{}:
		defer func() { <-w.reading }()
	case <-w.closing:
		return nil, ErrClosed
	}
	w.noteActivity()
	w.waiting.Store(true)
	defer w.waiting.Store(false)
	for {
		msg, err := w.next()
		switch {
		case !wake.Closed(w.closing):
			return msg, err
		case wake.Closed(w.done):
			return nil, ErrClosed
		}
		PutBuffer(msg) // discard messages until the peer's close frame
	}
}

// next reads one message. The caller holds the token.
func (w *WebSocket) next() ([]byte, error) {
	if w.tooLong {
		return nil, w.refuse(CloseTooBig, fmt.Sprintf("the message is over %d bytes", w.opts.MaxMessage))
	}
	kind, r, err := w.ws.NextReader()
	switch {
	case err != nil:
		return nil, w.broken(err)
	case kind == websocket.BinaryMessage:
		return nil, w.refuse(CloseUnsupported, "a message is text, not binary")
	}
	w.begun.Store(max(1, int64(time.Since(w.born))))
	defer w.begun.Store(0)
	if w.opts.Memory != nil {
		defer w.opts.Memory.Release()
	}
	buf, err := w.receive(activityReader{r, w})
	switch long, short := (*TooLongError)(nil), (*refusedMemory)(nil); {
	case errors.As(err, &short):
		PutBuffer(buf)
		w.opts.Memory.Release() // the peer may take a moment to hear of it
		return nil, w.refuse(CloseTryLater, short.Error())
	case errors.As(err, &long):
		long.Start, long.End = bytes.Clone(buf[:min(len(buf), longEdge)]), withEnd(nil, buf)
		PutBuffer(buf)
		return nil, w.skipTooLong(r, long)
	case err != nil:
		PutBuffer(buf)
		return nil, w.broken(err)
	case !utf8.Valid(buf):
		PutBuffer(buf)
		return nil, w.refuse(CloseInvalid, "a message is UTF-8")
	}
	return shrink(buf), nil
}

// shrink copies a short message out of a large buffer of GetBuffer, and returns the
// buffer to the pool.
func shrink(buf []byte) []byte {
	msg := bytes.TrimSpace(buf)
	if len(msg) > copiedLine {
		return msg
	}
	msg = bytes.Clone(msg)
	PutBuffer(buf)
	return msg
}

// skipTooLong handles a message over the limit. It skips the message on a dialed
// connection, which many calls share.
func (w *WebSocket) skipTooLong(rest io.Reader, long *TooLongError) error {
	if !w.skips {
		w.tooLong, long.End = true, nil
		return long
	}
	part := GetBuffer(0)
	defer PutBuffer(part)
	for {
		n, err := activityReader{rest, w}.Read(part[:cap(part)])
		long.End = withEnd(long.End, part[:n])
		switch {
		case err == io.EOF:
			return long
		case err != nil:
			return w.broken(err)
		}
	}
}

// Write sends one message as it is; see [Conn]. If only a part is written at the
// time-out, no other message can follow, and the connection is closed.
func (w *WebSocket) Write(msg []byte) error {
	if err := w.writing.acquire(context.Background()); err != nil {
		return err
	}
	defer w.writing.release()
	return w.send(msg)
}

// WriteUntil is [WriteUntil] for a WebSocket. Once it is the message's turn, it counts as begun.
func (w *WebSocket) WriteUntil(ctx context.Context, msg []byte) error {
	if err := w.writing.acquire(ctx); err != nil {
		return err
	}
	msg = bytes.Clone(msg)
	return w.writing.aside(ctx, func() error { return w.send(msg) }) // End waits for it
}

// send writes a message. The caller holds the token.
func (w *WebSocket) send(msg []byte) error {
	var by time.Time
	if w.opts.WriteTimeout > 0 {
		by = time.Now().Add(w.opts.WriteTimeout)
	}
	err := w.ws.SetWriteDeadline(by)
	switch {
	case err != nil:
	case by.IsZero() && len(msg) > dialedSize: // each part that the peer takes is activity
		var to io.WriteCloser
		if to, err = w.ws.NextWriter(websocket.TextMessage); err == nil {
			_, err = io.Copy(to, activityReader{bytes.NewReader(msg), w})
			err = cmp.Or(err, to.Close())
		}
	default:
		err = w.ws.WriteMessage(websocket.TextMessage, msg)
	}
	if err != nil {
		return w.writeFailed(err)
	}
	return nil
}

// writeFailed closes the connection, which is not usable after a failed write, and returns why
// it has ended.
func (w *WebSocket) writeFailed(err error) error {
	var late net.Error
	switch {
	case wake.Closed(w.closing):
		return ErrClosed
	case errors.Is(err, websocket.ErrCloseSent): // Read returns why
		return fmt.Errorf("%s: it is being closed", w.writing.doing)
	case errors.As(err, &late) && late.Timeout():
		err = w.writing.late()
	default:
		err = fmt.Errorf("%s: %v", w.writing.doing, err)
	}
	return w.finish(err)
}

// RemoteAddr returns the peer's network address.
func (w *WebSocket) RemoteAddr() net.Addr { return w.ws.RemoteAddr() }
