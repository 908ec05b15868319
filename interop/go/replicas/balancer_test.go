package replicas

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"sync"
	"testing"
)

// A balancer sends each request to the next replica, whatever session or connection it
// belongs to. It knows nothing of MCP, keeps no connection alive, and tries a request once.
type balancer struct {
	base     string
	replicas []*replica

	mu   sync.Mutex // guards next
	next int
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
func (b *balancer) choose() *replica {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.next++
	return b.replicas[b.next%len(b.replicas)]
}
