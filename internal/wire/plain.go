package wire

import "bytes"

// A Plain remembers of one object that its members have plain names: in ASCII, without
// escapes, and no two that differ only in case. So the member that [Get] finds is the one
// that any program finds, and no other need be looked at. Like an [Outline], it applies to
// the parsed bytes themselves, and the zero Plain to no text.
type Plain struct {
	first *byte
	n     int
}

// Of reports whether p remembers text.
func (p Plain) Of(text []byte) bool {
	return p.n > 0 && len(text) == p.n && &text[0] == p.first
}

// plainOf returns the Plain of text, which o has recorded.
func (o *Outline) plainOf(text []byte) Plain {
	if !o.isOf(text) || !o.known {
		return Plain{}
	}
	for i, m := range o.at[:o.n] {
		name := text[m.name:m.nameEnd]
		if !IsPlain(name) {
			return Plain{}
		}
		for _, before := range o.at[:i] {
			if before.nameEnd-before.name == m.nameEnd-m.name && bytes.EqualFold(text[before.name:before.nameEnd], name) {
				return Plain{}
			}
		}
	}
	return Plain{&text[0], len(text)}
}

// IsPlain reports whether text is ASCII without escapes.
func IsPlain(text []byte) bool {
	for _, b := range text {
		if b >= 0x80 || b == '\\' {
			return false
		}
	}
	return true
}
