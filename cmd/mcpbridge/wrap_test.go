package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/notebook"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// children are programs that the test binary can be, by its first argument.
var children = map[string]func(args []string) int{
	// notebook-on-stdio is a server of the older era.
	"notebook-on-stdio": func([]string) int {
		conn, err := transport.OpenStdio(transport.StdioOptions{In: os.Stdin, Out: os.Stdout})
		if err == nil {
			err = notebook.New(notebook.Options{}).Serve(context.Background(), conn)
		}
		return exitCode(err, os.Stderr)
	},
	// client starts a program over pipes, has it answer one request, says its
	// process id, and does nothing more.
	"client": func(args []string) int {
		cmd := exec.Command(args[0], args[1:]...)
		in, _ := cmd.StdinPipe()
		out, _ := cmd.StdoutPipe()
		_, _ = cmd.StderrPipe() // which breaks with us
		if err := cmd.Start(); err != nil {
			return exitCode(err, os.Stderr)
		}
		fmt.Fprintln(in, modernRequest("1", "tools/list", ""))
		line, err := bufio.NewReader(out).ReadString('\n')
		fmt.Printf("%d %v %s", cmd.Process.Pid, err, line)
		time.Sleep(time.Hour)
		return 0
	},
}

// binary is mcpbridge as it is built for users.
var binary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "mcpbridge-test-")
	if err != nil {
		return "", err
	}
	binaryDir = dir
	bin := filepath.Join(dir, "mcpbridge")
	if out, err := exec.Command("go", "build", "-o", bin, ".").CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %v\n%s", err, out)
	}
	return bin, nil
})

var binaryDir string // empty until binary is called

func removeBinary() {
	if binaryDir != "" {
		_ = os.RemoveAll(binaryDir)
	}
}

// modernRequest returns a request with an envelope. rest are further members of
// params, and begin with a comma.
func modernRequest(id, method, rest string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
		`"io.modelcontextprotocol/clientInfo":{"name":"c","version":"0"},"io.modelcontextprotocol/clientCapabilities":{}}` + rest + `}}`
}

// A wrapped is a process of mcpbridge wrap, and its client's ends of the pipes.
type wrapped struct {
	t    *testing.T
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  io.ReadCloser
	read chan string // lines of standard output; closed at their end
	log  *bridgetest.Log
}

