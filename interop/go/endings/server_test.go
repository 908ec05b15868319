//go:build linux

package endings

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"
)

// Kinds of servers, by what they do when they are to end.
const (
	wellBehaved = "well-behaved" // end with their input, and by SIGTERM
	stubborn    = "stubborn"     // heed neither
	parent      = "parent"       // end, and leave a process in their group that heeds neither
)

// silent is the method at which a server says nothing any more: all of them.
const silent = "*"

// A server is a legacy server whose ledger tells what it has read and answered.
type server struct {
	kind   string
	mute   string // the method that it does not answer; see silent
	ledger *os.File
}

// serve is the program of a server: its arguments are the ledger, its kind, and what it
// does not answer.
func serve(args []string) int {
	ledger, err := os.OpenFile(args[0], os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return 1
	}
	s := &server{kind: args[1], mute: args[2], ledger: ledger}
	if s.kind == stubborn {
		ignoreAll()
	}
	if s.kind == parent {
		child := exec.Command(os.Args[0], "heedless")
		child.Stdout = os.Stdout // and so the end of the server's output is not the server's
		if err := child.Start(); err != nil {
			return 1
		}
	}
	s.note("started")
	s.run()
	if s.kind == stubborn {
		time.Sleep(time.Hour)
	}
	return 0
}

// heedless is the program of a process that only SIGKILL ends.
func heedless([]string) int {
	ignoreAll()
	time.Sleep(time.Hour)
	return 0
}

func ignoreAll() { signal.Ignore(syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT, syscall.SIGPIPE) }

func (s *server) note(what string) { _, _ = fmt.Fprintln(s.ledger, what) } // who misses it says so

// run reads until the end of its input.
func (s *server) run() {
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct{ ProtocolVersion string }
		}
		if json.Unmarshal(in.Bytes(), &m) != nil {
			continue
		}
		s.note("read " + m.Method)
		answer := s.answer(m.Method, m.Params.ProtocolVersion)
		if m.ID == nil || answer == "" || s.mute == silent || s.mute == m.Method {
			continue
		}
		fmt.Printf(`{"jsonrpc":"2.0","id":%s,%s}`+"\n", m.ID, answer)
		s.note("answered " + m.Method)
	}
}

func (s *server) answer(method, version string) string {
	switch method {
	case "initialize":
		return fmt.Sprintf(`"result":{"protocolVersion":%q,"capabilities":{"tools":{}},"serverInfo":{"name":"endings","version":"0"}}`, version)
	case "tools/list":
		return `"result":{"tools":[{"name":"wait","inputSchema":{"type":"object"}}]}`
	case "ping":
		return `"result":{}`
	case "tools/call":
		return "" // it is in flight until the end
	}
	return `"error":{"code":-32601,"message":"method not found"}`
}
