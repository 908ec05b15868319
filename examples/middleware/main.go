// Command middleware has handlers of its own before a gateway: one gives each request an
// id, which the response and the log have, and one refuses clients that send too many.
//
// A Gateway is an http.Handler, so that any middleware of net/http can stand before it,
// with one condition: a ResponseWriter that wraps another needs an Unwrap method, because
// streams are flushed, and connections are taken over for WebSockets. Those here wrap none.
//
//	go run ./examples/middleware
//	go run ./cmd/mcpbridge call http://127.0.0.1:2526/mcp/notes read_note name=today
package main

import (
	"context"
	"crypto/rand"
	"flag"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/mcpbridge/mcpbridge/examples/internal/notes"
	"github.com/mcpbridge/mcpbridge/gateway"
)

// withID gives each request an id, in the response's header X-Request-Id and in the log. It
// ignores one that the client sends, which could repeat another's.
func withID(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, began := rand.Text(), time.Now()
		w.Header().Set("X-Request-Id", id)
		next.ServeHTTP(w, r)
		slog.Info("request", "id", id, "method", r.Method, "path", r.URL.Path, "took", time.Since(began))
	})
}

// A limiter counts the requests of each address in a window of time.
type limiter struct {
	next   http.Handler
	most   int // in a window
	window time.Duration

	// mu guards the fields below.
	mu    sync.Mutex
	began time.Time      // of this window
	count map[string]int // by address, in this window
}

// ServeHTTP refuses requests of an address that has sent too many in this window.
func (l *limiter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	address, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		address = r.RemoteAddr
	}
	if wait := l.wait(address, time.Now()); wait > 0 {
		w.Header().Set("Retry-After", fmt.Sprintf("%.0f", wait.Seconds()+0.5))
		http.Error(w, "too many requests", http.StatusTooManyRequests)
		return
	}
	l.next.ServeHTTP(w, r)
}

// wait counts a request, and returns how long its sender has to wait.
func (l *limiter) wait(address string, now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now.Sub(l.began) >= l.window {
		l.began, l.count = now, make(map[string]int) // so that no address is kept for long
	}
	if l.count[address]++; l.count[address] > l.most {
		return l.began.Add(l.window).Sub(now)
	}
	return 0
}

func main() {
	address := flag.String("listen", "127.0.0.1:2526", "the host:port to listen on")
	most := flag.Int("most", 100, "how many requests an address may send in a minute")
	flag.Parse()
	g, err := gateway.New(gateway.Options{
		Servers: []gateway.ServerOptions{{Name: "notes", Handler: notes.Handler(map[string]string{"today": "buy milk"})}},
	})
	if err != nil {
		log.Fatal(err)
	}
	listener, err := gateway.Listen(context.Background(), *address, 0)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("listening at http://%s/mcp/notes\n", listener.Addr())
	limited := &limiter{next: g, most: *most, window: time.Minute}
	server := &http.Server{Handler: withID(limited), ReadHeaderTimeout: 10 * time.Second}
	log.Fatal(server.Serve(listener)) // examples/embedded ends in order
}
