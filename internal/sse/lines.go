package sse

import "bytes"

// nextLine returns the first line of text without its line break, the text after it, and
// whether there was a line break. Text that ends with a line break has an empty last
// line.
func nextLine(text []byte) (line, rest []byte, more bool) {
	end := lineBreak(text)
	if end < 0 {
		return text, nil, false
	}
	rest = text[end+1:]
	if text[end] == '\r' && len(rest) > 0 && rest[0] == '\n' {
		rest = rest[1:]
	}
	return text[:end], rest, true
}

// lineBreak returns the index of the first CR or LF, or -1. It searches in windows of
// doubling size. A search for each of the two through the whole text would take quadratic
// time if the text has only the other.
func lineBreak(text []byte) int {
	for from, size := 0, 64; from < len(text); size *= 2 {
		window := text[from:min(from+size, len(text))]
		at := bytes.IndexByte(window, '\n')
		if at < 0 {
			at = len(window)
		}
		if cr := bytes.IndexByte(window[:at], '\r'); cr >= 0 {
			return from + cr
		}
		if at < len(window) {
			return from + at
		}
		from += len(window)
	}
	return -1
}
