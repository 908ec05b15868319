package wire

import (
	"slices"
	"strings"
)

// AppendCanonical appends the value in text with the members of its objects sorted by
// name and without space between tokens, so that two texts that differ in order and space
// only become equal. Numbers and strings stay as written. The text must have passed
// [Check].
func AppendCanonical(dst, text []byte) []byte {
	text = text[skipSpace(text, 0):]
	switch {
	case IsObject(text):
		return appendSorted(dst, text)
	case IsArray(text):
		dst = append(dst, '[')
		for e := range Elements(text) {
			dst = append(AppendCanonical(dst, e), ',')
		}
		return closeList(dst, ']')
	}
	return append(dst, text[:skipValue(text, 0)]...)
}

func appendSorted(dst, text []byte) []byte {
	type member struct {
		name  string
		value []byte
	}
	var all []member
	for k, v := range Members(text) {
		all = append(all, member{k.String(), v})
	}
	slices.SortStableFunc(all, func(a, b member) int { return strings.Compare(a.name, b.name) })
	dst = append(dst, '{')
	for _, m := range all {
		dst = append(AppendString(dst, m.name), ':')
		dst = append(AppendCanonical(dst, m.value), ',')
	}
	return closeList(dst, '}')
}

// closeList replaces the last comma, if any, by the closing bracket.
func closeList(dst []byte, bracket byte) []byte {
	if dst[len(dst)-1] == ',' {
		dst = dst[:len(dst)-1]
	}
	return append(dst, bracket)
}
