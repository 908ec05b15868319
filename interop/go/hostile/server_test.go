package hostile

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// A server is a legacy one without sessions, and a modern one that can do less. Its tool
// "hang" never answers, its tool "ask" asks for what nobody will tell it, others answer
// at once.
type server struct {
	*httptest.Server

	// mu guards the streams that clients have opened with GET.
	mu      sync.Mutex
	streams map[chan string]struct{}
}

func newServer(t *testing.T) *server {
	s := &server{streams: make(map[chan string]struct{})}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

// tell sends a notification on all streams.
func (s *server) tell(message string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.streams {
		c <- message // with room for as many as a test tells
	}
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		s.stream(w, r)
		return
	}
	var m struct {
		ID     json.RawMessage
		Method string
		Params struct {
			Name          string
			Notifications json.RawMessage
		}
	}
	body, _ := io.ReadAll(r.Body)
	if json.Unmarshal(body, &m) != nil || m.ID == nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	switch m.Method {
	case "tools/call":
		call(w, r, m.ID, m.Params.Name)
	case "subscriptions/listen":
		acknowledge(w, m.ID, m.Params.Notifications)
		<-r.Context().Done()
	default:
		answer(w, m.ID, results[m.Method])
	}
}

// results are what the server answers, by method; an error to others.
var results = map[string]string{
	"initialize": `{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true},"resources":{"subscribe":true}},"serverInfo":{"name":"s","version":"0"}}`,
	"ping":       `{}`, "resources/subscribe": `{}`, "resources/unsubscribe": `{}`,
	"tools/list": `{"tools":[]}`, "resources/list": `{"resources":[]}`,
	"server/discover": `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"resources":{"subscribe":true}},"serverInfo":{"name":"s","version":"0"}}`,
}

func acknowledge(w http.ResponseWriter, id, filter json.RawMessage) {
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprintf(w, `data: {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":%s,"_meta":{"io.modelcontextprotocol/subscriptionId":%s}}}`+"\n\n", filter, id)
	_ = http.NewResponseController(w).Flush()
}

func answer(w http.ResponseWriter, id json.RawMessage, result string) {
	w.Header().Set("Content-Type", "application/json")
	if result == "" {
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}`, id)
		return
	}
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, id, result)
}

func call(w http.ResponseWriter, r *http.Request, id json.RawMessage, tool string) {
	switch tool {
	case "ask":
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"method\":\"elicitation/create\",\"params\":{\"message\":\"m\",\"requestedSchema\":{\"type\":\"object\",\"properties\":{}}}}\n\n", id)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	case "hang":
		<-r.Context().Done()
	default:
		answer(w, id, `{"resultType":"complete","content":[{"type":"text","text":"here"}]}`)
	}
}

// stream serves the stream of a session until its client leaves.
func (s *server) stream(w http.ResponseWriter, r *http.Request) {
	c := make(chan string, 100)
	s.mu.Lock()
	s.streams[c] = struct{}{}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.streams, c)
	}()
	w.Header().Set("Content-Type", "text/event-stream")
	for {
		_ = http.NewResponseController(w).Flush()
		select {
		case message := <-c:
			fmt.Fprintf(w, "data: %s\n\n", message)
		case <-r.Context().Done():
			return
		}
	}
}
