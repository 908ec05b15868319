package telemetry

import (
	"encoding/hex"

	"go.opentelemetry.io/otel/baggage"
	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/mcpbridge/mcpbridge/internal/trace"
)

// traceparentLen is the length of a traceparent of version 00.
const traceparentLen = len("00-00000000000000000000000000000000-0000000000000000-00")

// parse returns the span of a trace context. It is not valid if there is none, or if it can't
// be read. A later version may have more at the end.
//
// Spec: W3C Trace Context, traceparent header field values.
func parse(c trace.Context) (out spanContext) {
	t := c.Traceparent
	if len(t) < traceparentLen || t[2] != '-' || t[35] != '-' || t[52] != '-' || len(t) > traceparentLen && (t[:2] == "00" || t[traceparentLen] != '-') {
		return spanContext{}
	}
	var version, flags [1]byte
	if !decode(version[:], t[:2]) || version[0] == 0xff || !decode(out.trace[:], t[3:35]) || !decode(out.span[:], t[36:52]) || !decode(flags[:], t[53:55]) || !out.isValid() {
		return spanContext{}
	}
	out.sampled = flags[0]&1 != 0
	if c.Tracestate != "" {
		if state, err := oteltrace.ParseTraceState(c.Tracestate); err == nil {
			out.state = state.String()
		}
	}
	return out
}

// decode decodes lower-case hexadecimal digits.
func decode(dst []byte, text string) bool {
	for i := range len(text) {
		if c := text[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	_, err := hex.Decode(dst, []byte(text))
	return err == nil
}

// format returns the trace context of a span.
func format(c *spanContext) trace.Context {
	text := make([]byte, 0, traceparentLen)
	text = append(text, "00-"...)
	text = hex.AppendEncode(text, c.trace[:])
	text = append(text, '-')
	text = hex.AppendEncode(text, c.span[:])
	if c.sampled {
		return trace.Context{Traceparent: string(append(text, "-01"...)), Tracestate: c.state}
	}
	return trace.Context{Traceparent: string(append(text, "-00"...)), Tracestate: c.state}
}

// checked returns baggage, or nothing if it is not for passing on: it becomes a header.
func checked(text string) string {
	if text == "" {
		return ""
	}
	if _, err := baggage.Parse(text); err != nil {
		return ""
	}
	return text
}
