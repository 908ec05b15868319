package wire

import (
	"bytes"
	"iter"
	"strings"
)

// NamedElements iterates in one pass over the elements of the array in text, as [Elements]
// does, each with the value of its member called name. The value is nil if the element is not
// an object, or if two programs may read it differently: it has no such member, or two of them,
// or one whose name differs in case only. The text must have passed [Check], and both alias it.
func NamedElements(text []byte, name string) iter.Seq2[[]byte, []byte] {
	return func(yield func([]byte, []byte) bool) {
		i := skipSpace(text, 0)
		if i >= len(text) || text[i] != '[' {
			return
		}
		for i = skipSpace(text, i+1); i < len(text) && text[i] != ']'; {
			from, value := i, []byte(nil)
			if text[i] == '{' {
				value, i = onlyMember(text, i, name)
			} else {
				i = skipValue(text, i)
			}
			if !yield(text[from:i], value) {
				return
			}
			if i = skipSpace(text, i); i < len(text) && text[i] == ',' {
				i = skipSpace(text, i+1)
			}
		}
	}
}

// onlyMember returns the value of the member called name of the object at i, and the offset
// after the object. The value is nil if there is no such member, or another one may be taken
// for it.
func onlyMember(text []byte, i int, name string) (value []byte, end int) {
	found := 0
	for i = skipSpace(text, i+1); i < len(text) && text[i] == '"'; {
		key := i
		i = skipString(text, i)
		k := Key(text[key:i])
		at := skipSpace(text, skipSpace(text, i)+1)
		i = skipValue(text, at)
		if k.isAlike(name) {
			found++
			if k.Is(name) {
				value = text[at:i]
			}
		}
		if i = skipSpace(text, i); i < len(text) && text[i] == ',' {
			i = skipSpace(text, i+1)
		}
	}
	if found != 1 {
		value = nil
	}
	return value, min(i+1, len(text))
}

// isAlike reports whether k means name, whatever the case of its letters.
func (k Key) isAlike(name string) bool {
	written := k[1 : len(k)-1]
	switch {
	case len(written) < len(name):
		return false // escapes and letters of other scripts only make a name longer
	case len(written) == len(name):
		return bytes.EqualFold(written, []byte(name))
	}
	for _, b := range written {
		if b >= 0x80 || b == '\\' {
			return strings.EqualFold(k.String(), name)
		}
	}
	return false
}
