package main

import (
	"context"

	"github.com/mcpbridge/mcpbridge/internal/notebook"
	"github.com/mcpbridge/mcpbridge/internal/transport"
)

// A builtin is the notebook, reached as a server behind stdio is: by a connection
// of messages, with nothing shared but its notes.
type builtin struct {
	book   *notebook.Notebook
	modern bool
}

// dial opens a session, which lasts until the connection is closed.
func (b *builtin) dial(ctx context.Context) (transport.Conn, error) {
	near, far := transport.NewPipe()
	c := &builtinConn{Conn: near, done: make(chan struct{})}
	go c.serve(context.WithoutCancel(ctx), b, far) // ends when near is closed
	return c, nil
}

// A builtinConn is the client's end of a session, and owns its server.
type builtinConn struct {
	transport.Conn
	done chan struct{} // closed when the session has ended
}

func (c *builtinConn) serve(ctx context.Context, b *builtin, far transport.Conn) {
	defer close(c.done)
	serve := b.book.Serve
	if b.modern {
		serve = b.book.ServeModern
	}
	// The notebook logs how a session ended; the client sees io.EOF.
	_ = serve(ctx, far)
}

// Close ends the session and waits for its end.
func (c *builtinConn) Close() error {
	err := c.Conn.Close()
	<-c.done
	return err
}
