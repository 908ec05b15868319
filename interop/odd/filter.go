package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
)

// A filter passes requests on to the server but for those that it is odd about.
// Answers do not come through here.
type filter struct {
	unknown string
	modern  bool
	profile *profile
	server  io.Writer

	asked  bool // a first request came
	pinned bool // to another era than the server's own
}

// A message is what a filter looks at.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
}

func (m *message) isRequest() bool { return m.ID != nil && m.Method != "" }

func (f *filter) run(in io.Reader) error {
	r := bufio.NewReader(in)
	for {
		line, err := r.ReadString('\n')
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if err := f.take(line, r); err != nil {
			return err
		}
	}
}

// take deals with one line. more is what comes after it.
func (f *filter) take(line string, more io.Reader) error {
	var m message
	if err := json.Unmarshal([]byte(line), &m); err != nil {
		return fmt.Errorf("reading a message: %w", err)
	}
	first := !f.asked && m.isRequest()
	f.asked = f.asked || first
	switch {
	case first && f.unknown != "" && (m.Method == "initialize") == f.modern:
		return f.puzzled(&m, line, more)
	case f.pinned && m.isRequest():
		return f.refuse(&m, -32600, "this connection is of the era of its first request", "")
	case f.pinned:
		return nil
	case m.Method == "tools/call" && m.isRequest() && f.profile.take() != nil:
		_, err := fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":{"isError":true,"content":[{"type":"text","text":"Browser is already in use"}]}}`+"\n", m.ID)
		return err
	}
	return f.pass(line)
}

func (f *filter) pass(line string) error {
	_, err := io.WriteString(f.server, line)
	return err
}

// puzzled is what comes of a first request that the server doesn't know.
func (f *filter) puzzled(m *message, line string, more io.Reader) error {
	switch f.unknown {
	case "exit":
		return fmt.Errorf("expected an initialize request, got %s", m.Method)
	case "wedge":
		_, err := io.Copy(io.Discard, more)
		return err
	case "silent":
		return nil
	case "noise":
		fmt.Fprint(os.Stderr, traceback(m.Method))
		fmt.Print("WARNING: unknown method, is the client up to date?\n\n[info] ready {\n")
		return f.pass(line)
	case "pin":
		f.pinned = true
		if f.modern {
			return f.refuse(m, -32022, "Unsupported protocol version", `{"supported":["2026-07-28"],"requested":"2025-11-25"}`)
		}
		return f.refuse(m, -32601, "Method not found", "")
	}
	return fmt.Errorf("there is no way %q", f.unknown)
}

// refuse answers in the server's place. data is JSON, or empty for none.
func (f *filter) refuse(m *message, code int, text, data string) error {
	if data != "" {
		data = `,"data":` + data
	}
	_, err := fmt.Printf(`{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%q%s}}`+"\n", m.ID, code, text, data)
	return err
}

// traceback is some ninety lines.
func traceback(method string) string {
	var b strings.Builder
	b.WriteString("Traceback (most recent call last):\n")
	for i := range 44 {
		fmt.Fprintf(&b, "  File \"server/session.py\", line %d, in receive\n    validate(message)\n", i)
	}
	fmt.Fprintf(&b, "ValidationError: unknown method %q\n", method)
	return b.String()
}
