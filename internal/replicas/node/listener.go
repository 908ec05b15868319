package node

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/httpserver"
	"github.com/mcpbridge/mcpbridge/internal/peer"
)

const (
	// idleTimeout is longer than other replicas keep connections, so that they close them.
	idleTimeout = 3 * time.Minute
	// maxHeader bounds a request's headers, in bytes: those of a client, and an envelope.
	maxHeader = 128 << 10
)

// A listener serves other replicas.
type listener struct {
	*httpserver.Server
	log  *slog.Logger
	done chan struct{} // closed when watch has returned
}

func listen(ctx context.Context, o Options, h http.Handler) (*listener, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", o.Listen)
	if err != nil {
		return nil, fmt.Errorf("%w; choose another address with replicas.peer", err)
	}
	s := httpserver.New(l, httpserver.Options{
		Handler: guard(h, o), Logger: o.Logger, TLS: o.ServerTLS, Plaintext: o.Plaintext, MaxHeader: maxHeader, Idle: idleTimeout,
		MaxNew: o.MaxNew, Reached: o.Reached,
	})
	return &listener{Server: s, log: o.Logger, done: make(chan struct{})}, nil
}

// guard refuses requests on connections whose certificate is not accepted any more. The other
// replica connects anew.
func guard(next http.Handler, o Options) http.Handler {
	if o.Trusts == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if isPlain := o.Plaintext && r.TLS == nil; !isPlain && !o.Trusts(r.TLS) {
			peer.RefuseConnection(w)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// start serves in the background, until shutdown.
func (l *listener) start() {
	l.Start()
	go l.watch()
}

// watch tells if nobody is served any more, before shutdown. It returns after that.
func (l *listener) watch() {
	defer close(l.done)
	<-l.Done()
	if err := l.Err(); err != nil {
		l.log.Error("other replicas can't reach this one any more", "error", err)
	}
}

// shutdown waits for the requests in flight. When ctx ends they are cut off.
func (l *listener) shutdown(ctx context.Context) error {
	err := l.Shutdown(ctx)
	<-l.done
	if err != nil {
		return fmt.Errorf("other replicas: %w", err)
	}
	return nil
}
