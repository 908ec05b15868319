package wire

import (
	"bytes"
	"slices"
	"strconv"
)

const version = `{"jsonrpc":"2.0"`

// AppendRequest appends a request. params may be nil; extra are further members
// of the envelope as [Message] holds them, and may be nil.
func AppendRequest(dst []byte, id ID, method string, params, extra []byte) []byte {
	dst = append(append(dst, version...), `,"id":`...)
	dst = append(id.Append(dst), `,"method":`...)
	dst = appendMember(AppendString(dst, method), "params", params)
	return appendExtra(dst, extra)
}

// AppendNotification appends a notification. params may be nil.
func AppendNotification(dst []byte, method string, params, extra []byte) []byte {
	dst = append(append(dst, version...), `,"method":`...)
	dst = appendMember(AppendString(dst, method), "params", params)
	return appendExtra(dst, extra)
}

// AppendResult appends a successful response.
func AppendResult(dst []byte, id ID, result, extra []byte) []byte {
	dst = append(append(dst, version...), `,"id":`...)
	dst = appendMember(id.Append(dst), "result", result)
	return appendExtra(dst, extra)
}

// AppendError appends an error response. It writes a zero id as null, as JSON-RPC
// requires if the id could not be read.
func AppendError(dst []byte, id ID, e *Error) []byte {
	dst = append(append(dst, version...), `,"id":`...)
	dst = append(id.Append(dst), `,"error":{"code":`...)
	dst = append(strconv.AppendInt(dst, e.Code, 10), `,"message":`...)
	dst = appendMember(AppendString(dst, e.Message), "data", e.Data)
	return append(dst, "}}"...)
}

func appendMember(dst []byte, name string, value []byte) []byte {
	if value == nil {
		return dst
	}
	dst = append(append(append(dst, ',', '"'), name...), `":`...)
	return append(dst, value...)
}

func appendExtra(dst, extra []byte) []byte {
	if len(extra) > 0 {
		dst = append(append(dst, ','), extra...)
	}
	return append(dst, '}')
}

// CloseArray ends an array whose elements are each followed by a comma.
func CloseArray(dst []byte) []byte { return append(bytes.TrimSuffix(dst, []byte(",")), ']') }

// AppendWithoutNulls appends an object without those of the named members that are null.
// It appends any other value unchanged.
func AppendWithoutNulls(dst, object []byte, names []string) []byte {
	if !bytes.Contains(object, []byte("null")) || !IsObject(object) {
		return append(dst, object...)
	}
	var edits []Edit
	for k, v := range Members(object) {
		if IsNull(v) && slices.Contains(names, k.String()) {
			edits = append(edits, Edit{Name: k.String()})
		}
	}
	if len(edits) == 0 {
		return append(dst, object...)
	}
	return AppendEdited(dst, object, edits...)
}
