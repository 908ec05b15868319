package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// What odd servers say. %s is the request's id.
const (
	saysModern     = `{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete","supportedVersions":["2026-07-28","2025-11-25"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"odd","version":"1"}}}}`
	saysOldOnly    = `{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete","supportedVersions":["2025-11-25","2025-06-18"],"capabilities":{}}}`
	saysUnknown    = `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"Method not found"}}`
	saysNotYet     = `{"jsonrpc":"2.0","id":%s,"error":{"code":0,"message":"method invalid during session initialization"}}`
	saysRefused    = `{"jsonrpc":"2.0","id":%s,"error":{"code":-32022,"message":"Unsupported protocol version","data":{"supported":["2026-07-28"],"requested":"2026-07-28"}}}`
	saysMismatch   = `{"jsonrpc":"2.0","id":%s,"error":{"code":-32020,"message":"header mismatch"}}`
	saysCapability = `{"jsonrpc":"2.0","id":%s,"error":{"code":-32021,"message":"missing capability"}}`
	saysInternal   = `{"jsonrpc":"2.0","id":%s,"error":{"code":-32603,"message":"boom"}}`
	saysWelcome    = `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"odd","version":"1"}}}`
	saysTools      = `{"jsonrpc":"2.0","id":%s,"result":{"tools":[]}}`
)

// An oddServer answers server/discover oddly over HTTP.
type oddServer struct {
	status int    // of errors, and of what is no JSON-RPC; 0 means 200
	kind   string // Content-Type; empty means JSON
	body   string // %s is the id; several answers in turn are separated by a line
	silent bool   // no answer at all
	cut    bool   // the connection is closed
	greets bool   // initialize is answered as a legacy server does

	asked atomic.Int32
}

func (o *oddServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	text, _ := io.ReadAll(r.Body)
	m, _ := wire.Parse(text, wire.Options{})
	switch {
	case r.Method != http.MethodPost:
		w.WriteHeader(http.StatusMethodNotAllowed)
	case m.ID.IsZero():
		w.WriteHeader(http.StatusAccepted)
	case o.greets && m.Method == spec.MethodInitialize:
		reply(w, 200, "application/json", saysWelcome, m.ID)
	case o.greets && m.Method == spec.MethodToolsList:
		reply(w, 200, "application/json", saysTools, m.ID)
	case o.silent:
		<-r.Context().Done()
	case o.cut:
		panic(http.ErrAbortHandler)
	default:
		turns := strings.Split(o.body, "\n---\n")
		turn := min(int(o.asked.Add(1)), len(turns)) - 1
		status := max(o.status, 200)
		if strings.Contains(turns[turn], `"result"`) {
			status = 200
		}
		reply(w, status, o.kind, turns[turn], m.ID)
	}
}

func reply(w http.ResponseWriter, status int, kind, body string, id wire.ID) {
	if kind == "" {
		kind = "application/json"
	}
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(status)
	_, _ = io.WriteString(w, strings.ReplaceAll(body, "%s", id.String()))
}

