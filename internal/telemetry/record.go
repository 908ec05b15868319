package telemetry

import (
	"math/rand/v2"
	"sync"

	"github.com/mcpbridge/mcpbridge/internal/trace"
)

// mostNotes bounds the events, and the links, of one span. Later ones are left out.
const mostNotes = 128

// A record has the spans of one request.
type record struct {
	t            *Tracer
	in           trace.Context // the client's
	parent, span spanContext

	// mu guards the fields below, and is held for a few instructions.
	mu     sync.Mutex
	events []trace.Event
	links  []link
	open   []child
	few    [1]child
}

// A link leads to another span.
type link struct {
	to    spanContext
	retry bool // to a request that is repeated
}

// A child is the span of an exchange.
type child struct {
	x    *trace.Exchange
	span spanContext
}

// Upstream implements [trace.Record]: it begins a span, whose context the server gets.
func (r *record) Upstream(x *trace.Exchange) {
	c := child{x, r.span.newSpan(rand.Uint64())}
	if r.t.contexts {
		x.Context = format(&c.span)
	} else {
		x.Context.Traceparent, x.Context.Tracestate = r.in.Traceparent, r.in.Tracestate
	}
	if r.t.baggage {
		x.Context.Baggage = checked(r.in.Baggage)
	}
	if !c.span.sampled {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.open == nil {
		r.open = r.few[:0]
	}
	r.open = append(r.open, c)
}

// Answered implements [trace.Record].
func (r *record) Answered(x *trace.Exchange) {
	if !r.span.sampled {
		return
	}
	if c, ok := r.take(x); ok {
		r.t.export(func(dst []byte) []byte { return r.t.appendExchange(dst, &r.span, &c) })
	}
}

// take removes the span of x, and returns it.
func (r *record) take(x *trace.Exchange) (child, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, c := range r.open {
		if c.x == x {
			r.open = append(r.open[:i], r.open[i+1:]...)
			return c, true
		}
	}
	return child{}, false
}

// Event implements [trace.Record].
func (r *record) Event(e trace.Event) {
	if !r.span.sampled {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.events) < mostNotes {
		r.events = append(r.events, e)
	}
}

// Follows implements [trace.Record]: it links the call that the request brings input to.
func (r *record) Follows(former trace.Record) {
	f, ok := former.(*record)
	if !ok || !r.span.sampled {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.links) < mostNotes {
		r.links = append(r.links, link{f.span, true})
	}
}

// End implements [trace.Record].
func (r *record) End(req *trace.Request) {
	if !r.span.sampled {
		return
	}
	r.mu.Lock()
	events, links := r.events, r.links
	r.mu.Unlock() // later ones are left out
	r.t.export(func(dst []byte) []byte { return r.t.appendRequest(dst, r, req, events, links) })
}

// buffers are for spans.
var buffers = sync.Pool{New: func() any { b := make([]byte, 0, 2048); return &b }}

// export hands on the span that write appends.
func (t *Tracer) export(write func(dst []byte) []byte) {
	buf := buffers.Get().(*[]byte)
	*buf = write((*buf)[:0])
	t.batch.add(*buf)
	buffers.Put(buf)
}
