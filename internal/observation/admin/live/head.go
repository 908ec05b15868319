package live

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/observation/trace"
	"github.com/mcpbridge/mcpbridge/internal/redact"
)

const (
	maxFields = 64  // of a header
	maxField  = 256 // bytes of a value
)

// A Head is the header of an HTTP message, without what grants access.
type Head struct {
	At float64 `json:"at_ms"`
	// From and To are those of a Message.
	From   string  `json:"from"`
	To     string  `json:"to"`
	Status int     `json:"status,omitempty"` // of a response
	Fields []Field `json:"fields"`           // by their names
}

// A Field is one of a header.
type Field struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// granting are parts of the names of fields whose values may grant access, whatever they are: a
// session id is one.
var granting = []string{"auth", "cookie", "token", "secret", "key", "session", "password", "credential", "signature"}

// hidden stands for a value that may grant access.
const hidden = redact.Hidden

// Head implements [trace.HeadRecord].
func (r *bodyRecord) Head(x *trace.Exchange, h trace.Head) {
	from, to := parties(x, h.Direction)
	r.head(Head{At: millis(time.Since(r.began)), From: from, To: to, Status: h.Status}, h.Fields)
}

// head keeps a header, as far as there is room.
func (r *bodyRecord) head(h Head, fields map[string][]string) {
	h.Fields = []Field{}
	size := 0
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if len(h.Fields) == maxFields {
			break
		}
		f := Field{r.feed.text(name), r.value(name, fields[name])}
		h.Fields = append(h.Fields, f)
		size += len(f.Name) + len(f.Value)
	}
	if !r.feed.room(r.record, size) {
		r.skip()
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.bodies += size
	if len(r.call.Heads) >= maxParts {
		r.call.Left++
		return
	}
	r.call.Heads = append(r.call.Heads, h)
}

// value returns the values of a field as they are kept.
func (r *bodyRecord) value(name string, values []string) string {
	lower := strings.ToLower(name)
	if slices.ContainsFunc(granting, func(part string) bool { return strings.Contains(lower, part) }) {
		return hidden
	}
	return r.feed.opts.Secrets.Words(redact.Cut(strings.Join(values, ", "), maxField))
}

// parties returns who sent a message, and to whom: x is nil for one from or to the client.
func parties(x *trace.Exchange, d trace.Direction) (from, to string) {
	switch {
	case x == nil && d == trace.Sent:
		return "mcpbridge", "client"
	case x == nil:
		return "client", "mcpbridge"
	case d == trace.Sent:
		return "mcpbridge", "server"
	}
	return "server", "mcpbridge"
}
