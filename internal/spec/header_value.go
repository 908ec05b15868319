package spec

import (
	"encoding/base64"
	"strings"
)

// Markers of an encoded header value.
//
// Spec: 2026-07-28, basic/transports/streamable-http, Value Encoding.
const (
	encodedPrefix = "=?base64?"
	encodedSuffix = "?="
)

// DecodeHeader returns the decoded value of a header, and whether it is valid: a value with
// the markers is invalid unless the text between them is canonical base64. Markers in other
// letter case are invalid, too, because some readers accept them.
func DecodeHeader(value string) (string, bool) {
	if !Marked(value) {
		return value, true
	}
	body, ok := strings.CutPrefix(value, encodedPrefix)
	body = body[:len(body)-len(encodedSuffix)]
	raw, err := base64.StdEncoding.DecodeString(body)
	return string(raw), ok && err == nil && base64.StdEncoding.EncodeToString(raw) == body
}

// Marked reports whether value has the markers of base64.
func Marked(value string) bool {
	return len(value) >= len(encodedPrefix)+len(encodedSuffix) && hasPrefixFold(value) && strings.HasSuffix(value, encodedSuffix)
}

func hasPrefixFold(value string) bool {
	return len(value) >= len(encodedPrefix) && strings.EqualFold(value[:len(encodedPrefix)], encodedPrefix)
}

// EncodeHeader returns value as a header value: unchanged if that is safe, or in base64
// between markers.
//
// Spec: 2026-07-28, basic/transports/streamable-http, Value Encoding.
func EncodeHeader(value string) string {
	if headerSafe(value) {
		return value
	}
	return encodedPrefix + base64.StdEncoding.EncodeToString([]byte(value)) + encodedSuffix
}

// headerSafe also refuses tabs, which the specification allows: some clients and proxies
// replace them by spaces.
func headerSafe(value string) bool {
	if value == "" || value[0] == ' ' || value[len(value)-1] == ' ' || hasPrefixFold(value) {
		return false
	}
	for i := range len(value) {
		if value[i] < 0x20 || value[i] > 0x7e {
			return false
		}
	}
	return true
}

// PassesRaw reports whether value can be sent in a header without encoding, which the
// specification does not allow: some servers compare names outside ASCII byte by byte.
func PassesRaw(value string) bool {
	if value == "" || strings.TrimSpace(value) != value || Marked(value) {
		return false
	}
	for i := range len(value) {
		if value[i] < 0x20 || value[i] == 0x7f {
			return false
		}
	}
	return true
}
