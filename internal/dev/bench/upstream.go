//go:build linux

package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"

	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

const topicURI = "res://item/0"

// A legacyServer is the least that a legacy server can be: it knows the
// handshake, subscriptions, and one tool, whose result is as large as its name
// says.
type legacyServer struct {
	// mu guards the fields below.
	mu      sync.Mutex
	results map[string][]byte // by the tool's name
	streams map[chan []byte]struct{}
}

func newLegacyServer() *legacyServer {
	return &legacyServer{results: make(map[string][]byte), streams: make(map[chan []byte]struct{})}
}

// answer appends the response to a message that came to a path; nothing to a notification.
func (s *legacyServer) answer(dst, text []byte, path string) ([]byte, error) {
	m, err := wire.Parse(text, wire.Options{})
	if err != nil || m.Kind() != wire.Request {
		return dst, err
	}
	if path == tasksPath {
		if result := answerTasks(&m); result != nil {
			return wire.AppendResult(dst, m.ID, result, nil), nil
		}
	}
	if path == modernPath {
		return s.answerModern(dst, &m), nil
	}
	result := []byte("{}")
	switch m.Method {
	case spec.MethodInitialize:
		result = []byte(`{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"logging":{},"resources":{"subscribe":true}},"serverInfo":{"name":"bench","version":"1"}}`)
	case spec.MethodToolsCall:
		name, _ := wire.GetString(m.Params, "name")
		if n, found := strings.CutPrefix(name, "log_"); found {
			dst, name = appendLog(dst, n), "text_100"
		}
		result = s.result(name)
	case spec.MethodToolsList:
		result = listOfTools(path)
	}
	return wire.AppendResult(dst, m.ID, result, nil), nil
}

// toolsPath is where the server has a number of tools of the size that servers have, whose names begin
// with a text and are called as toolName says: both follow.
const toolsPath = "/tools/"

// listOfTools returns the list of tools at a path: none at most.
func listOfTools(path string) []byte {
	rest, _ := strings.CutPrefix(path, toolsPath)
	begin, n, _ := strings.Cut(rest, "/")
	count, _ := strconv.Atoi(n)
	var tools []string
	for i := range count {
		tools = append(tools, fmt.Sprintf(`{"name":"%s%s","title":"Read a file","description":"Reads a file of the workspace as text, and returns its lines with their numbers. `+
			`Use it before you edit a file.","inputSchema":{"type":"object","properties":{"path":{"type":"string","description":"The path of the file, relative to the root of the workspace."},`+
			`"from":{"type":"integer","minimum":1},"lines":{"type":"integer"}},"required":["path"]},"annotations":{"readOnlyHint":true}}`, begin, toolName(smallCall+i)))
	}
	return []byte(`{"tools":[` + strings.Join(tools, ",") + "]}")
}

// appendLog appends the log messages of a tool, a line each, before its result.
func appendLog(dst []byte, n string) []byte {
	messages, _ := strconv.Atoi(n)
	for i := range messages {
		dst = fmt.Appendf(dst, `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","logger":"bench","data":"message number %d"}}`+"\n", i)
	}
	return dst
}

// result returns the result of the tool that is called after its size.
func (s *legacyServer) result(tool string) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.results[tool] == nil {
		size, _ := strconv.Atoi(strings.TrimPrefix(tool, "text_"))
		// Lines of a log: text that people send has quotes and line ends.
		const line = "2025-11-25T10:00:00Z INFO request served path=\"/srv/notes/today.md\" took=12ms\n"
		text := wire.Quote(strings.Repeat(line, size/len(line)+1)[:size])
		s.results[tool] = append(append([]byte(`{"content":[{"type":"text","text":`), text...), "}]}"...)
	}
	return s.results[tool]
}

func (s *legacyServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.Method {
	case http.MethodGet:
		s.stream(w, r)
		return
	case http.MethodDelete:
		return
	}
	body, err := io.ReadAll(r.Body)
	var reply []byte
	if err == nil {
		reply, err = s.answer(nil, body, r.URL.Path)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set(spec.HeaderSession, "s1")
	switch {
	case reply == nil:
		w.WriteHeader(http.StatusAccepted)
	case r.URL.Path == "/stream":
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write(append(append([]byte("event: message\ndata: "), reply...), "\n\n"...))
	default:
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", strconv.Itoa(len(reply)))
		_, _ = w.Write(reply)
	}
}

// stream keeps a GET stream open and sends events on it.
func (s *legacyServer) stream(w http.ResponseWriter, r *http.Request) {
	events := make(chan []byte, 16)
	s.mu.Lock()
	s.streams[events] = struct{}{}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.streams, events)
	}()
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	rc := http.NewResponseController(w)
	for err := rc.Flush(); err == nil; {
		select {
		case <-r.Context().Done():
			return
		case frame := <-events:
			if _, err = w.Write(frame); err == nil {
				err = rc.Flush()
			}
		}
	}
}

// event tells all streams that the one resource was updated.
func (s *legacyServer) event([]string) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for events := range s.streams {
		events <- []byte("data: " + updated + "\n\n")
	}
	return len(s.streams), nil
}

const updated = `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"` + topicURI + `"}}`

func runUpstream(c *control, _ roleOptions) error {
	s := newLegacyServer()
	c.commands["event"] = s.event
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	return c.serve(l, s)
}

// runStdio serves a client on standard input and output, not the parent.
func runStdio(*control, roleOptions) error {
	s := newLegacyServer()
	in := bufio.NewReaderSize(os.Stdin, 64<<10)
	var reply []byte
	for {
		line, err := in.ReadBytes('\n')
		if err == io.EOF {
			return nil
		}
		if err == nil {
			reply, err = s.answer(reply[:0], bytes.TrimSpace(line), listPath(listedTools))
		}
		if err != nil {
			return err
		}
		if len(reply) == 0 {
			continue
		}
		if _, err := os.Stdout.Write(append(reply, '\n')); err != nil {
			return err
		}
	}
}
