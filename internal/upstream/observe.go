package upstream

import (
	"maps"
	"net/http"
	"net/url"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/trace"
)

// Observe tells the observers of req, which may be nil, that c is about to be sent, to a
// server of an era. The caller calls Ended.
func (o *Options) Observe(c *Call, req *trace.Request, era spec.Era, revision spec.Revision) {
	c.began = time.Now()
	if req == nil {
		return
	}
	protocol, address := o.where()
	c.Exchange = req.Upstream(trace.Exchange{
		Server: o.Name, Method: c.Method, Era: era.String(), Revision: string(revision), ID: c.ID,
		Protocol: protocol, Address: address,
	})
}

// where returns the protocol and the address of the server; both are empty for a pipe.
func (o *Options) where() (protocol, address string) {
	if o.URL == "" {
		return "", ""
	}
	u, err := url.Parse(o.URL)
	if err != nil {
		return "http", ""
	}
	return "http", u.Host
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
	o.Metrics.Upstream(o.Name, c.Method, mcp.ErrorType(err), time.Since(c.began), x.TraceID())
	if x == nil {
		return
	}
	if r != nil {
		x.Received(r.Text)
	}
	x.End(err)
}

// traced returns header with the context of the call's trace.
func (c *Call) traced(header http.Header) http.Header {
	if c == nil || !c.Exchange.HasContext() {
		return header
	}
	header = maps.Clone(header)
	c.Exchange.SetHeader(header)
	return header
}
