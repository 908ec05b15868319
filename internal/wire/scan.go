package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"unicode/utf8"
)

// DefaultMaxDepth is how deeply arrays and objects may nest if the limit is zero.
// encoding/json, for comparison, allows 10,000.
const DefaultMaxDepth = 128

// A SyntaxError reports that a text is not exactly one JSON value as in RFC 8259, in
// valid UTF-8 and not nested too deeply.
type SyntaxError struct {
	Offset int // of the first invalid byte
	Reason string
}

// tooDeep is the Reason of a text that nests more deeply than the limit.
const tooDeep = "nested too deeply"

// TooDeep reports whether err says that a text was refused only because it nests too deeply.
func TooDeep(err error) bool {
	e, ok := errors.AsType[*SyntaxError](err)
	return ok && e.Reason == tooDeep
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("invalid JSON at byte %d: %s", e.Offset, e.Reason)
}

// Check returns a [*SyntaxError] unless data is one strict JSON value. Space around the
// value is allowed. maxDepth bounds nesting; zero means [DefaultMaxDepth].
func Check(data []byte, maxDepth int) error {
	if maxDepth <= 0 {
		maxDepth = DefaultMaxDepth
	}
	c := checker{data: data, depth: maxDepth}
	return c.text(nil)
}

// A checker scans a text once. Its methods take the offset at which to begin, and return
// the offset after what they have read. After the first failure err is set and offsets
// mean nothing.
type checker struct {
	data  []byte
	depth int // levels left
	err   *SyntaxError
	nulls int // values that were null so far

	anyString bool // accept invalid UTF-8 and control characters in strings
}

// text reads the whole text, which must be one value. If it is an object and rec is not
// nil, rec records its members.
func (c *checker) text(rec *recorder) error {
	i := c.space(0)
	if i < len(c.data) && c.data[i] == '{' {
		i = c.nested(i, rec)
	} else {
		i = c.value(i)
	}
	if c.err == nil {
		if i = c.space(i); i != len(c.data) {
			c.fail(i, "text after the value")
		}
	}
	if c.err != nil {
		return c.err
	}
	return nil
}

func (c *checker) fail(at int, reason string) int {
	if c.err == nil {
		c.err = &SyntaxError{Offset: min(at, len(c.data)), Reason: reason}
	}
	return len(c.data)
}

func (c *checker) space(i int) int { return skipSpace(c.data, i) }

func (c *checker) value(i int) int {
	if i >= len(c.data) {
		return c.fail(i, "text ends where a value must begin")
	}
	switch b := c.data[i]; {
	case b == '"':
		return c.str(i)
	case b == '{' || b == '[':
		return c.nested(i, nil)
	case b == '-' || '0' <= b && b <= '9':
		return c.number(i)
	case b == 't':
		return c.literal(i, "true")
	case b == 'f':
		return c.literal(i, "false")
	case b == 'n':
		c.nulls++
		return c.literal(i, "null")
	}
	return c.fail(i, "no value begins like this")
}

// nested reads the object or array at i.
func (c *checker) nested(i int, rec *recorder) int {
	if c.depth--; c.depth < 0 {
		return c.fail(i, tooDeep)
	}
	end := c.data[i] + 2 // the bracket that closes it, in ASCII
	i = c.items(i+1, end, rec)
	c.depth++
	return i
}

// items reads the members of an object or the elements of an array, including the closing
// bracket end.
func (c *checker) items(i int, end byte, rec *recorder) int {
	if i = c.space(i); i < len(c.data) && c.data[i] == end {
		return i + 1
	}
	for c.err == nil {
		if end == '}' {
			i = c.member(i, rec)
		} else {
			i = c.value(i)
		}
		if i = c.space(i); i >= len(c.data) {
			break
		}
		switch c.data[i] {
		case end:
			return i + 1
		case ',':
			i = c.space(i + 1)
		default:
			return c.fail(i, "want a comma or "+string(rune(end)))
		}
	}
	return c.fail(len(c.data), "object or array without end")
}

