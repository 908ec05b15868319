// Package program runs the examples in their tests: as processes, on a free port, with
// requests over HTTP of either era.
package program

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
)

// runs is the environment variable that has the binary of a test be the program.
const runs = "EXAMPLE_RUNS"

// Main is what TestMain of an example calls. In the process that [Start] has started it
// calls main, in the other it runs the tests, and looks for leaks.
func Main(m *testing.M, main func()) {
	if os.Getenv(runs) != "" {
		main()
		os.Exit(0)
	}
	os.Exit(bridgetest.Main(m))
}

// A Program is an example that runs.
type Program struct {
	URL string // of its endpoint

	t       *testing.T
	process *exec.Cmd
	stderr  bytes.Buffer // read only after the process has ended
}

// Start starts the example on a free port, with further arguments, and waits until it
// listens. The program is killed when the test ends.
func Start(t *testing.T, args ...string) *Program {
	t.Helper()
	p := &Program{t: t}
	p.process = exec.Command(os.Args[0], append([]string{"-listen", "127.0.0.1:0"}, args...)...)
	p.process.Env = append(os.Environ(), runs+"=1")
	p.process.Stderr = &p.stderr
	p.process.WaitDelay = 10 * time.Second
	stdout, err := p.process.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.kill)
	line, err := bufio.NewReader(stdout).ReadString('\n')
	url, ok := strings.CutPrefix(strings.TrimSpace(line), "listening at ")
	if !ok {
		t.Fatalf("the program printed %q (%v), want where it listens", line, err)
	}
	p.URL = url
	return p
}

func (p *Program) kill() {
	http.DefaultClient.CloseIdleConnections()
	if p.process.ProcessState == nil {
		_ = p.process.Process.Kill()
		_ = p.process.Wait()
	}
	if p.t.Failed() {
		p.t.Logf("the program's standard error:\n%s", p.stderr.String())
	}
}

// Interrupt interrupts the program, which has to end by itself, and returns what it wrote to
// standard error.
func (p *Program) Interrupt() string {
	p.t.Helper()
	if runtime.GOOS == "windows" {
		p.t.Skip("Windows knows no signal that one process can send to another")
	}
	if err := p.process.Process.Signal(os.Interrupt); err != nil {
		p.t.Fatal(err)
	}
	timer := time.AfterFunc(20*time.Second, func() { _ = p.process.Process.Kill() })
	defer timer.Stop()
	if err := p.process.Wait(); err != nil {
		p.t.Errorf("the program ended: %v, want exit code 0", err)
	}
	return p.stderr.String()
}

// An Answer is what a request was answered.
type Answer struct {
	Status int
	Header http.Header
	Text   string // of the tool's result, or of the error
	Body   string
}

// Modern calls read_note as a client of 2026-07-28, which needs one request.
func (p *Program) Modern(note string, header http.Header) Answer {
	p.t.Helper()
	h := http.Header{"Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {"tools/call"}, "Mcp-Name": {"read_note"}}
	return p.post(with(h, header), fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read_note","arguments":{"name":%q},"_meta":{`+
		`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},`+
		`"io.modelcontextprotocol/clientInfo":{"name":"examples","version":"1"}}}}`, note))
}

// Open opens a session as a client of 2025-11-25, and returns its id.
func (p *Program) Open(header http.Header) string {
	p.t.Helper()
	hello := p.post(header, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"examples","version":"1"}}}`)
	session := hello.Header.Get("Mcp-Session-Id")
	if hello.Status != http.StatusOK || session == "" {
		p.t.Fatalf("initialize = %d %s, session %q", hello.Status, hello.Body, session)
	}
	ready := p.post(inSession(session, header), `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	if ready.Status != http.StatusAccepted {
		p.t.Fatalf("notifications/initialized = %d %s, want 202", ready.Status, ready.Body)
	}
	return session
}

// Legacy calls read_note in a session.
func (p *Program) Legacy(session, note string, header http.Header) Answer {
	p.t.Helper()
	return p.post(inSession(session, header), fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"read_note","arguments":{"name":%q}}}`, note))
}

// inSession returns what requests of a session have, and header.
func inSession(session string, header http.Header) http.Header {
	return with(http.Header{"Mcp-Session-Id": {session}, "Mcp-Protocol-Version": {"2025-11-25"}}, header)
}

// with adds a header to another, and returns it.
func with(h, more http.Header) http.Header {
	for name, values := range more {
		h[name] = values
	}
	return h
}

func (p *Program) post(header http.Header, body string) Answer {
	p.t.Helper()
	req, err := http.NewRequestWithContext(p.t.Context(), http.MethodPost, p.URL, strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	req.Header = with(http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}, header)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		p.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return Answer{Status: resp.StatusCode, Header: resp.Header, Text: textOf(text), Body: string(text)}
}

// textOf returns what a response says to a reader, be it JSON or one event.
func textOf(body []byte) string {
	if _, data, ok := bytes.Cut(body, []byte("data: ")); ok {
		body = data
	}
	var reply struct {
		Result struct{ Content []struct{ Text string } }
		Error  struct{ Message string }
	}
	if err := json.NewDecoder(bytes.NewReader(body)).Decode(&reply); err != nil || len(reply.Result.Content) == 0 {
		return reply.Error.Message
	}
	return reply.Result.Content[0].Text
}
