package trace

import "time"

// An Exchange is one request that is sent to a server for a request of a client. The methods
// of a nil Exchange do nothing.
type Exchange struct {
	// Set by whoever sends it.
	Server   string
	Method   string
	Era      string    // the server's
	Revision string    // empty while unknown
	ID       int64     // the JSON-RPC id
	Address  string    // the server's host and port; empty for a pipe
	Protocol string    // as in [Arrival]
	Began    time.Time // zero for when [Request.Upstream] is called
	// Former is the exchange that this one repeats, or to which it brings input; nil if there
	// is none. It is set by [Request.Upstream].
	Former *Exchange

	// Context is sent with the request, unless it is empty: then that of the client's
	// message is passed on.
	Context Context
	// Span is what a tracer keeps of x. It is set before [Request.Upstream] returns.
	Span [8]byte

	request *Request
	took    time.Duration
	err     error
}

// Upstream tells that x is about to be sent. Whoever calls it calls [Exchange.End], once.
func (r *Request) Upstream(x Exchange) *Exchange {
	if r == nil {
		return nil
	}
	out := r.place()
	*out = x
	if out.Began.IsZero() {
		out.Began = time.Now()
	}
	out.Former = r.follow(out)
	r = r.current()
	out.request = r
	for _, rec := range r.records {
		rec.Upstream(out)
	}
	return out
}

// place returns the memory for an exchange: most requests have one.
func (r *Request) place() *Exchange {
	if r.first.used.Swap(true) {
		return new(Exchange)
	}
	return &r.first.exchange
}

// follow returns the last exchange of the same method; x is the last one from then on.
func (r *Request) follow(x *Exchange) *Exchange {
	if x.Method != r.Method {
		return nil
	}
	return r.last.Swap(x)
}

// TraceID returns that of the request; empty if it is recorded in no trace.
func (x *Exchange) TraceID() string {
	if x == nil {
		return ""
	}
	return x.request.TraceID()
}

// Request returns the request that x is for.
func (x *Exchange) Request() *Request { return x.request }

// Sent tells of the message that is sent to the server.
func (x *Exchange) Sent(text []byte) {
	if x != nil {
		x.request.body(x, Sent, text)
	}
}

// Received tells of a message of the server.
func (x *Exchange) Received(text []byte) {
	if x != nil {
		x.request.body(x, Received, text)
	}
}

// Bodies reports whether anybody wants the messages.
func (x *Exchange) Bodies() bool { return x != nil && x.request.bodies }

// End tells that the server has answered, or why not.
func (x *Exchange) End(err error) {
	if x != nil {
		x.EndAfter(time.Since(x.Began), err)
	}
}

// EndAfter is End for a caller that knows how long it took.
func (x *Exchange) EndAfter(took time.Duration, err error) {
	if x == nil {
		return
	}
	if x.request.quiet {
		return
	}
	x.took, x.err = took, err
	for _, rec := range x.request.records {
		rec.Answered(x)
	}
}

// Outcome returns how x ended, and how long it took. A Record may call it in Answered.
func (x *Exchange) Outcome() (took time.Duration, err error) { return x.took, x.err }
