package main

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
)

const revision = "2026-07-28"

// A message is what clients send.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
		RequestID json.RawMessage `json:"requestId"`
	} `json:"params"`
}

// A server answers requests, whatever they came by.
type server struct {
	open, cancelled atomic.Int64 // streams
}

const (
	codeMethodNotFound = -32601
	codeInvalidParams  = -32602
	codeNotFound       = -32023 // provisional
)

// A failure is an error that a request is answered with.
type failure struct {
	code int
	text string
}

// answer returns the result of a request that is no stream.
func (s *server) answer(m *message) (result string, failed *failure) {
	switch m.Method {
	case "server/discover":
		return `{"resultType":"complete","supportedVersions":["` + revision + `"],"capabilities":{"tools":{},"events":{"listChanged":false},"extensions":{"io.modelcontextprotocol/events":{}}},"ttlMs":0,"cacheScope":"private"}`, nil
	case "tools/list":
		return `{"resultType":"complete","tools":[{"name":"streams","inputSchema":{"type":"object"}}],"ttlMs":0,"cacheScope":"private"}`, nil
	case "tools/call":
		return fmt.Sprintf(`{"resultType":"complete","content":[],"structuredContent":{"open":%d,"cancelled":%d}}`, s.open.Load(), s.cancelled.Load()), nil
	case "events/list":
		return `{"resultType":"complete","events":[{"name":"ticks","delivery":["poll","push"],"inputSchema":{"type":"object"},"payloadSchema":{"type":"object"}}]}`, nil
	case "events/poll":
		return `{"resultType":"complete","events":[{"eventId":"0","name":"ticks","timestamp":"2026-11-01T00:00:00Z","data":{"n":0}}],"cursor":"1","truncated":false,"hasMore":false,"nextPollMs":1000}`, nil
	}
	return "", &failure{codeMethodNotFound, "method " + m.Method + " not found"}
}

// ticks is what a stream is asked to do; see doc.go.
type ticks struct {
	Count      int  `json:"count"`
	Error      int  `json:"error"`
	Heartbeats int  `json:"heartbeats"`
	EveryMs    int  `json:"everyMs"`
	Terminate  bool `json:"terminate"`
}

// ask reads the request of a stream.
func (m *message) ask() (ticks, *failure) {
	var t ticks
	switch {
	case m.Params.Name != "ticks":
		return t, &failure{codeNotFound, "no event " + m.Params.Name}
	case m.Params.Arguments != nil && json.Unmarshal(m.Params.Arguments, &t) != nil:
		return t, &failure{codeInvalidParams, "arguments of ticks"}
	}
	return t, nil
}

// stream runs a stream until it has ended, and reports whether that was its own end.
func (s *server) stream(ctx context.Context, id json.RawMessage, t ticks, send func(string) error) bool {
	s.open.Add(1)
	defer s.open.Add(-1)
	st := &stream{id: id, send: send}
	if st.run(ctx, t) != nil {
		s.cancelled.Add(1)
		return false
	}
	return true
}
