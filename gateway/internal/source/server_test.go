package source_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	"github.com/mcpbridge/mcpbridge/modern/protocol"
)

// A modernServer is an MCP server that has resources, and tells when it has changed.
type modernServer struct {
	l   *bridgetest.Listener
	srv *http.Server

	mu      sync.Mutex
	streams map[chan string]map[string]bool // the URIs of each open stream
	asked   map[string]int                  // how often a URI was asked for
}

func startServer(t *testing.T) *modernServer {
	s := &modernServer{l: bridgetest.Listen(), streams: make(map[chan string]map[string]bool), asked: make(map[string]int)}
	s.srv = &http.Server{Handler: s}
	go func() { _ = s.srv.Serve(s.l) }() // ends with Close
	t.Cleanup(func() { _ = s.srv.Close() })
	return s
}

// transport returns what reaches the server.
func (s *modernServer) transport(t *testing.T) http.RoundTripper {
	rt := s.l.Transport()
	t.Cleanup(rt.CloseIdleConnections)
	return rt
}

func (s *modernServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	text, _ := io.ReadAll(r.Body)
	m, err := wire.Parse(text, wire.Options{})
	if err != nil || m.Method != spec.MethodListen {
		http.Error(w, "only listen requests", http.StatusBadRequest)
		return
	}
	f, err := protocol.ReadFilter(wire.Get(m.Params, "notifications"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if strings.Contains(string(m.Params), "silent") {
		<-r.Context().Done()
		return
	}
	s.serve(w, r, f, string(m.ID.Append(nil)))
}

func (s *modernServer) serve(w http.ResponseWriter, r *http.Request, f mcp.Filter, id string) {
	news := make(chan string, 1000)
	s.add(news, &f)
	defer s.remove(news)
	w.Header().Set("Content-Type", "text/event-stream")
	meta := `"_meta":{"` + spec.MetaSubscriptionID + `":` + id + `}`
	fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"method\":%q,\"params\":{\"notifications\":%s,%s}}\n\n", spec.NotifyAcknowledged, protocol.AppendFilter(nil, f), meta)
	for {
		_ = http.NewResponseController(w).Flush()
		select {
		case uri := <-news:
			fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"method\":%q,\"params\":{\"uri\":%q,%s}}\n\n", spec.NotifyResourceUpdated, uri, meta)
		case <-r.Context().Done():
			return
		}
	}
}

// add adds a stream, without the URIs that the server does not have.
func (s *modernServer) add(news chan string, f *mcp.Filter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	uris := make(map[string]bool)
	var has []string
	for _, uri := range f.URIs {
		s.asked[uri]++
		if !strings.Contains(uri, "missing") {
			uris[uri] = true
			has = append(has, uri)
		}
	}
	f.URIs = has
	s.streams[news] = uris
}

func (s *modernServer) remove(news chan string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.streams, news)
}

// push tells that a resource has changed.
func (s *modernServer) push(uri string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for news, uris := range s.streams {
		if uris[uri] {
			news <- uri
		}
	}
}

// subscriptions returns on how many streams each URI is.
func (s *modernServer) subscriptions() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make(map[string]int)
	for _, uris := range s.streams {
		for uri := range uris {
			out[uri]++
		}
	}
	return out
}
