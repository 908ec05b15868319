package upstream

import (
	"net/url"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/http1"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/observation/trace"
	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// A place is where a server is; both are empty for a pipe.
type place struct{ protocol, address string }

func placeOf(text string) place {
	if text == "" {
		return place{}
	}
	u, err := url.Parse(text)
	if err != nil {
		return place{"http", ""}
	}
	return place{"http", u.Host}
}

// Observe tells the observers of req, which may be nil, that c is about to be sent, to a
// server of an era. The caller calls Ended.
func (o *Options) Observe(c *Call, req *trace.Request, era spec.Era, revision spec.Revision) {
	c.began = time.Now()
	if req == nil {
		return
	}
	c.Exchange = req.Upstream(o.exchange(c, era, revision))
}

func (o *Options) exchange(c *Call, era spec.Era, revision spec.Revision) trace.Exchange {
	return trace.Exchange{
		Server: o.Name, Method: c.Method, Era: era.String(), Revision: string(revision), ID: c.ID, Began: c.began,
		Protocol: o.place.protocol, Address: o.place.address,
	}
}

// ObserveOwn tells the observers of o that c, a request of the gateway's own, is about to be
// sent. The caller calls EndOwn.
func (o *Options) ObserveOwn(c *Call, era spec.Era, revision spec.Revision) {
	if c.Exchange == nil && o.Observers.Any() {
		c.Exchange = o.Observers.Own(o.exchange(c, era, revision))
	}
}

// EndOwn tells the observers how c has ended: with a response, or an error.
func (c *Call) EndOwn(r *Response, err error) {
	if err == nil && r.Err != nil {
		err = r.Err
	}
	c.Exchange.End(err)
}

// Ended counts c, and tells the observers how it has ended: with a response, or an error.
func (o *Options) Ended(c *Call, r *Response, err error) {
	if err == nil && r.Err != nil {
		err = r.Err
	}
	x := c.Exchange
	if x != nil && err == nil && mcp.ToolFailed(c.Method, r.Result, r.Outline) {
		err = mcp.ErrToolFailed
	}
	took := time.Since(c.began)
	o.Metrics.Upstream(o.Name, c.Method, mcp.ErrorType(err), took, x.TraceID())
	if x == nil {
		return
	}
	if r != nil {
		x.Received(r.Text)
	}
	x.EndAfter(took, err)
}

// fields appends those of a header that the call alone has: its Fields, and the context of its trace.
// c may be nil.
func (c *Call) fields(to []http1.Field) []http1.Field {
	if c == nil {
		return to
	}
	if to = append(to, c.Fields...); !c.Exchange.HasContext() {
		return to
	}
	t := &c.Exchange.Context
	for _, f := range [...]http1.Field{{Name: "Traceparent", Value: t.Traceparent}, {Name: "Tracestate", Value: t.Tracestate}, {Name: "Baggage", Value: t.Baggage}} {
		if f.Value != "" {
			to = append(to, f)
		}
	}
	return to
}

// observed returns what observes the call of x, if anybody wants its messages; nil otherwise.
func (x *exchange) observed() *trace.Exchange {
	if c := x.reply.call; c != nil && c.Exchange.Bodies() {
		return c.Exchange
	}
	return nil
}

// observeSent tells the observers of the call of x of the header that is sent.
func (x *exchange) observeSent() {
	if of := x.observed(); of != nil {
		of.Head(trace.Head{Direction: trace.Sent, Fields: http1.Merged(&x.req, x.fields(nil)).Header})
	}
}

// observeReceived tells them of the response's.
func (x *exchange) observeReceived() {
	if resp := x.reply.resp; resp != nil {
		x.observed().Head(trace.Head{Direction: trace.Received, Status: resp.StatusCode, Fields: resp.Header})
	}
}
