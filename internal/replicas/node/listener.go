package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"
)

const (
	// headerTimeout bounds a request's headers, and the TLS handshake before them.
	headerTimeout = 5 * time.Second
	// idleTimeout is longer than other replicas keep connections, so that they close them.
	idleTimeout = 3 * time.Minute
	// maxHeader bounds a request's headers, in bytes: those of a client, and an envelope.
	maxHeader = 128 << 10
)

// A listener serves other replicas.
type listener struct {
	l    net.Listener
	http *http.Server
	log  *slog.Logger
	tls  bool
	done chan struct{} // closed when serve has returned
}

func listen(ctx context.Context, o Options, h http.Handler) (*listener, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", o.Listen)
	if err != nil {
		return nil, fmt.Errorf("%w; choose another address with replicas.peer", err)
	}
	return &listener{
		l: l, log: o.Logger, tls: o.ServerTLS != nil, done: make(chan struct{}),
		http: &http.Server{ // which adds to its TLSConfig
			Handler: h, TLSConfig: o.ServerTLS.Clone(), ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
			ErrorLog: slog.NewLogLogger(o.Logger.Handler(), slog.LevelDebug),
		},
	}, nil
}

func (l *listener) addr() string { return l.l.Addr().String() }

// start serves in the background, until shutdown.
func (l *listener) start() { go l.serve() }

func (l *listener) serve() {
	defer close(l.done)
	run := l.http.Serve
	if l.tls {
		run = func(from net.Listener) error { return l.http.ServeTLS(from, "", "") }
	}
	if err := run(l.l); !errors.Is(err, http.ErrServerClosed) {
		l.log.Error("other replicas can't reach this one any more", "addr", l.addr(), "error", err)
	}
}

// shutdown waits for the requests in flight. When ctx ends they are cut off.
func (l *listener) shutdown(ctx context.Context) error {
	err := l.http.Shutdown(ctx)
	if err != nil {
		err = fmt.Errorf("requests of other replicas were still in flight and were cut off: %w", errors.Join(err, l.http.Close()))
	}
	<-l.done
	return err
}
