package wire

import (
	"errors"
	"strconv"
)

// ErrBadID says that an id is neither a string nor a number. MCP, unlike
// JSON-RPC, does not allow null.
var ErrBadID = errors.New("id is neither a string nor a number")

// An ID is a JSON-RPC id, exactly as it was written: 1, "1" and 9007199254740993 are
// three different ids, and no digit is lost. IDs are comparable. The zero ID means that
// there is no id.
type ID struct {
	text string
}

// ParseID returns the id whose JSON is text, or [ErrBadID]. The text must have passed
// [Check].
func ParseID(text []byte) (ID, error) {
	if len(text) == 0 {
		return ID{}, ErrBadID
	}
	if b := text[0]; b != '"' && b != '-' && (b < '0' || b > '9') {
		return ID{}, ErrBadID
	}
	return ID{string(text)}, nil
}

// NumberID returns the id n.
func NumberID(n int64) ID { return ID{strconv.FormatInt(n, 10)} }

// StringID returns the id that is the string s.
func StringID(s string) ID { return ID{string(Quote(s))} }

// IsZero reports whether there is no id.
func (id ID) IsZero() bool { return id.text == "" }

// Len returns the length of the id's JSON in bytes, zero if there is none.
func (id ID) Len() int { return len(id.text) }

// String returns the JSON of the id, or "null" if there is none.
func (id ID) String() string {
	if id.text == "" {
		return "null"
	}
	return id.text
}

// Append appends the JSON of the id, null if there is none.
func (id ID) Append(dst []byte) []byte {
	if id.text == "" {
		return append(dst, "null"...)
	}
	return append(dst, id.text...)
}

// Int returns the id as a number if it is an integer that fits in an int64, as every id
// from [NumberID] does.
func (id ID) Int() (int64, bool) {
	n, err := strconv.ParseInt(id.text, 10, 64)
	return n, err == nil
}
