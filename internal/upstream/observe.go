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
	c.Exchange = req.Upstream(trace.Exchange{
		Server: o.Name, Method: c.Method, Era: era.String(), Revision: string(revision), ID: c.ID,
		Protocol: o.place.protocol, Address: o.place.address,
	})
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
