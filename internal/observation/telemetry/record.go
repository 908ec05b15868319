package telemetry

import (
	"sync"

	"github.com/mcpbridge/mcpbridge/internal/observation/trace"
)

// mostNotes bounds the events, and the links, of one span. Later ones are left out.
const mostNotes = 128

// A record has the spans of one request.
type record struct {
	carrier
	parent       id     // zero if there is none
	method, name string // of the request, for spans

	// mu guards the fields below, and is held for a few instructions.
	mu     sync.Mutex
	events []trace.Event
	links  []link
}

// A link leads to another span.
type link struct {
	to    spanContext
	retry bool // to a request that is repeated
}

// Answered implements [trace.Record].
func (r *record) Answered(x *trace.Exchange) {
	buf := buffers.Get().(*[]byte)
	*buf = r.appendExchange((*buf)[:0], x)
	r.t.batch.add(*buf)
	buffers.Put(buf)
}

// Event implements [trace.Record].
func (r *record) Event(e trace.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.events) < mostNotes {
		r.events = append(r.events, e)
	}
}

// Follows implements [trace.Record]: it links the call that the request brings input to.
func (r *record) Follows(former trace.Record) {
	var to spanContext
	switch f := former.(type) {
	case *record:
		to = f.span
	case *unsampled:
		to = f.span
	default:
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.links) < mostNotes {
		r.links = append(r.links, link{to, true})
	}
}

// End implements [trace.Record].
func (r *record) End(req *trace.Request) {
	r.mu.Lock()
	events, links := r.events, r.links
	r.mu.Unlock() // later ones are left out
	buf := buffers.Get().(*[]byte)
	*buf = r.appendRequest((*buf)[:0], req, events, links)
	r.t.batch.add(*buf)
	buffers.Put(buf)
}

// buffers are for spans.
var buffers = sync.Pool{New: func() any { b := make([]byte, 0, 2048); return &b }}
