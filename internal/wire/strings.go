package wire

import (
	"bytes"
	"encoding/binary"
	"unicode/utf8"
)

// str reads a string whose opening quote is at i: it looks for the closing quote,
// and for backslashes and bytes that are no plain ASCII, which are looked at more
// closely where there are some.
func (c *checker) str(i int) int {
	end, odd := stringEnd(c.data, i)
	if end < 0 {
		return c.strictStr(i)
	}
	if c.anyString {
		return end
	}
	text := c.data[i+1 : end-1]
	if odd && (control(text) >= 0 || !utf8.Valid(text)) || !escapesStand(text) {
		return c.strictStr(i)
	}
	return end
}

// escapesStand reports whether all escapes in a string are such that exist. Most are
// skipped many at a time; the rest, such as \u00e9, are looked at one by one.
func escapesStand(text []byte) bool {
	i := bytes.IndexByte(text, '\\')
	for i >= 0 {
		if len(text)-i >= skimmed && i >= 3 {
			next := skipEscapes(text, i)
			if isEscaped(text, i, next) {
				next--
			}
			i = next
		}
		for stop := i + skimmed; i >= 0 && i < stop; {
			if i = nextEscape(text, i); i < 0 {
				return true
			}
			if i = escapeEnd(text, i); i < 0 {
				return false
			}
		}
	}
	return true
}

// nextEscape returns the offset of the first backslash at or behind i, or -1. Where
// there are some they are close to each other.
func nextEscape(text []byte, i int) int {
	for near := min(len(text), i+16); i < near; i++ {
		if text[i] == '\\' {
			return i
		}
	}
	n := bytes.IndexByte(text[i:], '\\')
	if n < 0 {
		return n
	}
	return i + n
}

// escapeEnd returns the offset behind the escape at i, or -1 if there is none.
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

// skimmed is how many bytes there have to be for skim.
const skimmed = 64

// stringEnd returns the offset behind the string whose opening quote is at open,
// -1 if it has no end, and whether anything in it may be a control character or
// outside ASCII. Most strings end within a few bytes; through others skim goes
// from one place that needs a closer look to the next.
func stringEnd(data []byte, open int) (end int, odd bool) {
	for i := open + 1; i < len(data); {
		near := data[i:min(i+skimmed, len(data))]
		n := bytes.IndexByte(near, '"')
		if n >= 0 {
			near = near[:n+1]
		}
		odd = odd || !isPlain(near)
		if i += len(near); n >= 0 && !isEscaped(data, open+1, i-1) {
			return i, odd
		}
		if len(data)-i >= skimmed {
			next, oddToo := skim(data, i)
			i, odd = next, odd || oddToo
		}
	}
	return -1, false
}

// skimBytes is skim without instructions for the purpose: it goes from quote to
// quote, past those behind one backslash.
func skimBytes(data []byte, i int) (next int, odd bool) {
	for next = i; ; next++ {
		n := bytes.IndexByte(data[next:], '"')
		if n < 0 {
			next = len(data)
			break
		}
		if next += n; data[next-1] != '\\' || data[next-2] == '\\' {
			break
		}
	}
	return next, !isPlain(data[i:next])
}

// isPlain reports whether text has neither control characters nor what is not
// ASCII. Borrows can't spoil the answer: only a control character causes one.
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

// isEscaped reports whether an odd number of backslashes stands before i, none
// of them before from.
func isEscaped(data []byte, from, i int) bool {
	back := i
	for back > from && data[back-1] == '\\' {
		back--
	}
	return (i-back)%2 != 0
}

// control returns the offset of the first control character in text, or -1.
func control(text []byte) int {
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
