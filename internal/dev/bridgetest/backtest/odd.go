package backtest

import (
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// What odd servers say. %s is the request's id.
const (
	SaysModern     = `{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete","supportedVersions":["2026-07-28","2025-11-25"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"odd","version":"1"}}}}`
	SaysOldOnly    = `{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete","supportedVersions":["2025-11-25","2025-06-18"],"capabilities":{}}}`
	SaysUnknown    = `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"Method not found"}}`
	SaysNotYet     = `{"jsonrpc":"2.0","id":%s,"error":{"code":0,"message":"method invalid during session initialization"}}`
	SaysRefused    = `{"jsonrpc":"2.0","id":%s,"error":{"code":-32022,"message":"Unsupported protocol version","data":{"supported":["2026-07-28"],"requested":"2026-07-28"}}}`
	SaysMismatch   = `{"jsonrpc":"2.0","id":%s,"error":{"code":-32020,"message":"header mismatch"}}`
	SaysCapability = `{"jsonrpc":"2.0","id":%s,"error":{"code":-32021,"message":"missing capability"}}`
	SaysInternal   = `{"jsonrpc":"2.0","id":%s,"error":{"code":-32603,"message":"boom"}}`
	SaysWelcome    = `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"odd","version":"1"}}}`
	SaysTools      = `{"jsonrpc":"2.0","id":%s,"result":{"tools":[]}}`
)

// An OddServer answers server/discover oddly over HTTP.
type OddServer struct {
	Status int           // of errors, and of what is no JSON-RPC; 0 means 200
	Kind   string        // Content-Type; empty means JSON
	Body   string        // %s is the id; several answers in turn are separated by a line
	Silent bool          // no answer at all
	Late   time.Duration // from a request to the answer, but to initialize
	Cut    bool          // the connection is closed
	Greets bool          // initialize is answered as a legacy server does
	Single bool          // one request at a time

	asked atomic.Int32
	once  sync.Once
	one   chan struct{} // has one under a request, with Single; made in the bubble of the first
}

// ServeHTTP implements [http.Handler].
func (o *OddServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	text, _ := io.ReadAll(r.Body)
	m, _ := wire.Parse(text, wire.Options{})
	if o.Single {
		o.once.Do(func() { o.one = make(chan struct{}, 1) })
		o.one <- struct{}{}
		defer func() { <-o.one }()
	}
	switch {
	case r.Method != http.MethodPost:
		w.WriteHeader(http.StatusMethodNotAllowed)
	case m.ID.IsZero():
		w.WriteHeader(http.StatusAccepted)
	case o.Greets && m.Method == spec.MethodInitialize:
		Reply(w, 200, "application/json", SaysWelcome, m.ID)
	case o.Greets && m.Method == spec.MethodToolsList:
		Reply(w, 200, "application/json", SaysTools, m.ID)
	case o.Silent:
		<-r.Context().Done()
	case o.Cut:
		panic(http.ErrAbortHandler)
	default:
		select {
		case <-time.After(o.Late):
		case <-r.Context().Done():
		}
		turns := strings.Split(o.Body, "\n---\n")
		turn := min(int(o.asked.Add(1)), len(turns)) - 1
		status := max(o.Status, 200)
		if strings.Contains(turns[turn], `"result"`) {
			status = 200
		}
		Reply(w, status, o.Kind, turns[turn], m.ID)
	}
}

// Reply writes body, in which %s is the id; an empty kind means JSON.
func Reply(w http.ResponseWriter, status int, kind, body string, id wire.ID) {
	if kind == "" {
		kind = "application/json"
	}
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(status)
	_, _ = io.WriteString(w, strings.ReplaceAll(body, "%s", id.String()))
}

// Start serves o on loopback, and ends with the test.
func (o *OddServer) Start(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: o}
	done := make(chan struct{})
	go func() { defer close(done); _ = s.Serve(l) }() // ends with Close
	t.Cleanup(func() { _ = s.Close(); <-done })
	return "http://" + l.Addr().String() + "/mcp"
}
