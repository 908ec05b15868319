package telemetry

import (
	"errors"
	"strconv"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/trace"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// appendRequest appends the span of a client's request.
func (t *Tracer) appendRequest(dst []byte, r *record, req *trace.Request, events []trace.Event, links []link) []byte {
	outcome, took, err := req.Outcome()
	parent, flags := id{}, uint32(1)|flagHasRemote
	if r.parent.isValid() {
		parent, flags = r.parent.span, flags|flagRemote
	}
	dst = appendHead(dst, &r.span, parent, flags, kindServer, req.Began(), took)
	dst = t.appendName(dst, req.Method, req)
	dst = t.requestAttributes(dst, req, outcome)
	for _, e := range events {
		dst = t.appendEvent(dst, e)
	}
	for _, l := range links {
		dst = appendLink(dst, &l)
	}
	return t.appendError(dst, err)
}

// appendExchange appends the span of a request to a server.
func (t *Tracer) appendExchange(dst []byte, parent *spanContext, c *child) []byte {
	took, err := c.x.Outcome()
	dst = appendHead(dst, &c.span, parent.span, 1|flagHasRemote, kindClient, c.x.Began(), took)
	dst = t.appendName(dst, c.x.Method, c.x.Request())
	dst = t.exchangeAttributes(dst, c.x)
	if f := c.x.Former; f != nil {
		dst = appendLink(dst, &link{parse(f.Context), true})
	}
	return t.appendError(dst, err)
}

func appendHead(dst []byte, c *spanContext, parent id, flags uint32, kind uint64, began time.Time, took time.Duration) []byte {
	dst = appendBytes(dst, spanTraceID, c.trace[:])
	dst = appendBytes(dst, spanID, c.span[:])
	dst = appendString(dst, spanState, c.state)
	if parent != (id{}) {
		dst = appendBytes(dst, spanParent, parent[:])
	}
	dst = appendVarint(dst, spanKind, kind)
	dst = appendTime(dst, spanStart, began)
	dst = appendTime(dst, spanEnd, began.Add(took))
	return appendFixed32(dst, spanFlags, flags)
}

// appendName appends the name of a span.
func (t *Tracer) appendName(dst []byte, method string, r *trace.Request) []byte {
	dst, at := begin(dst, spanName)
	dst = append(dst, t.text(method)...)
	if target := t.target(method, r); target != "" {
		dst = append(append(dst, ' '), target...)
	}
	return end(dst, at)
}

func (t *Tracer) appendEvent(dst []byte, e trace.Event) []byte {
	dst, at := begin(dst, spanEvents)
	dst = appendTime(dst, eventTime, e.At)
	dst = appendString(dst, eventName, eventNames[e.Kind])
	dst = appendText(dst, eventAttributes, detailKeys[e.Kind], t.text(e.Detail))
	return end(dst, at)
}

func appendLink(dst []byte, l *link) []byte {
	if !l.to.isValid() {
		return dst
	}
	dst, at := begin(dst, spanLinks)
	dst = appendBytes(dst, linkTraceID, l.to.trace[:])
	dst = appendBytes(dst, linkSpanID, l.to.span[:])
	dst = appendString(dst, linkState, l.to.state)
	if l.retry {
		dst = appendText(dst, linkAttributes, "mcpbridge.link", "retry")
	}
	return end(dst, at)
}

// appendError appends what a span has of an error. err is nil for a success.
//
// Spec: OpenTelemetry, Recording errors.
func (t *Tracer) appendError(dst []byte, err error) []byte {
	if err == nil {
		return dst
	}
	dst = appendText(dst, spanAttributes, attrErrorType, mcp.ErrorType(err))
	text := err.Error()
	if we := (*wire.Error)(nil); errors.As(err, &we) {
		dst = appendText(dst, spanAttributes, attrStatus, strconv.FormatInt(we.Code, 10))
		text = we.Message
	}
	if errors.Is(err, mcp.ErrToolFailed) {
		text = "" // the type says it
	}
	dst, at := begin(dst, spanStatus)
	dst = appendString(dst, statusMessage, t.text(text))
	dst = appendVarint(dst, statusCode, codeError)
	return end(dst, at)
}
