package live

import (
	"cmp"
	"strings"
	"sync"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/observation/trace"
	"github.com/mcpbridge/mcpbridge/internal/redact"
)

// A record is what is known of one call. It is a [trace.Record].
type record struct {
	feed  *Feed
	id    string
	began time.Time
	state stateID // the last one that the client has got; guarded by feed.mu

	// mu guards the fields below.
	mu     sync.Mutex
	call   Call
	first  string                  // the id of the first call of several that are one to a person; empty for itself
	words  string                  // of the tool that reported an error
	open   map[*trace.Exchange]int // places in call.Exchanges
	bodies int                     // bytes of call.Messages
}

// Begin implements [trace.Observer].
func (f *Feed) Begin(r *trace.Request) trace.Record {
	if !f.paceOf(r).take() {
		return nil
	}
	rec := &record{feed: f, id: r.RequestID(), began: r.Began(), call: Call{
		ID: r.RequestID(), Time: r.Began(), Server: r.Server, Method: f.text(strings.Clone(r.Method)), Name: f.text(strings.Clone(r.Subject())),
		Caller: Caller{Client: f.text(mcp.ClientName(r.ClientInfo)), Era: r.Era, Revision: strings.Clone(r.Revision), Principal: f.text(r.Principal), Session: strings.Clone(r.Session)},
		Bodies: f.Bodies(),
	}}
	if r.Arrival != nil {
		rec.call.Protocol = r.Arrival.Protocol
	}
	f.keep(rec)
	if !rec.call.Bodies {
		return rec
	}
	b := &bodyRecord{rec}
	if r.Arrival != nil && r.Arrival.Header != nil {
		b.Head(nil, trace.Head{Direction: trace.Received, Fields: r.Arrival.Header})
	}
	return b
}

// paceOf returns the pace by which a request is taken.
func (f *Feed) paceOf(r *trace.Request) *pace {
	if r.Principal == f.opts.Looker && r.Principal != "" {
		return &f.own
	}
	return &f.calls
}

// event returns the line of the call.
func (r *record) event(kind string) Event {
	c := &r.call
	return Event{Time: time.Now(), Type: kind, Server: c.Server, Member: c.Member, Own: c.Own, Method: c.Method, Name: c.Name, Call: c.ID, First: r.first, Client: c.Client, Era: c.Era, Principal: c.Principal, Session: c.Session, ServerEra: r.serverEra()}
}

// serverEra returns the era of the server that was asked last; empty if none was.
func (r *record) serverEra() string {
	if n := len(r.call.Exchanges); n > 0 {
		return r.call.Exchanges[n-1].Era
	}
	return ""
}

// Upstream implements [trace.Record].
func (r *record) Upstream(x *trace.Exchange) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.call.Exchanges) >= maxParts {
		r.call.Left++
		return
	}
	if r.open == nil {
		r.open = make(map[*trace.Exchange]int)
	}
	r.open[x] = len(r.call.Exchanges)
	r.call.Exchanges = append(r.call.Exchanges, Exchange{
		Method: strings.Clone(x.Method), Era: x.Era, Revision: strings.Clone(x.Revision), At: millis(x.Began.Sub(r.began)), Open: true,
	})
}

// Answered implements [trace.Record].
func (r *record) Answered(x *trace.Exchange) {
	took, err := x.Outcome()
	r.mu.Lock()
	defer r.mu.Unlock()
	i, ok := r.open[x]
	if !ok {
		return
	}
	delete(r.open, x)
	e := &r.call.Exchanges[i]
	e.Open, e.Millis = false, millis(took)
	if err != nil {
		e.Error = r.feed.text(err.Error())
	}
}

// Event implements [trace.Record].
func (r *record) Event(e trace.Event) {
	detail := r.feed.text(strings.Clone(e.Detail))
	r.mu.Lock()
	if len(r.call.Steps) < maxParts {
		r.call.Steps = append(r.call.Steps, Step{At: millis(e.At.Sub(r.began)), Step: e.Kind.String(), Detail: detail})
	} else {
		r.call.Left++
	}
	line := r.event("step")
	r.mu.Unlock()
	line.Step, line.Detail = e.Kind.String(), detail
	r.feed.add(line)
}

// Follows implements [trace.Record].
func (r *record) Follows(former trace.Record) {
	f, ok := former.(*record)
	if b, isBody := former.(*bodyRecord); isBody {
		f, ok = b.record, true
	}
	if !ok {
		return
	}
	f.mu.Lock()
	f.call.Next = r.id
	first := cmp.Or(f.first, f.id)
	f.mu.Unlock()
	r.mu.Lock()
	r.call.Former, r.first = f.id, first
	r.mu.Unlock()
}

// End implements [trace.Record].
func (r *record) End(req *trace.Request) {
	outcome, took, err := req.Outcome()
	server, group, own := req.Served()
	r.mu.Lock()
	if group != "" {
		r.call.Member, r.call.Own = server, r.feed.text(own)
	}
	r.call.Outcome, r.call.Millis = outcome, millis(took)
	r.call.Received, r.call.Sent = req.Size()
	if err != nil {
		r.call.Error = r.feed.text(cmp.Or(r.words, err.Error()))
	}
	line := r.event("call")
	line.Outcome, line.Millis, line.Error = outcome, r.call.Millis, r.call.Error
	r.mu.Unlock()
	r.feed.add(line)
}

// copy returns the call as it is.
func (r *record) copy() *Call {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.call
	c.Exchanges = append([]Exchange{}, c.Exchanges...)
	c.Steps = append([]Step{}, c.Steps...)
	c.Messages = append([]Message{}, c.Messages...)
	c.Heads = append([]Head{}, c.Heads...)
	return &c
}

// dropBodies forgets the messages, and returns their size.
func (r *record) dropBodies() (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.call.Left += len(r.call.Messages) + len(r.call.Heads)
	n, r.bodies, r.call.Messages, r.call.Heads = r.bodies, 0, nil, nil
	return n
}

// A bodyRecord is a record that keeps messages and headers, too. It is a [trace.HeadRecord].
type bodyRecord struct{ *record }

// Body implements [trace.BodyRecord].
func (r *bodyRecord) Body(x *trace.Exchange, d trace.Direction, text []byte) {
	m := Message{Size: len(text)}
	m.From, m.To = parties(x, d)
	if x == nil {
		r.feed.thread(r.record, d, text)
	}
	if x == nil && d == trace.Sent {
		r.heed(text)
	}
	if r.full(text) {
		return
	}
	// One byte more has Cut leave its mark, before which part of a secret is hidden, too.
	m.Text = r.feed.opts.Secrets.String(redact.Cut(string(text[:min(len(text), maxBody+1)]), maxBody))
	m.At = millis(time.Since(r.began))
	if !r.feed.room(r.record, len(m.Text)) {
		r.skip()
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.call.Messages = append(r.call.Messages, m)
	r.bodies += len(m.Text)
}

// heed keeps what a tool says of its error, for the line of the call.
func (r *bodyRecord) heed(text []byte) {
	if said := words(text); said != "" {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.words = mcp.Truncate(said, maxText)
	}
}

// full reports whether the call has as many messages as are kept: of those that nobody has to
// answer half as many, so that there is room for the others.
func (r *bodyRecord) full(text []byte) bool {
	most := maxParts
	if isNote(text) {
		most /= 2
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.call.Messages) < most {
		return false
	}
	r.call.Left++
	return true
}

func (r *bodyRecord) skip() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.call.Left++
}
