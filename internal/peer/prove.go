package peer

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/replicas"
)

// proven returns a new connection on which the replica behind a gate has proved that it is there.
func (g *Group) proven(ctx context.Context, c net.Conn, t *gate) (net.Conn, error) {
	err := g.prove(ctx, c, t.to)
	if err != nil {
		_ = c.Close() // it is of no use
		c, err = nil, &net.OpError{Op: "dial", Net: "tcp", Err: err}
	}
	if ctx.Err() == nil {
		t.note(err, true)
	}
	return c, err
}

// prove asks on a new connection whether the replica is at its other end, before a request is
// sent there: a proxy may connect for one that is gone, and a kernel for one that is stopped.
// Nothing of the request was forwarded then. Over TLS the handshake says it.
func (g *Group) prove(ctx context.Context, c net.Conn, to replicas.Replica) error {
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
	err := g.askOn(c, to)
	if !stop() { // the connection has no time left
		return context.Cause(ctx)
	}
	return err
}

// askOn sends a hello on a new connection, and leaves it without a deadline.
func (g *Group) askOn(c net.Conn, to replicas.Replica) error {
	if err := c.SetDeadline(time.Now().Add(g.timeout)); err != nil {
		return err
	}
	r := &http.Request{Method: http.MethodGet, URL: &url.URL{Scheme: "http", Host: to.Addr, Path: HelloPath}, Header: make(http.Header), Host: to.Addr}
	e := new(Envelope)
	g.seal(e, to, r)
	if err := r.Write(c); err != nil {
		return mute(err)
	}
	in := bufio.NewReaderSize(c, maxHello)
	resp, err := http.ReadResponse(in, r)
	if err != nil {
		return mute(err)
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxHello))
	if err != nil {
		return mute(err)
	}
	if resp.StatusCode == http.StatusMisdirectedRequest && resp.Header.Get(Header) != "" {
		return errGone // its address is another's
	}
	if refusal := resp.Header.Get(Header); refusal != "" {
		return newGate(g, to).refusal(refusal)
	}
	if _, err := g.greeted(to.Addr, e, resp, text); err != nil {
		return err
	}
	if resp.Close {
		return mute(errEnding)
	}
	return c.SetDeadline(time.Time{})
}

// errEnding is why a connection is of no use on which a hello was answered.
var errEnding = errors.New("it takes no further request, since it ends")

// A muteError is why a connect counts for nothing: nobody answers at its other end.
type muteError struct{ cause error }

func mute(cause error) error { return &muteError{cause} }

func (e *muteError) Error() string { return "connected, and without an answer: " + e.cause.Error() }

func (e *muteError) Unwrap() error { return e.cause }

// Timeout reports that the replica may answer again, as after a time-out: who connects for it has
// not said that it is gone.
func (e *muteError) Timeout() bool { return true }
