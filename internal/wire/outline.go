package wire

import (
	"bytes"
	"iter"
	"math"
)

// maxOutline is the largest number of members in an outline. Results and params have no
// more, except for those that are maps.
const maxOutline = 8

// minOutline is the length of a message from which on Parse keeps an outline. To scan a
// shorter one takes no longer than to allocate an outline.
const minOutline = 1 << 10

// An Outline holds the member positions of an object that [Parse] has read, so that a
// large object is not scanned again. It applies to the parsed bytes themselves. For any
// other text, even an equal copy, its methods scan the text, as the package's functions
// of the same names do. The zero Outline and nil apply to no text.
type Outline struct {
	text    []byte
	nonNull bool // no value in text is null, at any depth
	known   bool // at[:n] has all members
	n       int
	at      [maxOutline]memberSpan
}

// A memberSpan is the position of a member, in offsets from the beginning of its object.
// Texts beyond 4 GiB have no outlines.
type memberSpan struct{ name, nameEnd, value, end uint32 }

// OutlineOf returns the Outline of an object that was not parsed, but made, and is read more than once;
// nil for one that has too many members.
func OutlineOf(text []byte) *Outline {
	o := &Outline{text: text, known: true, nonNull: !bytes.Contains(text, []byte("null"))}
	for k, v := range Members(text) {
		if o.n == len(o.at) || uint64(len(text)) > math.MaxUint32 {
			return nil
		}
		name, value := uint32(cap(text)-cap(k)), uint32(cap(text)-cap(v)) // both alias text
		o.at[o.n] = memberSpan{name, name + uint32(len(k)), value, value + uint32(len(v))}
		o.n++
	}
	return o
}

// Members is [Members] of text.
func (o *Outline) Members(text []byte) iter.Seq2[Key, []byte] {
	return func(yield func(Key, []byte) bool) {
		if !o.isOf(text) || !o.known {
			Members(text)(yield)
			return
		}
		for _, m := range o.at[:o.n] {
			if !yield(Key(text[m.name:m.nameEnd]), text[m.value:m.end]) {
				return
			}
		}
	}
}

// Get is [Get] of text.
func (o *Outline) Get(text []byte, name string) []byte {
	for k, v := range o.Members(text) {
		if k.Is(name) {
			return v
		}
	}
	return nil
}

// checkUnique is CheckUnique of text.
func (o *Outline) checkUnique(text []byte) error {
	if !o.isOf(text) || !o.known {
		return CheckUnique(text)
	}
	var all names
	for _, m := range o.at[:o.n] {
		if err := all.add(Key(text[m.name:m.nameEnd])); err != nil {
			return err
		}
	}
	return nil
}

// MayHaveNulls reports whether null may be a value in text, at any depth.
func (o *Outline) MayHaveNulls(text []byte) bool {
	if o.isOf(text) {
		return !o.nonNull
	}
	return bytes.Contains(text, []byte("null"))
}

func (o *Outline) isOf(text []byte) bool {
	return o != nil && len(text) > 0 && len(text) == len(o.text) && &text[0] == &o.text[0]
}

// A recorder holds the member positions that a checker has found: of the envelope, at
// level 0, and of the envelope's member that was read last, at level 1.
type recorder struct {
	level  int
	levels [2]memberList
	body   Outline // of params or result
}

// A memberList has the members of an object. Their offsets are from the beginning of the
// text.
type memberList struct {
	n  int // those beyond maxOutline are not in at
	at [maxOutline]memberSpan
}

func (l *memberList) add(name, nameEnd, value, end int) {
	if l.n < maxOutline {
		l.at[l.n] = memberSpan{uint32(name), uint32(nameEnd), uint32(value), uint32(end)}
	}
	l.n++
}

// recordMember reads the value at i and records the position of its member.
func (c *checker) recordMember(rec *recorder, name, nameEnd, i int) int {
	nulls, value := c.nulls, i
	if rec.level == 1 || i >= len(c.data) || c.data[i] != '{' {
		i = c.value(i)
		rec.levels[rec.level].add(name, nameEnd, value, i)
		return i
	}
	rec.level, rec.levels[1].n = 1, 0
	i = c.nested(i, rec)
	rec.level = 0
	rec.levels[0].add(name, nameEnd, value, i)
	if k := Key(c.data[name:nameEnd]); c.err == nil && (k.Is("result") || k.Is("params")) {
		rec.body.fill(c.data[value:i], value, &rec.levels[1])
		rec.body.nonNull = c.nulls == nulls
	}
	return i
}

// fill copies what was recorded of the object text, which begins at base.
func (o *Outline) fill(text []byte, base int, from *memberList) {
	o.text, o.n = text, min(from.n, maxOutline)
	o.known = from.n <= maxOutline && base+len(text) <= math.MaxUint32
	off := uint32(base)
	for i, m := range from.at[:o.n] {
		o.at[i] = memberSpan{m.name - off, m.nameEnd - off, m.value - off, m.end - off}
	}
}