// member reads the object member at i, and records its position unless rec is nil.
func (c *checker) member(i int, rec *recorder) int {
	if i >= len(c.data) || c.data[i] != '"' {
		return c.fail(i, "want a member name")
	}
	name, nameEnd := i, c.str(i)
	if i = c.space(nameEnd); i >= len(c.data) || c.data[i] != ':' {
		return c.fail(i, "want a colon")
	}
	if i = c.space(i + 1); rec != nil {
		return c.recordMember(rec, name, nameEnd, i)
	}
	return c.value(i)
}

func (c *checker) literal(i int, word string) int {
	if !bytes.HasPrefix(c.data[i:], []byte(word)) {
		return c.fail(i, "no value begins like this")
	}
	return i + len(word)
}

func (c *checker) number(i int) int {
	if c.data[i] == '-' {
		i++
	}
	if i < len(c.data) && c.data[i] == '0' {
		i++
	} else if i = c.digits(i); c.err != nil {
		return i
	}
	if i < len(c.data) && c.data[i] == '.' {
		i = c.digits(i + 1)
	}
	if c.err == nil && i < len(c.data) && (c.data[i] == 'e' || c.data[i] == 'E') {
		if i++; i < len(c.data) && (c.data[i] == '+' || c.data[i] == '-') {
			i++
		}
		i = c.digits(i)
	}
	return i
}

func (c *checker) digits(i int) int {
	from := i
	for i < len(c.data) && '0' <= c.data[i] && c.data[i] <= '9' {
		i++
	}
	if i == from {
		return c.fail(i, "want a digit")
	}
	return i
}

// strictStr reads a string like str, but byte by byte, and finds the position of an
// error.
func (c *checker) strictStr(i int) int {
	for i++; ; {
		i = skipPlain(c.data, i)
		if i >= len(c.data) {
			return c.fail(i, "string without end")
		}
		switch b := c.data[i]; {
		case b == '"':
			return i + 1
		case b == '\\':
			end := escapeEnd(c.data, i)
			if end < 0 {
				return c.fail(i, "invalid escape")
			}
			i = end
		case b < 0x20:
			return c.fail(i, "control character in a string")
		default:
			r, n := utf8.DecodeRune(c.data[i:])
			if r == utf8.RuneError && n == 1 {
				return c.fail(i, "invalid UTF-8")
			}
			i += n
		}
	}
}

func isHex(b byte) bool {
	return '0' <= b && b <= '9' || 'a' <= b|0x20 && b|0x20 <= 'f'
}

func skipSpace(data []byte, i int) int {
	for i < len(data) && (data[i] == ' ' || data[i] == '\n' || data[i] == '\r' || data[i] == '\t') {
		i++
	}
	return i
}

// Eight copies of a byte, for tests of eight bytes at a time.
const (
	lows   = 0x0101010101010101
	highs  = 0x8080808080808080
	quotes = '"' * lows
	slants = '\\' * lows
	spaces = 0x20 * lows
)

// skipPlain returns the offset of the first byte from i on that is a quote, a backslash,
// a control character, or not ASCII. Most bytes of large results are in long strings, so
// it tests eight bytes at a time. Each term sets the high bit of the bytes it looks for.
// Only the lowest set bit is exact, because a borrow can change the bits above it.
func skipPlain(data []byte, i int) int {
	for ; i+8 <= len(data); i += 8 {
		w := binary.LittleEndian.Uint64(data[i:])
		q, s := w^quotes, w^slants
		odd := w | (w - spaces) | (q - lows) | (s - lows)
		if odd&highs != 0 {
			odd = (w | (w-spaces)&^w | (q-lows)&^q | (s-lows)&^s) & highs
			if odd != 0 {
				return i + bits.TrailingZeros64(odd)/8
			}
		}
	}
	for i < len(data) && data[i] != '"' && data[i] != '\\' && 0x20 <= data[i] && data[i] < utf8.RuneSelf {
		i++
	}
	return i
}
