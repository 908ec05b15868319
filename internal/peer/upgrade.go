package peer

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/downstream"
)

const (
	// lastWords is how long a client may take to read what it was sent last.
	lastWords = time.Second
	// carriedSize is how much is passed on at once, in bytes.
	carriedSize = 4 << 10
	// longestPing is the length of a ping without data, or of its answer, as a client frames it.
	longestPing = 6
)

// errQuiet is why a connection ends on which the other replica sends nothing.
var errQuiet = errors.New("the replica that serves it has sent nothing for too long")

// A Carried connection is one of a client that has left HTTP, as a WebSocket does, and that
// another replica serves. What both send is passed on as it is.
type Carried struct {
	g       *Group
	f       Forward
	opening string

	client net.Conn
	early  io.Reader // what the client has sent before the connection was taken over, and then the rest
	far    io.ReadWriteCloser
	once   sync.Once
	last   atomic.Int64 // when more than a ping was passed on, in nanoseconds since 1970
}

// Upgrade has another replica serve a request that leaves HTTP. If that refuses it, its response
// is passed on, and nothing is carried: both results are nil. Errors are those of Forward. The
// caller must call Run or Close.
func (g *Group) Upgrade(w http.ResponseWriter, r *http.Request, f Forward) (*Carried, error) {
	f.Upgrade = true
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(r.Context()))
	left := context.AfterFunc(r.Context(), func() { cancel(downstream.ErrClientLeft) })
	defer left()
	resp, err := g.exchange(ctx, cancel, r, f)
	if err != nil {
		cancel(nil)
		return nil, g.counted(g.failed(r, f, err))
	}
	defer cancel(nil) // an upgraded connection does not heed it
	far, ok := resp.Body.(io.ReadWriteCloser)
	if resp.StatusCode != http.StatusSwitchingProtocols || !ok {
		defer func() { _ = resp.Body.Close() }() // it was read, or is not wanted any more
		copyHeader(w.Header(), resp.Header, resp.Header["Connection"])
		w.WriteHeader(resp.StatusCode)
		return nil, g.counted(relay(w, r, resp, f.WriteTimeout))
	}
	c := &Carried{g: g, f: f, opening: resp.Header.Get(Opening), far: far}
	c.note(carriedSize)
	if err := c.takeOver(w, resp); err != nil {
		_ = far.Close() // the client has left
		return nil, g.counted(downstream.ErrClientLeft)
	}
	return c, g.counted(nil)
}

// takeOver takes the client's connection over from net/http, and passes the response on that
// ends HTTP there.
func (c *Carried) takeOver(w http.ResponseWriter, resp *http.Response) error {
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return err
	}
	c.client, c.early = conn, buffered.Reader
	var head bytes.Buffer
	head.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n")
	h := resp.Header
	h.Del("Connection")
	h.Del(Opening)
	_ = h.Write(&head) // writing to a buffer never fails
	head.WriteString("\r\n")
	if err = conn.SetDeadline(time.Time{}); err == nil {
		err = c.write(head.Bytes())
	}
	if err != nil {
		_ = conn.Close() // the client has left
	}
	return err
}

// Run carries what both sides send, until one of them ends. Once one of ends ends, the other
// replica is asked to end the connection in order; if that can't be asked, it ends at once.
func (c *Carried) Run(ends ...context.Context) error {
	forget := whenEnded(ends, func(why error) {
		if !c.g.part(c.f, c.opening, why) {
			_ = c.Close()
		}
	})
	sent := make(chan struct{})
	go func() { // ends with the client's connection
		defer close(sent)
		c.send()
	}()
	err := c.receive()
	_ = c.far.Close() // it has ended, or is of no use
	c.hangUp()
	<-sent
	forget()
	_ = c.Close() // of the client's side
	return err
}

// note notes that so many bytes are passed on.
func (c *Carried) note(n int) {
	if n > longestPing {
		c.last.Store(time.Now().UnixNano())
	}
}

// Idle returns when more than a ping, or its answer, was passed on. The other replica knows which
// calls are in flight; here busy is false.
func (c *Carried) Idle() (since time.Time, busy bool) { return time.Unix(0, c.last.Load()), false }

// Close cuts the connection.
func (c *Carried) Close() error {
	c.once.Do(func() { // nobody wants anything more
		_ = c.far.Close()
		_ = c.client.Close()
	})
	return nil
}

// send passes on what the client sends. When the other replica takes no more, the rest is read,
// so that the client is not reset before it has read the last words.
func (c *Carried) send() {
	_, err := io.CopyBuffer(struct{ io.Writer }{c.far}, noting{c}, make([]byte, carriedSize))
	if err == nil {
		_ = c.far.Close() // the client has left
		return
	}
	_, _ = io.Copy(io.Discard, c.early)
}

// receive passes on what the other replica sends, which pings the client.
func (c *Carried) receive() error {
	var quiet atomic.Bool
	late := time.AfterFunc(c.f.Quiet, func() {
		quiet.Store(true)
		_ = c.Close()
	})
	defer late.Stop()
	buf := make([]byte, carriedSize)
	for {
		n, err := c.far.Read(buf)
		if n > 0 {
			c.note(n)
			late.Reset(c.f.Quiet)
			if werr := c.write(buf[:n]); werr != nil {
				return nil // the client has left
			}
		}
		switch {
		case err != nil && quiet.Load():
			return errQuiet
		case err == io.EOF:
			return nil
		case err != nil:
			return ErrCut
		}
	}
}

func (c *Carried) write(p []byte) error {
	if err := c.client.SetWriteDeadline(time.Now().Add(c.f.WriteTimeout)); err != nil {
		return err
	}
	_, err := c.client.Write(p)
	return err
}

// hangUp ends the client's connection once it has read what it was sent.
func (c *Carried) hangUp() {
	half, ok := c.client.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil || c.client.SetReadDeadline(time.Now().Add(lastWords)) != nil {
		_ = c.client.Close() // nothing more can be said
	}
}

// noting reads what the client sends, and notes it.
type noting struct{ c *Carried }

func (r noting) Read(p []byte) (int, error) {
	n, err := r.c.early.Read(p)
	r.c.note(n)
	return n, err
}