// wrap starts mcpbridge wrap with args, and env in its environment.
func wrap(t *testing.T, env []string, args ...string) *wrapped {
	t.Helper()
	bin, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	w := &wrapped{t: t, cmd: exec.Command(bin, append([]string{"wrap"}, args...)...), read: make(chan string, 100), log: &bridgetest.Log{}}
	// A race build takes a second over its exit unless told otherwise.
	w.cmd.Env = append(append(os.Environ(), "GORACE=atexit_sleep_ms=0"), env...)
	w.cmd.Stderr = w.log
	if w.in, err = w.cmd.StdinPipe(); err == nil {
		w.out, err = w.cmd.StdoutPipe()
	}
	if err == nil {
		err = w.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	go w.pour() // ends with the process's output
	t.Cleanup(func() {
		_ = w.cmd.Process.Kill() // errors if it has ended, as it should have
		_ = w.cmd.Wait()
	})
	return w
}

func (w *wrapped) pour() {
	defer close(w.read)
	for s := bufio.NewScanner(w.out); s.Scan(); {
		w.read <- s.Text()
	}
}

func (w *wrapped) send(text string) {
	w.t.Helper()
	if _, err := io.WriteString(w.in, text+"\n"); err != nil {
		w.t.Fatalf("writing %s: %v", text, err)
	}
}

// want reads the next line, which has to be one message with every part in it.
func (w *wrapped) want(parts ...string) {
	w.t.Helper()
	select {
	case line, ok := <-w.read:
		if _, err := wire.Parse([]byte(line), wire.Options{}); err != nil || !ok {
			w.t.Fatalf("standard output = %q, %v, want a message with %q; it logged %s", line, err, parts, w.log)
		}
		for _, part := range parts {
			if !strings.Contains(line, part) {
				w.t.Errorf("standard output = %s, want %s in it", line, part)
			}
		}
	case <-time.After(bridgetest.Patience):
		w.t.Fatalf("nothing was written for %v; it logged %s", bridgetest.Patience, w.log)
	}
}

// end waits for the end of the process, whose output must have ended.
func (w *wrapped) end() error {
	w.t.Helper()
	select {
	case line, ok := <-w.read:
		if ok {
			w.t.Errorf("standard output = %s, want nothing more", line)
		}
	case <-time.After(bridgetest.Patience):
		w.t.Fatalf("still running after %v; it logged %s", bridgetest.Patience, w.log)
	}
	return w.cmd.Wait()
}

func (w *wrapped) edit(id, text string) {
	w.t.Helper()
	w.send(modernRequest(id, "tools/call", `,"name":"edit_note","arguments":{"name":"todo","text":"`+text+`"}`))
}

const todo = `,"notifications":{"resourceSubscriptions":["note://todo"]}`

// What a client of the newer revision does over the pipes of the binary, with a
// server of the older era behind it.
func TestM2L40Wrap(t *testing.T) {
	w := wrap(t, nil, "--", os.Args[0], "notebook-on-stdio")
	w.send(modernRequest(`"probe"`, "server/discover", ""))
	w.want(`"id":"probe"`, `"supportedVersions"`, `"subscribe":true`)
	for _, id := range []string{"1", `"1"`} {
		w.send(modernRequest(id, "subscriptions/listen", todo))
		w.want("acknowledged", "note://todo", `"io.modelcontextprotocol/subscriptionId":`+id+"}")
	}
	w.send(`{"jsonrpc":"2.0","id":2,"method":"ping"}`) // of no era
	w.want(`{"jsonrpc":"2.0","id":2,"result":{}}`)

	w.edit("3", "a")
	w.wantAll(`"id":3,"result"`, `"io.modelcontextprotocol/subscriptionId":1}`, `"io.modelcontextprotocol/subscriptionId":"1"}`)
	w.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
	w.send(modernRequest("1", "subscriptions/listen", `,"notifications":{"toolsListChanged":true}`)) // the id is free again
	w.want("acknowledged", "toolsListChanged", `"io.modelcontextprotocol/subscriptionId":1}`)
	w.edit("4", "b")
	w.wantAll(`"id":4,"result"`, `"io.modelcontextprotocol/subscriptionId":"1"}`)

	if err := w.in.Close(); err != nil {
		t.Fatal(err)
	}
	w.wantAll(`"id":1,"result":{"resultType":"complete"`, `"id":"1","result":{"resultType":"complete"`)
	if err := w.end(); err != nil {
		t.Errorf("wrap ended with %v, want 0; it logged %s", err, w.log)
	}
}

// A client of the older era finds what it had without mcpbridge, and one that probes
// first does, too.
func TestF11Wrap(t *testing.T) {
	w := wrap(t, nil, "--", os.Args[0], "notebook-on-stdio")
	w.send(modernRequest(`"probe"`, "server/discover", ""))
	w.want(`"id":"probe","result"`)
	w.send(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"old","version":"1"}}}`)
	w.want(`"id":0,"result":`, `"protocolVersion":"2025-11-25"`)
	w.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	w.send(`{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"note://todo"}}`)
	w.want(`"id":1,"result":`)
	w.send(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"edit_note","arguments":{"name":"todo","text":"x"}}}`)
	w.wantAll(`"id":2,"result":`, `"method":"notifications/resources/updated","params":{"uri":"note://todo"`)
	w.edit("3", "y") // of the newer era, on the same pipe
	w.want(`"id":3,"result":`, `"resultType":"complete"`)
	_ = w.in.Close()
	if err := w.end(); err != nil {
		t.Errorf("wrap ended with %v, want 0; it logged %s", err, w.log)
	}
}

// wantAll reads as many lines as there are parts, each of which has one of them, in
// any order.
func (w *wrapped) wantAll(parts ...string) {
	w.t.Helper()
	var all []string
	for range parts {
		select {
		case line := <-w.read:
			all = append(all, line)
		case <-time.After(bridgetest.Patience):
			w.t.Fatalf("standard output = %q, want %q", all, parts)
		}
	}
	for _, part := range parts {
		if text := strings.Join(all, "\n"); strings.Count(text, part) != 1 {
			w.t.Errorf("standard output = %s\nwant %s once in it", text, part)
		}
	}
}

// SIGTERM ends a stream with its result, and the process with 0.
func TestM2L38WrapTerminated(t *testing.T) {
	w := wrap(t, nil, "--", os.Args[0], "notebook-on-stdio")
	w.send(modernRequest(`"s"`, "subscriptions/listen", todo))
	w.want("acknowledged")
	if err := w.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	w.want(`{"jsonrpc":"2.0","id":"s","result":{"resultType":"complete"`)
	if err := w.end(); err != nil {
		t.Errorf("wrap ended with %v, want 0; it logged %s", err, w.log)
	}
}

