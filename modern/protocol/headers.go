package protocol

import (
	"encoding/base64"
	"strings"
)

// Markers of a header value that ASCII can't hold.
//
// Spec: 2026-07-28, basic/transports/streamable-http, Value Encoding.
const (
	encodedPrefix = "=?base64?"
	encodedSuffix = "?="
)

// DecodeHeader returns what a header value says, and whether it says anything: a value
// with the markers does not, unless what is between them is the one way in which
// base64 writes something. Markers in other letters are some readers' markers.
func DecodeHeader(value string) (string, bool) {
	if !Marked(value) {
		return value, true
	}
	body, ok := strings.CutPrefix(value, encodedPrefix)
	body = body[:len(body)-len(encodedSuffix)]
	raw, err := base64.StdEncoding.DecodeString(body)
	return string(raw), ok && err == nil && base64.StdEncoding.EncodeToString(raw) == body
}

// Marked reports whether value begins and ends as one in base64 does.
func Marked(value string) bool {
	return len(value) >= len(encodedPrefix)+len(encodedSuffix) && hasPrefixFold(value) && strings.HasSuffix(value, encodedSuffix)
}

func hasPrefixFold(value string) bool {
	return len(value) >= len(encodedPrefix) && strings.EqualFold(value[:len(encodedPrefix)], encodedPrefix)
}

// EncodeHeader returns value as a header can carry it: as it is where that is
// safe, else in base64 between markers.
//
// Spec: 2026-07-28, basic/transports/streamable-http, Value Encoding.
func EncodeHeader(value string) string {
	if headerSafe(value) {
		return value
	}
	return encodedPrefix + base64.StdEncoding.EncodeToString([]byte(value)) + encodedSuffix
}

// headerSafe also refuses tabs, which the specification allows: some clients and
// proxies turn them into spaces.
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

// PassesRaw reports whether a header can carry value without being encoded, though
// not in the specified way: some servers compare names outside ASCII byte by byte.
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
