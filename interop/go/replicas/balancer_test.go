package replicas

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"sync"
	"testing"
	"time"
)

// A balancer sends each request to the next replica, whatever session or connection it
// belongs to. It knows nothing of MCP, keeps no connection alive, and tries a request once.
type balancer struct {
	base     string
	replicas []*replica

	mu    sync.Mutex // guards the fields below
	next  int
	ready map[*replica]bool // nil: all are taken to be
}

func newBalancer(t testing.TB, replicas []*replica) *balancer {
	t.Helper()
	b := &balancer{replicas: replicas}
	quiet := log.New(io.Discard, "", 0)
	p := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host = "http", b.choose().listen
			r.Out.Host = r.In.Host
		},
		Transport:     &http.Transport{DisableKeepAlives: true},
		FlushInterval: -1,
		ErrorLog:      quiet,
	}
	s := httptest.NewUnstartedServer(p)
	s.Config.ErrorLog = quiet
	s.Config.SetKeepAlivesEnabled(false)
	s.Start()
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	b.base = s.URL
	return b
}

func (b *balancer) url(server string) string { return b.base + "/mcp/" + server }

// choose returns whose turn it is.
func (b *balancer) choose() (to *replica) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for range b.replicas {
		b.next++
		if to = b.replicas[b.next%len(b.replicas)]; b.ready == nil || b.ready[to] {
			return to
		}
	}
	return to
}

// follow leaves out, from here to the end of the test, what /readyz does not say is ready. On a
// busy machine it may take a second or two to notice: a drain_delay has to be longer.
func (b *balancer) follow(t testing.TB) {
	t.Helper()
	done, stopped := make(chan struct{}), make(chan struct{})
	b.look()
	go func() { // ends with the test
		defer close(stopped)
		for tick := time.NewTicker(100 * time.Millisecond); ; {
			select {
			case <-tick.C:
				b.look()
			case <-done:
				tick.Stop()
				return
			}
		}
	}()
	t.Cleanup(func() {
		close(done)
		<-stopped
	})
}

func (b *balancer) look() {
	ready := make(map[*replica]bool)
	for _, r := range b.replicas {
		ready[r] = r.isReady()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ready = ready
}