// start serves o on loopback, and ends with the test.
func (o *oddServer) start(t *testing.T) string {
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

// oddURLs are the kinds of servers at a URL, with what is to be found.
var oddURLs = []struct {
	name   string
	server *oddServer
	want   spec.Era
	slow   bool // the answer takes all the time there is
}{
	{"modern", &oddServer{body: saysModern}, spec.Modern, false},
	{"modern as an event stream", &oddServer{kind: "text/event-stream", body: ": hello\r\nid: 7\r\nretry: 5\r\ndata: " + saysModern + "\r\n\r\n"}, spec.Modern, false},
	{"modern, refusing the first request", &oddServer{status: 400, body: saysRefused + "\n---\n" + saysModern}, spec.Modern, false},
	{"modern, refusing always", &oddServer{status: 400, body: saysRefused}, spec.Modern, false},
	{"-32020", &oddServer{status: 400, body: saysMismatch}, spec.Modern, false},
	{"-32021", &oddServer{status: 400, body: saysCapability}, spec.Modern, false},
	{"-32020 under 500", &oddServer{status: 500, body: saysMismatch}, spec.Modern, false},
	{"a result with legacy versions only", &oddServer{body: saysOldOnly}, spec.Legacy, false},
	{"200 with an error", &oddServer{body: saysUnknown}, spec.Legacy, false},
	{"200 with an internal error", &oddServer{body: saysInternal}, spec.Legacy, false},
	{"400 with a legacy error", &oddServer{status: 400, body: `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request: Server not initialized"}}`}, spec.Legacy, false},
	{"404 with HTML", &oddServer{status: 404, kind: "text/html", body: "<h1>Not Found</h1>"}, spec.Legacy, false},
	{"405 with HTML", &oddServer{status: 405, kind: "text/html", body: "<h1>Method Not Allowed</h1>"}, spec.Legacy, false},
	{"406", &oddServer{status: 406, kind: "text/plain", body: "no"}, spec.Legacy, false},
	{"200 with HTML", &oddServer{kind: "text/html", body: "<h1>It works</h1>"}, spec.Legacy, false},
	{"202 without a body", &oddServer{status: 202, kind: "text/plain"}, spec.Legacy, false},
	{"an answer to something else", &oddServer{body: strings.ReplaceAll(saysModern, "%s", "4711")}, spec.Legacy, false},
	{"a stream without an answer", &oddServer{kind: "text/event-stream", body: ": bye\n\n"}, spec.Legacy, false},
	{"500, then a session", &oddServer{status: 500, kind: "text/html", body: "<h1>oops</h1>", greets: true}, spec.Legacy, false},
	{"500 with an error, then a session", &oddServer{status: 500, body: saysInternal, greets: true}, spec.Legacy, false},
	{"silence, then a session", &oddServer{silent: true, greets: true}, spec.Legacy, true},
	{"a cut connection, then a session", &oddServer{cut: true, greets: true}, spec.Legacy, false},
	{"silence", &oddServer{silent: true}, spec.Unknown, true},
	{"a cut connection", &oddServer{cut: true}, spec.Unknown, false},
	{"401", &oddServer{status: 401, body: saysUnknown, greets: true}, spec.Unknown, false},
	{"403", &oddServer{status: 403, kind: "text/plain", body: "no", greets: true}, spec.Unknown, false},
	{"429", &oddServer{status: 429, kind: "text/plain", body: "later", greets: true}, spec.Unknown, false},
	{"500", &oddServer{status: 500, kind: "text/html", body: "<h1>oops</h1>"}, spec.Unknown, false},
	{"502", &oddServer{status: 502, kind: "text/html", body: "<h1>Bad Gateway</h1>"}, spec.Unknown, false},
	{"503", &oddServer{status: 503, kind: "text/plain"}, spec.Unknown, false},
}

// oddCommands are the kinds of servers that a command starts.
var oddCommands = []struct {
	name, say string
	want      spec.Era
	slow      bool
}{
	{"modern", "answer " + saysModern, spec.Modern, false},
	{"modern after noise", "noise\nanswer " + saysModern, spec.Modern, false},
	{"modern, refusing the first request", "answer " + saysRefused + "\nanswer " + saysModern, spec.Modern, false},
	{"-32020", "answer " + saysMismatch, spec.Modern, false},
	{"a result with legacy versions only", "answer " + saysOldOnly, spec.Legacy, false},
	{"unknown method", "answer " + saysUnknown, spec.Legacy, false},
	{"invalid before initialize", "answer " + saysNotYet, spec.Legacy, false},
	{"exits on it", "exit", spec.Legacy, false},
	{"exits at once", "quit", spec.Unknown, false},
	{"silence", "", spec.Legacy, true},
	{"an answer to something else", "answer " + strings.ReplaceAll(saysModern, "%s", "4711"), spec.Legacy, true},
	{"silence, and no end by its input", "deaf", spec.Legacy, true},
}

// oddCommand is a server on standard input and output that does what its script
// says, a line for each request.
func oddCommand(args []string) int {
	in := bufio.NewScanner(os.Stdin)
	var deaf bool
	for line := range strings.SplitSeq(args[0], "\n") {
		verb, text, _ := strings.Cut(line, " ")
		switch verb {
		case "quit":
			return 3
		case "noise":
			fmt.Println("server is ready", "{not json")
			continue
		case "deaf":
			signal.Ignore(syscall.SIGTERM)
			deaf = true
			continue
		}
		if line == "" || !in.Scan() {
			break
		}
		m, _ := wire.Parse(in.Bytes(), wire.Options{})
		if verb == "exit" {
			fmt.Fprintln(os.Stderr, "unexpected message", m.Method)
			return 1
		}
		fmt.Println(strings.ReplaceAll(text, "%s", m.ID.String()))
	}
	for in.Scan() {
	}
	for deaf {
		time.Sleep(time.Second)
	}
	return 0
}

// pinnedCommand serves the older era, unless something else comes first: then it
// refuses all that follows, as some SDKs do.
func pinnedCommand([]string) int {
	pinned := false
	for in, first := bufio.NewScanner(os.Stdin), true; in.Scan(); first = false {
		m, _ := wire.Parse(in.Bytes(), wire.Options{})
		pinned = pinned || first && m.Method != spec.MethodInitialize
		answer := saysTools
		switch {
		case m.ID.IsZero():
			continue
		case pinned:
			answer = saysNotYet
		case m.Method == spec.MethodInitialize:
			answer = saysWelcome
		}
		fmt.Println(strings.ReplaceAll(answer, "%s", m.ID.String()))
	}
	return 0
}

func init() {
	children["odd"], children["pinned"] = oddCommand, pinnedCommand
}
