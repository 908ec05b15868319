package telemetry

import (
	"encoding/hex"

	"go.opentelemetry.io/otel/baggage"
	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/mcpbridge/mcpbridge/internal/observation/trace"
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

// traceparent returns the text that has a span of the same trace.
func (c *spanContext) traceparent(span id) string {
	text := [traceparentLen]byte{'0', '0', '-', 35: '-', 52: '-', 53: '0', 54: '0'}
	hex.Encode(text[3:35], c.trace[:])
	hex.Encode(text[36:52], span[:])
	if c.sampled {
		text[54] = '1'
	}
	return string(text[:])
}

// traceID returns the id of the trace as text.
func (c *spanContext) traceID() string {
	var text [32]byte
	hex.Encode(text[:], c.trace[:])
	return string(text[:])
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
