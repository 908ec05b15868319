package access

import (
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/observation/trace"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/trust/audit"
)

// An origin says for the audit log where a request comes from, and where else it is found.
type origin struct {
	address string // of the client; empty if it is not known
	request string // the id of the request, which is also that of the access log
	trace   string // the id of its trace; empty if it has none
}

// originOf returns the origin of a request. All arguments may be nil.
func (c *Control) originOf(a *trace.Arrival, r *trace.Request, meta []byte) (o origin) {
	if c.opts.Audit == nil {
		return o
	}
	if a != nil {
		o.address = a.Client
	}
	var few [32]byte // which is as much as an id needs
	if r != nil {
		o.request = string(r.AppendRequestID(few[:0]))
	} else {
		o.request = string(c.opts.Audit.AppendID(few[:0]))
	}
	if o.trace = r.TraceID(); o.trace == "" {
		o.trace = trace.FromMeta(meta).TraceID()
	}
	if o.trace == "" && a != nil {
		o.trace = a.Context.TraceID()
	}
	return o
}

// An Ended is a session of a client, or a stream, that has ended.
type Ended struct {
	Kind    string // session or stream
	Session string // the name of a session
	Share   mcp.Share
	Era     spec.Era
	Client  string // its name and version
	Address string // from which it was opened; empty if it is not known
	Request string // the id of the request that has opened it; empty if it is not known
	Trace   string
	Opened  time.Time
	Reason  string
}

// Ended records the end of what the log has the beginning of.
func (c *Control) Ended(e *Ended) {
	if c == nil || c.opts.Audit == nil {
		return
	}
	now := time.Now()
	c.opts.Audit.Write(&audit.Record{
		Time: now, Method: audit.MethodEnd, Kind: e.Kind, Server: c.opts.Server, Principal: string(e.Share.Principal), Session: e.Session, Era: e.Era.String(),
		Client: e.Client, Address: e.Address, Request: e.Request, Trace: e.Trace, Reason: e.Reason, Took: now.Sub(e.Opened),
	})
}
