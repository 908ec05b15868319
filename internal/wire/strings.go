package wire

import (
	"bytes"
	"encoding/binary"
	"unicode/utf8"
)

// str reads a string whose opening quote is at i. Its fast path is a short string without
// escapes.
func (c *checker) str(i int) int {
	if c.anyString {
		return skipString(c.data, i)
	}
	near := c.data[:min(i+1+stride, len(c.data))]
	at := skipPlain(near, i+1)
	if at < len(near) && near[at] == '"' {
		return at + 1
	}
	end, odd := stringEnd(c.data, at)
	if end < 0 || odd && !valid(c.data[at:end-1]) {
		return c.strictStr(i)
	}
	return end
}

// valid reports whether text is UTF-8 without control characters.
func valid(text []byte) bool { return indexControl(text) < 0 && utf8.Valid(text) }

// escapeEnd returns the offset after the escape at i, or -1 if it is not valid.
func escapeEnd(text []byte, i int) int {
	if i+1 >= len(text) {
		return -1
	}
	switch text[i+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i + 2
	case 'u':
		if i+6 <= len(text) && isHex(text[i+2]) && isHex(text[i+3]) && isHex(text[i+4]) && isHex(text[i+5]) {
			return i + 6
		}
	}
	return -1
}

// stride is how many bytes skipToQuote and skipValid test at a time.
const stride = 64

// stringEnd returns the offset after the string that contains i, or -1 if it has no end
// or has an invalid escape. odd reports that there may be control characters or bytes
// outside ASCII from i on. i must not be within an escape.
func stringEnd(data []byte, i int) (end int, odd bool) {
	for i < len(data) {
		next, oddToo := skipValid(data, i)
		i, odd = next, odd || oddToo
		for near := data[:min(i+stride, len(data))]; i < len(near); {
			if i = skipPlain(near, i); i == len(near) {
				break
			}
			switch data[i] {
			case '"':
				return i + 1, odd
			case '\\':
				if i = escapeEnd(data, i); i < 0 {
					return -1, odd
				}
			default:
				odd = true
				i++
			}
		}
	}
	return -1, odd
}

// skipToQuoteBytes is skipToQuote without vector instructions. It goes from quote to
// quote, and passes those after a single backslash.
func skipToQuoteBytes(data []byte, i int) (next int) {
	for next = i; ; next++ {
		n := bytes.IndexByte(data[next:], '"')
		if n < 0 {
			return len(data)
		}
		if next += n; data[next-1] != '\\' || data[next-2] == '\\' {
			return next
		}
	}
}

// skipValidBytes is skipValid without vector instructions. It goes to the next quote or
// backslash. It searches a few hundred bytes at a time, because it may be called for each
// escape.
func skipValidBytes(data []byte, i int) (next int, odd bool) {
	const ahead = 8 * stride
	for next = i; next < len(data); {
		near := data[next:min(next+ahead, len(data))]
		for _, b := range [...]byte{'"', '\\'} {
			if n := bytes.IndexByte(near, b); n >= 0 {
				near = near[:n]
			}
		}
		next += len(near)
		odd = odd || !isPlain(near)
		if len(near) < ahead {
			break
		}
	}
	return next, odd
}

// isPlain reports whether text has only ASCII bytes and no control characters. Borrows do
// not matter: only a control character causes one.
func isPlain(text []byte) bool {
	var odd uint64
	for ; len(text) >= 32; text = text[32:] {
		a, b := binary.LittleEndian.Uint64(text), binary.LittleEndian.Uint64(text[8:])
		d, e := binary.LittleEndian.Uint64(text[16:]), binary.LittleEndian.Uint64(text[24:])
		odd |= ((a | (a - spaces)) | (b | (b - spaces))) | ((d | (d - spaces)) | (e | (e - spaces)))
	}
	for ; len(text) >= 8; text = text[8:] {
		w := binary.LittleEndian.Uint64(text)
		odd |= w | (w - spaces)
	}
	for _, b := range text {
		odd |= uint64(b) | (uint64(b) - 0x20)
	}
	return odd&highs == 0
}

// isEscaped reports whether an odd number of backslashes precedes i. It does not look
// before from.
func isEscaped(data []byte, from, i int) bool {
	back := i
	for back > from && data[back-1] == '\\' {
		back--
	}
	return (i-back)%2 != 0
}

// indexControl returns the offset of the first control character in text, or -1.
func indexControl(text []byte) int {
	i := 0
	for ; i+8 <= len(text); i += 8 {
		if w := binary.LittleEndian.Uint64(text[i:]); (w-spaces)&^w&highs != 0 {
			break
		}
	}
	for ; i < len(text); i++ {
		if text[i] < 0x20 {
			return i
		}
	}
	return -1
}
