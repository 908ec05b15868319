package telemetry

import (
	"google.golang.org/protobuf/encoding/protowire"
)

// The fields of a Span and what it has, by their numbers.
//
// Spec: opentelemetry-proto, trace/v1/trace.proto, common/v1/common.proto.
const (
	spanTraceID, spanID, spanState, spanParent, spanName, spanKind        = 1, 2, 3, 4, 5, 6
	spanStart, spanEnd, spanAttributes, spanEvents, spanLinks             = 7, 8, 9, 11, 13
	spanStatus, spanFlags                                                 = 15, 16
	linkTraceID, linkSpanID, linkState, linkAttributes                    = 1, 2, 3, 4
	eventTime, eventName, eventAttributes                                 = 1, 2, 3
	statusMessage, statusCode                                             = 2, 3
	keyName, keyValue, anyString, anyInt                                  = 1, 2, 1, 3
	scopeSpans                                                            = 2
	kindServer, kindClient                                         uint64 = 2, 3
	codeError                                                      uint64 = 2
	// The parent's context is known to be remote, or not.
	flagHasRemote, flagRemote uint32 = 0x100, 0x200
)

func appendBytes(dst []byte, field protowire.Number, b []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(dst, field, protowire.BytesType), b)
}

func appendString(dst []byte, field protowire.Number, s string) []byte {
	if s == "" {
		return dst
	}
	return protowire.AppendString(protowire.AppendTag(dst, field, protowire.BytesType), s)
}

func appendVarint(dst []byte, field protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(dst, field, protowire.VarintType), v)
}

func appendFixed64(dst []byte, field protowire.Number, v uint64) []byte {
	return protowire.AppendFixed64(protowire.AppendTag(dst, field, protowire.Fixed64Type), v)
}

func appendFixed32(dst []byte, field protowire.Number, v uint32) []byte {
	return protowire.AppendFixed32(protowire.AppendTag(dst, field, protowire.Fixed32Type), v)
}

// begin begins a message in a field whose length is not known: end writes it. Messages here
// are shorter than 2 MiB, so that three bytes suffice.
func begin(dst []byte, field protowire.Number) (out []byte, at int) {
	dst = protowire.AppendTag(dst, field, protowire.BytesType)
	return append(dst, 0x80, 0x80, 0), len(dst)
}

func end(dst []byte, at int) []byte {
	n := len(dst) - at - 3
	dst[at], dst[at+1], dst[at+2] = byte(n)|0x80, byte(n>>7)|0x80, byte(n>>14)&0x7f
	return dst
}

// appendText appends an attribute to a field of attributes, unless the text is empty.
func appendText(dst []byte, field protowire.Number, key, text string) []byte {
	switch {
	case text == "":
		return dst
	case len(key)+len(text) < 0x70: // all lengths are one byte
		dst = append(dst, byte(field)<<3|2, byte(len(key)+len(text)+6), keyName<<3|2, byte(len(key)))
		dst = append(append(dst, key...), keyValue<<3|2, byte(len(text)+2), anyString<<3|2, byte(len(text)))
		return append(dst, text...)
	}
	value := 1 + protowire.SizeBytes(len(text))
	size := 1 + protowire.SizeBytes(len(key)) + 1 + protowire.SizeBytes(value)
	dst = protowire.AppendVarint(protowire.AppendTag(dst, field, protowire.BytesType), uint64(size))
	dst = protowire.AppendString(protowire.AppendTag(dst, keyName, protowire.BytesType), key)
	dst = protowire.AppendVarint(protowire.AppendTag(dst, keyValue, protowire.BytesType), uint64(value))
	return protowire.AppendString(protowire.AppendTag(dst, anyString, protowire.BytesType), text)
}

// appendInt appends an attribute that is a number.
func appendInt(dst []byte, field protowire.Number, key string, n uint64) []byte {
	value := 1 + protowire.SizeVarint(n)
	size := 1 + protowire.SizeBytes(len(key)) + 1 + protowire.SizeBytes(value)
	dst = protowire.AppendVarint(protowire.AppendTag(dst, field, protowire.BytesType), uint64(size))
	dst = protowire.AppendString(protowire.AppendTag(dst, keyName, protowire.BytesType), key)
	dst = protowire.AppendVarint(protowire.AppendTag(dst, keyValue, protowire.BytesType), uint64(value))
	return protowire.AppendVarint(protowire.AppendTag(dst, anyInt, protowire.VarintType), n)
}

// An id is a span's.
type id [8]byte

// A spanContext identifies a span.
type spanContext struct {
	trace   [16]byte
	span    id
	state   string // tracestate; valid
	sampled bool
}

func (c *spanContext) isValid() bool { return c.trace != [16]byte{} && c.span != id{} }
