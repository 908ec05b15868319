package record

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
)

func withExchange(ctx context.Context, e *Exchange) context.Context {
	return context.WithValue(ctx, contextKey{}, e)
}

func exchangeOf(ctx context.Context) *Exchange { return ctx.Value(contextKey{}).(*Exchange) }

// A message is what the judges look at.
type message struct {
	ID     json.RawMessage
	Method string
	Params json.RawMessage
	Result json.RawMessage
	Error  *struct{ Code int }
}

func (m *message) isRequest() bool  { return m.ID != nil && m.Method != "" }
func (m *message) isResponse() bool { return m.Method == "" && (m.Result != nil || m.Error != nil) }

// meta returns a member of params._meta, as it stands there.
func (m *message) meta(key string) string {
	var p struct {
		Meta map[string]json.RawMessage `json:"_meta"`
	}
	_ = json.Unmarshal(m.Params, &p) // params may be absent
	return string(p.Meta["io.modelcontextprotocol/"+key])
}

// hasEnvelope reports whether a message is of 2026-07-28.
func (m *message) hasEnvelope() bool { return m.meta("protocolVersion") != "" }

// messagesOf reads a body: a message or a batch.
func messagesOf(body []byte) []message {
	var all []message
	if json.Unmarshal(body, &all) == nil {
		return all
	}
	var m message
	if json.Unmarshal(body, &m) == nil {
		return []message{m}
	}
	return nil
}

// answers reads what came of a request: JSON, or the data of events. Unframed says that a
// stream has a message that is no event.
func (e *Exchange) answers() (all []message, unframed bool) {
	if !strings.HasPrefix(e.Said.Get("Content-Type"), "text/event-stream") {
		return messagesOf(e.Answer), false
	}
	for line := range bytes.Lines(e.Answer) {
		line = bytes.TrimSpace(line)
		if data, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			all = append(all, messagesOf(bytes.TrimSpace(data))...)
			continue
		}
		unframed = unframed || bytes.HasPrefix(line, []byte("{"))
	}
	return all, unframed
}
