package firststart

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/interop/internal/process"
)

// First requests, as clients of both eras write them, and what else is asked for here.
const (
	asksInitialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"` + legacyRevision + `","capabilities":{},"clientInfo":{"name":"interop","version":"1"}}}`
	asksDiscover   = `{"jsonrpc":"2.0","id":2,"method":"server/discover","params":` + envelope + `}`
	asksTools      = `{"jsonrpc":"2.0","id":3,"method":"tools/list","params":` + envelope + `}`

	envelope = `{"_meta":{"io.modelcontextprotocol/protocolVersion":"` + modernRevision + `","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"interop","version":"1"}}}`
)

// A pipe is a command whose pipes the test itself writes and reads: a measure that
// holds no client's own time, and a way to ask what no SDK would.
type pipe struct {
	t     testing.TB
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines chan string // what it wrote; closed when its output has ended
	log   process.Tail
	began time.Time // before its start
}

// openPipe starts a command. It ends with the test, by the end of its input.
func openPipe(t testing.TB, argv ...string) *pipe {
	t.Helper()
	p := &pipe{t: t, cmd: exec.Command(argv[0], argv[1:]...), lines: make(chan string, 64)}
	p.cmd.Stderr, p.cmd.Env = &p.log, os.Environ()
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p.cmd.WaitDelay = time.Second
	in, err := p.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.in, p.began = in, time.Now()
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go p.read(out) // ends with the process
	return p
}

func (p *pipe) read(out io.Reader) {
	defer close(p.lines)
	r := bufio.NewScanner(out)
	r.Buffer(nil, 4<<20)
	for r.Scan() {
		p.lines <- r.Text()
	}
}

// end closes the input and waits for the process. It returns how long that took and
// how the process ended; after 5 s it is killed with its group.
func (p *pipe) end() (took time.Duration, err error) {
	began := time.Now()
	_ = p.in.Close() // it may have ended by itself
	late := time.AfterFunc(5*time.Second, func() { _ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) })
	for range p.lines {
	}
	err = p.cmd.Wait()
	if !late.Stop() {
		err = fmt.Errorf("it did not end by itself: %w", err)
	}
	return time.Since(began), err
}

// An answer is a line that answers.
type answer struct {
	ID     json.RawMessage
	Result struct {
		SupportedVersions []string
		Tools             []struct{ Name string }
		Meta              map[string]struct{ Name string } `json:"_meta"`
	}
	Error *refusal
}

// A refusal is a JSON-RPC error.
type refusal struct {
	Code    int
	Message string
}

func (r *refusal) String() string {
	if r == nil {
		return "none"
	}
	return fmt.Sprintf("%d: %s", r.Code, r.Message)
}

// serverInfo is what the answer says of who gave it.
func (a *answer) serverInfo() string { return a.Result.Meta["io.modelcontextprotocol/serverInfo"].Name }

// ask writes a request and returns the answer to it; noise is the lines before that
// are no messages. It is an error if there is none within d.
func (p *pipe) ask(request string, d time.Duration) (a answer, noise int, err error) {
	var m struct{ ID json.RawMessage }
	if err := json.Unmarshal([]byte(request), &m); err != nil {
		return a, 0, err
	}
	if _, err := io.WriteString(p.in, request+"\n"); err != nil {
		return a, 0, err
	}
	late := time.After(d)
	for {
		select {
		case line, open := <-p.lines:
			if !open {
				return a, noise, errors.New("the output ended")
			}
			a = answer{}
			if !strings.HasPrefix(line, "{") || json.Unmarshal([]byte(line), &a) != nil {
				noise++
			} else if string(a.ID) == string(m.ID) {
				return a, noise, nil
			}
		case <-late:
			return a, noise, fmt.Errorf("no answer within %v", d)
		}
	}
}
