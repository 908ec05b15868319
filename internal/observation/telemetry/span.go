package telemetry

import (
	"errors"
	"strconv"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/observation/trace"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// appendRequest appends the span of a client's request.
func (r *record) appendRequest(dst []byte, req *trace.Request, events []trace.Event, links []link) []byte {
	outcome, took, err := req.Outcome()
	flags := uint32(1) | flagHasRemote
	if r.parent != (id{}) {
		flags |= flagRemote
	}
	dst = r.appendHead(dst, r.span.span, r.parent, flags, kindServer, req.Began(), took)
	dst = appendName(dst, r.method, r.target(req.Method))
	dst = r.requestAttributes(dst, req, outcome)
	for _, e := range events {
		dst = r.t.appendEvent(dst, e)
	}
	for _, l := range links {
		dst = appendLink(dst, &l)
	}
	return r.t.appendError(dst, err)
}

// appendExchange appends the span of a request to a server.
func (r *record) appendExchange(dst []byte, x *trace.Exchange) []byte {
	took, err := x.Outcome()
	method, target := r.method, ""
	if x.Method == x.Request().Method {
		target = r.target(x.Method)
	} else {
		method = r.t.text(x.Method)
	}
	dst = r.appendHead(dst, x.Span, r.span.span, 1|flagHasRemote, kindClient, x.Began, took)
	dst = appendName(dst, method, target)
	dst = r.exchangeAttributes(dst, x, method)
	if f := x.Former; f != nil {
		dst = appendLink(dst, &link{parse(f.Context), true})
	}
	return r.t.appendError(dst, err)
}

func (r *record) appendHead(dst []byte, span, parent id, flags uint32, kind uint64, began time.Time, took time.Duration) []byte {
	dst = appendBytes(dst, spanTraceID, r.span.trace[:])
	dst = appendBytes(dst, spanID, span[:])
	dst = appendString(dst, spanState, r.span.state)
	if parent != (id{}) {
		dst = appendBytes(dst, spanParent, parent[:])
	}
	dst = appendVarint(dst, spanKind, kind)
	start := uint64(began.UnixNano())
	dst = appendFixed64(dst, spanStart, start)
	dst = appendFixed64(dst, spanEnd, start+uint64(took))
	return appendFixed32(dst, spanFlags, flags)
}

// target returns what the name of a span of the request's own method has after that: the
// tool or prompt. URIs would make too many names.
func (r *record) target(method string) string {
	if method == spec.MethodToolsCall || method == spec.MethodPromptsGet {
		return r.name
	}
	return ""
}

// appendName appends the name of a span.
func appendName(dst []byte, method, target string) []byte {
	dst, at := begin(dst, spanName)
	dst = append(dst, method...)
	if target != "" {
		dst = append(append(dst, ' '), target...)
	}
	return end(dst, at)
}

func (t *Tracer) appendEvent(dst []byte, e trace.Event) []byte {
	dst, at := begin(dst, spanEvents)
	dst = appendFixed64(dst, eventTime, uint64(e.At.UnixNano()))
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
