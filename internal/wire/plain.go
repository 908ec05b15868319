package wire

import (
	"bytes"
	"math"
)

// A Plain remembers of one object that its members have plain names: in ASCII, without
// escapes, and no two that differ only in case. So the member that [Get] finds is the one
// that any program finds, and no other need be looked at. It also has the positions of a few
// members, so that a small object, too, is scanned only once. Like an [Outline], it applies to
// the parsed bytes themselves, and the zero Plain to no text.
type Plain struct {
	first *byte
	n     uint32
	few   uint8 // how many members are in at; zero if that has not all of them
	at    [4]nearSpan
}

// A nearSpan is a memberSpan in a text of less than 64 KiB.
type nearSpan struct{ name, nameEnd, value, end uint16 }

// Of reports whether p remembers text.
func (p *Plain) Of(text []byte) bool {
	return p.n > 0 && len(text) == int(p.n) && &text[0] == p.first
}

// Knows reports whether p has the positions of all members of text.
func (p *Plain) Knows(text []byte) bool { return p.few > 0 && p.Of(text) }

// Get is [Get] of text.
func (p *Plain) Get(text []byte, name string) []byte {
	if !p.Knows(text) {
		return Get(text, name)
	}
	for i := range p.at[:p.few] {
		if m := &p.at[i]; string(m.nameIn(text)) == name {
			return text[m.value:m.end]
		}
	}
	return nil
}

// GetSeldom is [GetSeldom] of text.
func (p *Plain) GetSeldom(text []byte, name string) []byte {
	if !p.Knows(text) {
		return GetSeldom(text, name)
	}
	return p.Get(text, name)
}

// Len returns how many members a text has that p knows.
func (p *Plain) Len() int { return int(p.few) }

// Member returns the member at place i of text, which p knows. Its name has no escapes.
func (p *Plain) Member(text []byte, i int) (name Key, value []byte) {
	m := &p.at[i]
	return Key(text[m.name:m.nameEnd]), text[m.value:m.end]
}

// nameIn returns the name of a member of text, which has no escapes.
func (m *nearSpan) nameIn(text []byte) []byte { return text[m.name+1 : m.nameEnd-1] }

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
	p := Plain{first: &text[0], n: uint32(len(text))} // an outline that is known has no longer text
	p.note(o)
	return p
}

// note notes the positions of members.
func (p *Plain) note(o *Outline) {
	if o.n > len(p.at) || p.n > math.MaxUint16 {
		return
	}
	for i, m := range o.at[:o.n] {
		p.at[i] = nearSpan{uint16(m.name), uint16(m.nameEnd), uint16(m.value), uint16(m.end)}
	}
	p.few = uint8(o.n)
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
