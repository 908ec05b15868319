package legacy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A connLink is a session over one connection of messages: a child process's
// standard streams, or a pipe. The connection's end is the session's.
type connLink struct {
	s      *session
	conn   transport.Conn
	done   chan struct{}   // closed when read has returned
	closed <-chan struct{} // the session's gone
}

// newConnLink starts to read conn for s, until conn ends or close closes it.
func newConnLink(ctx context.Context, s *session, conn transport.Conn) *connLink {
	l := &connLink{s: s, conn: conn, done: make(chan struct{}), closed: s.gone}
	s.link = l
	go l.read(context.WithoutCancel(ctx))
	return l
}

// read hands every message to the session until the connection ends.
func (l *connLink) read(ctx context.Context) {
	defer close(l.done)
	for {
		text, err := l.conn.Read()
		var long *transport.TooLongError
		switch {
		case err == nil:
			l.s.receiveText(ctx, text, nil, func() { transport.PutBuffer(text) })
		case errors.As(err, &long):
			l.s.tooLong(long)
		default:
			err = connEnded(l.conn, err)
			l.s.fail(err)
			l.s.failCalls(err)
			return
		}
	}
}

// exitGrace is how long a connection that has ended may take to say how.
const exitGrace = 500 * time.Millisecond

// A mortal is a connection whose end has a story: a child process.
type mortal interface {
	Done() <-chan struct{} // closed when Err says how it ended
	Err() error
}

// connEnded names the end of a connection for people.
func connEnded(conn transport.Conn, err error) error {
	if !errors.Is(err, io.EOF) {
		return fmt.Errorf("its connection broke: %w", err)
	}
	if m, ok := conn.(mortal); ok {
		t := time.NewTimer(exitGrace)
		defer t.Stop()
		select {
		case <-m.Done():
			if err := exited(m.Err()); err != nil {
				return err
			}
		case <-t.C:
		}
	}
	return errors.New("it closed the connection, or exited")
}

// exited says how a child ended, and its last words: they are the best hint there
// is. nil says that it ended well, or did not say.
func exited(err error) error {
	var exit *transport.ExitError
	if !errors.As(err, &exit) {
		return nil
	}
	if len(exit.Stderr) == 0 {
		return fmt.Errorf("it ended: %s", exit.Status)
	}
	words := withoutSecrets(strings.Join(exit.Stderr, "\n"))
	return fmt.Errorf("it ended: %s; its last words: %q", exit.Status, lastPart(words))
}

// lastPart bounds what of a server's words goes into a message, from their end.
func lastPart(text string) string {
	const most = 300
	if len(text) <= most {
		return text
	}
	return "…" + strings.ToValidUTF8(text[len(text)-most:], "")
}

// secrets are what a server may write that is nobody's business who only calls
// it: credentials in headers, in URLs, after their names, or by their looks.
var secrets = []struct {
	like *regexp.Regexp
	as   string
}{
	{regexp.MustCompile(`(?i)\b(bearer|basic)\s+\S+`), "$1 [hidden]"},
	{regexp.MustCompile(`(://[^/\s:@]*:)[^/\s@]+@`), "$1[hidden]@"},
	{regexp.MustCompile(`(?i)([\w-]*(?:token|secret|passw(?:or)?d|api[_-]?key|credential|authorization)[\w-]*["']?\s*[=:]\s*["']?)[^\s"',;]+`), "$1[hidden]"},
	{regexp.MustCompile(`\b(?:sk|pk|ghp|gho|ghs|github_pat|xox[abp]|eyJ|AKIA|glpat)[-_A-Za-z0-9.]{12,}`), "[hidden]"},
}

func withoutSecrets(text string) string {
	for _, s := range secrets {
		text = s.like.ReplaceAllString(text, s.as)
	}
	return text
}

// exchange implements link. Its goroutine gives the notes of c to the caller, so
// that a slow caller holds up nobody else.
func (l *connLink) exchange(ctx context.Context, c *call, frame []byte) error {
	if err := context.Cause(ctx); err != nil {
		return &failure{cause: err, fate: notSent}
	}
	if err := l.conn.Write(frame); err != nil {
		return l.writeFailed(c, err)
	}
	for {
		select {
		case <-c.wake:
			c.drain()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// writeFailed says what a failed Write means for c: half a line reached nobody.
// The others under way may have run; a connection that takes no more is of no
// use to them either.
func (l *connLink) writeFailed(c *call, err error) error {
	if how := exited(err); how != nil {
		err = how
	} else {
		err = fmt.Errorf("writing to it: %w", err)
	}
	l.s.forget(c)
	l.s.fail(err)
	l.s.failCalls(err)
	return &failure{cause: err, fate: notSent, lost: true}
}

// send implements link. Write is bounded by the connection itself.
func (l *connLink) send(_ context.Context, frame []byte) error { return l.conn.Write(frame) }

// A connection is open both ways from the first.
func (l *connLink) listen(context.Context)      {}
func (l *connLink) initialized(context.Context) {}
func (l *connLink) wakes() bool                 { return true }

func (l *connLink) open() bool { return l.s.alive() }

// close implements link. A connection's Close is polite by itself: it lets a
// child exit before it makes it.
func (l *connLink) close(context.Context) {
	if err := l.conn.Close(); err != nil && !errors.Is(err, transport.ErrClosed) {
		l.s.log.Debug("closing connection to server", "error", err)
	}
	<-l.done
}

// tooLong fails the call that a message beyond the limit answers, as far as its
// beginning tells; otherwise it is logged and skipped.
func (s *session) tooLong(e *transport.TooLongError) {
	if c := s.call(leadingID(e.Start)); c != nil {
		err := wire.Errorf(spec.CodeInternal, "server %q answered %s with more than %d bytes; raise limits.message if that is normal for it",
			s.opts.Name, c.method, e.Limit)
		if c.settle(answer{err: err}) {
			c.cancel(errAnswered)
			return
		}
	}
	s.drop("too long")
	s.log.Warn("skipping message of server beyond the limit", "bytes", e.Limit)
}

// leadingID returns the id that stands in the first bytes of a response, if its
// members before the result tell. start is cut off somewhere, and not checked.
func leadingID(start []byte) wire.ID {
	for cut := len(start); cut > 0; cut-- {
		if start[cut-1] != ',' {
			continue
		}
		head := append(append([]byte(nil), start[:cut-1]...), '}')
		if wire.Check(head, 0) == nil {
			if wire.Get(head, "method") != nil {
				return wire.ID{}
			}
			id, _ := wire.ParseID(wire.Get(head, "id"))
			return id
		}
	}
	return wire.ID{}
}

var _ link = (*connLink)(nil)

// dialConn opens a connection that outlives ctx's end, within the time ctx has.
func (b *Back) dialConn(ctx context.Context) (transport.Conn, error) {
	start := time.Now()
	conn, err := b.opts.Dial(ctx)
	if err != nil {
		return nil, fmt.Errorf("starting it: %w", err)
	}
	b.log.Debug("connected", "took", time.Since(start))
	return conn, nil
}