// A server behind a URL, and the environment that says what it is sent.
func TestWrapURL(t *testing.T) {
	answers := map[string]string{
		"initialize": `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"far","version":"1"}}`,
		"tools/list": `{"tools":[{"name":"a","inputSchema":{"type":"object"}}]}`,
	}
	far := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		m, err := wire.Parse(body, wire.Options{})
		switch answer := answers[m.Method]; {
		case r.Header.Get("Authorization") != "Bearer secret":
			rw.WriteHeader(http.StatusUnauthorized)
		case r.Method != http.MethodPost || err != nil:
			rw.WriteHeader(http.StatusMethodNotAllowed)
		case answer == "":
			rw.WriteHeader(http.StatusAccepted)
		default:
			rw.Header().Set("Content-Type", "application/json")
			_, _ = rw.Write(wire.AppendResult(nil, m.ID, []byte(answer), nil))
		}
	}))
	defer far.Close()
	w := wrap(t, []string{"MCPBRIDGE_SERVERS__127_0_0_1__HEADERS__AUTHORIZATION=Bearer secret"}, far.URL)
	w.send(modernRequest("1", "tools/list", ""))
	w.want(`"id":1,"result":{"tools":[{"name":"a"`, `"name":"far"`)
	_ = w.in.Close()
	if err := w.end(); err != nil {
		t.Errorf("wrap ended with %v, want 0; it logged %s", err, w.log)
	}
}

// What is set for a stored login need not say whose it is: there is one user.
func TestWrapNamesNoOwnerOfItsLogin(t *testing.T) {
	s := newLockedServer(t)
	environ := []string{"MCPBRIDGE_STATE_DIR=" + t.TempDir(), "MCPBRIDGE_KEYRING=false"}
	out := &browser{t: t}
	p := process{args: []string{"mcpbridge", "login", s.URL + "/mcp", "--no-browser"}, environ: environ, stdout: out, stderr: out}
	if code := exitCode(p.run(t.Context()), out); code != 0 {
		t.Fatalf("login = %d %s", code, out)
	}
	w := wrap(t, append(environ, "MCPBRIDGE_SERVERS__127_0_0_1__UPSTREAM_AUTH__OAUTH__SCOPES=[read]"), s.URL+"/mcp")
	w.send(modernRequest("1", "tools/call", `,"name":"x"`))
	w.want(`"id":1,"result"`, "done")
	_ = w.in.Close()
	if err := w.end(); err != nil || strings.Contains(w.log.String(), "as the person who has logged in") {
		t.Errorf("wrap ended with %v, and logged %s", err, w.log)
	}
}

// A server that can't be started is an answer, not the end.
func TestWrapWithoutAServer(t *testing.T) {
	broken := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(broken, []byte("neither a script nor a program"), 0o700); err != nil {
		t.Fatal(err)
	}
	w := wrap(t, nil, "--", broken)
	w.send(modernRequest("1", "tools/list", ""))
	w.want(`"id":1,"error":{"code":-32603`, "program")
	w.send(`{"jsonrpc":"2.0","id":2,"method":"ping"}`)
	w.want(`"id":2,"result"`)
	_ = w.in.Close()
	if err := w.end(); err != nil {
		t.Errorf("wrap ended with %v, want 0; it logged %s", err, w.log)
	}
}

// A client that does not read is given up, while it writes on.
func TestWrapStuckClient(t *testing.T) {
	w := wrap(t, []string{"MCPBRIDGE_WRITE_TIMEOUT=200ms"}, "--", os.Args[0], "notebook-on-stdio")
	for begin, err := time.Now(), error(nil); err == nil; {
		if time.Since(begin) > bridgetest.Patience {
			t.Fatalf("a client that does not read is served for %v", bridgetest.Patience)
		}
		_, err = io.WriteString(w.in, strings.Repeat(`{"jsonrpc":"2.0","id":1,"method":"ping"}`+"\n", 1000))
	}
	for range w.read { // what was written before
	}
	if err := w.cmd.Wait(); err == nil || !strings.Contains(w.log.String(), "write timed out") {
		t.Errorf("wrap ended with %v, want an error; it logged %s", err, w.log)
	}
}

// A client over pipes has a server that speaks HTTP+SSE alone, whose URL is all that
// is known of it.
func TestU03WrapHTTPSSE(t *testing.T) {
	s := serve(t, nil)
	url := strings.Replace(s.Endpoints[0].URL, "/mcp/", "/sse/", 1)
	w := wrap(t, nil, "-v", url)
	w.send(modernRequest("1", "subscriptions/listen", todo))
	w.want("acknowledged", "note://todo")
	w.edit("2", "milk")
	w.wantAll(`"id":2,"result"`, "notifications/resources/updated")
	w.send(`{"jsonrpc":"2.0","id":3,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"w","version":"0"}}}`)
	w.want(`"id":3,"result"`, `"protocolVersion":"2025-06-18"`)
	if err := w.in.Close(); err != nil {
		t.Fatal(err)
	}
	w.want(`"id":1,"result":{"resultType":"complete"`)
	if err := w.end(); err != nil {
		t.Errorf("wrap ended with %v, want 0; it logged %s", err, w.log)
	}
	if log := w.log.String(); !strings.Contains(log, "HTTP+SSE") {
		t.Errorf("it logged %s, want that the server was found to speak HTTP+SSE", log)
	}
	if code := s.stop(); code != 0 {
		t.Errorf("serve ended with %d; it logged %s", code, s.log)
	}
}
