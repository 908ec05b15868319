package trace

import (
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// An Info says what a request is. Its bytes are valid until the request ends.
type Info struct {
	Server   string // in the configuration
	Method   string
	Name     string // of the tool, prompt or resource; empty if there is none, or if Named has it
	Named    Named  // nil if Name says it
	Era      string // the client's
	Revision string
	ID       string // the JSON-RPC id, as JSON

	Principal  string // empty for an anonymous client
	Session    string // names a legacy session; empty for a modern client
	ClientInfo []byte // the client's name and version, as JSON; nil if not given

	Arrival *Arrival // how it came; nil if unknown
	Context Context  // of the client's trace, from the message itself
}

// A Named knows the name of a request, which it need not find out unless an observer asks.
type Named interface{ Subject() string }

// An Arrival says how messages of a client arrive.
type Arrival struct {
	Protocol string  // "http" or "websocket"; empty for a pipe
	Version  string  // of the protocol, such as "1.1"
	Peer     string  // the address of the connection
	Client   string  // the client's address: Peer, or what a trusted proxy says
	Context  Context // of the HTTP request
	Via      string  // the replica that has forwarded it; empty if none has
	// Header is that of the HTTP request; nil if there is none, or if nobody observes.
	Header map[string][]string

	room *room // for its first request; nil if there is none
}

// A room has the memory for an Arrival and its first request: most have no other.
type room struct {
	arrival Arrival
	used    atomic.Bool
	request Request
	begun   atomic.Bool // the observers know of request
}

// take returns the memory for a request of a, which may be nil.
func (a *Arrival) take() *Request {
	if a == nil || a.room == nil || a.room.used.Swap(true) {
		return new(Request)
	}
	return &a.room.request
}

// A Request is one request of a client as it is observed, from its arrival to the end of its
// answer. The methods of a nil Request do nothing.
type Request struct {
	Info

	number    uint64
	observers *Observers
	began     time.Time
	records   []Record
	few       [3]Record
	bodies    bool // one of records wants bodies
	quiet     bool // all of records are Quiet

	first          firstExchange
	received, sent atomic.Int64 // bytes
	next           atomic.Pointer[Request]
	last           atomic.Pointer[Exchange] // of the request's own method
	traceID        string                   // set before Begin returns

	mu sync.Mutex // guards ending
	ending
}

// An ending is what became of a request.
type ending struct {
	outcome string
	err     error
	took    time.Duration // set by End
	ended   bool

	member, own string // set by Pass
}

// A firstExchange is the place of the first exchange of a request: most have no other.
type firstExchange struct {
	used     atomic.Bool
	exchange Exchange
}

// RequestID returns an id of the request that no other has, for people.
func (r *Request) RequestID() string { return string(r.AppendRequestID(nil)) }

// AppendRequestID appends what RequestID returns.
func (r *Request) AppendRequestID(dst []byte) []byte {
	return strconv.AppendUint(append(dst, r.observers.prefix...), r.number, 36)
}

// Subject returns the name of the request's tool, prompt or resource. An observer that wants
// it calls Subject before Begin returns, and may do so again.
func (r *Request) Subject() string {
	if r.Named != nil {
		r.Name, r.Named = r.Named.Subject(), nil
	}
	return r.Name
}

// Began returns when the request arrived, unless all its records are [Quiet]. An observer may
// call it before Begin returns.
func (r *Request) Began() time.Time {
	if r.began.IsZero() {
		r.began = time.Now()
	}
	return r.began
}

// Event tells that something happened. detail may be empty.
func (r *Request) Event(k Kind, detail string) {
	if r != nil {
		r.current().event(k, detail)
	}
}

func (r *Request) event(k Kind, detail string) {
	if r.quiet {
		return
	}
	e := Event{k, detail, time.Now()}
	for _, rec := range r.records {
		rec.Event(e)
	}
}

// current returns the request that has the client's attention: the last retry, or r.
func (r *Request) current() *Request {
	for next := r.next.Load(); next != nil; next = r.next.Load() {
		r = next
	}
	return r
}

// Continue says that retry, which may be nil, brings input to r: what happens to r from then
// on happens to retry.
func (r *Request) Continue(retry *Request) {
	if r == nil || retry == nil {
		return
	}
	former := r.current()
	for _, rec := range retry.records {
		for _, f := range former.records {
			rec.Follows(f)
		}
	}
	former.next.Store(retry)
}

// Bodies reports whether anybody wants the messages.
func (r *Request) Bodies() bool { return r != nil && r.bodies }

// Received tells of the message that the client has sent.
func (r *Request) Received(text []byte) {
	if r != nil {
		r.received.Add(int64(len(text)))
		r.body(nil, Received, text)
	}
}

// Sent tells of a message that is sent to the client.
func (r *Request) Sent(text []byte) {
	if r != nil {
		r.sent.Add(int64(len(text)))
		r.body(nil, Sent, text)
	}
}

// SentSize is Sent for a message of which nobody wants the text.
func (r *Request) SentSize(n int) {
	if r != nil {
		r.sent.Add(int64(n))
	}
}

func (r *Request) body(x *Exchange, d Direction, text []byte) {
	if !r.bodies {
		return
	}
	for _, rec := range r.records {
		if b, ok := rec.(BodyRecord); ok {
			b.Body(x, d, text)
		}
	}
}

// Size returns how many bytes the client has sent and got.
func (r *Request) Size() (received, sent int64) { return r.received.Load(), r.sent.Load() }

// Note says how serving the request ended, in a word of the caller's, before the client has
// the response. err is nil for a success. The first one counts.
func (r *Request) Note(outcome string, err error) {
	if r != nil {
		r.current().note(outcome, err)
	}
}

func (r *Request) note(outcome string, err error) {
	if r.quiet {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.outcome == "" {
		r.outcome, r.err = outcome, err
	}
}

// Pass says that the request, which is one to a group of servers, is served by a member, and how
// that calls the tool, prompt or resource.
func (r *Request) Pass(member, own string) {
	if r == nil {
		return
	}
	r = r.current()
	if r.quiet {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.member, r.own = member, strings.Clone(own)
}

// Served returns the server that has served the request, the group through which that has come
// to it, which is empty for none, and the name of the tool, prompt or resource there. A Record may
// call it in End.
func (r *Request) Served() (server, group, name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.member == "" {
		return r.Server, "", r.Name
	}
	return r.member, r.Server, r.own
}

// End ends the request. If nobody has called Note, err says how: nil for a success.
func (r *Request) End(err error) {
	if r != nil && !r.quiet && r.settle(err) {
		for _, rec := range r.records {
			rec.End(r)
		}
	}
}

// settle reports false if the request had ended before.
func (r *Request) settle(err error) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return false
	}
	r.ended, r.took = true, time.Since(r.began)
	if r.outcome == "" {
		r.outcome, r.err = "ok", err
		if err != nil {
			r.outcome = "refused" // whoever serves requests notes the others
		}
	}
	return true
}

// Outcome returns how the request ended, and how long it took. A Record may call it in End.
func (r *Request) Outcome() (outcome string, took time.Duration, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.outcome, r.took, r.err
}

// SetTraceID sets the id of the trace that the request is recorded in. A Record may call it
// before Begin returns.
func (r *Request) SetTraceID(id string) { r.traceID = id }

// TraceID returns the id of the trace that the request is recorded in; empty if it is
// recorded in none.
func (r *Request) TraceID() string {
	if r == nil {
		return ""
	}
	return r.traceID
}
