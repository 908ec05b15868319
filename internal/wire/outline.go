package wire

import (
	"bytes"
	"iter"
	"math"
)

// maxOutline is how many members an outline takes: as many as results and params
// have that are not maps.
const maxOutline = 8

// minOutline is how long a message must be for an outline to be worth keeping: a
// small one is walked as quickly as an outline is allocated.
const minOutline = 1 << 10

// An Outline is what [Parse] found out about an object in passing, so that nobody
// has to walk a large one again. It stands for the very bytes that were parsed:
// asked about any other text, a copy included, it says what the package's functions
// of the same names say. The zero Outline and nil know nothing.
type Outline struct {
	text    []byte
	nonNull bool // no value in text is null, at any depth
	known   bool // at and n are all members
	n       int
	at      [maxOutline]place
}

// A place is where a member stands, in offsets from the beginning of its object.
// Texts beyond 4 GiB have no outlines.
type place struct{ name, nameEnd, value, end uint32 }

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

// notes are what a checker takes down: of the envelope, at level 0, and of each of
// its members that is an object, at level 1.
type notes struct {
	level int
	of    [2]list
	body  Outline // of params or result
}

// A list is an object's members. Their offsets are from the beginning of the text.
type list struct {
	n  int // those beyond maxOutline are not in at
	at [maxOutline]place
}

func (l *list) add(name, nameEnd, value, end int) {
	if l.n < maxOutline {
		l.at[l.n] = place{uint32(name), uint32(nameEnd), uint32(value), uint32(end)}
	}
	l.n++
}

// noted reads the value at i for an object of which notes are taken.
func (c *checker) noted(o *notes, name, nameEnd, i int) int {
	nulls, value := c.nulls, i
	if o.level == 1 || i >= len(c.data) || c.data[i] != '{' {
		i = c.value(i)
		o.of[o.level].add(name, nameEnd, value, i)
		return i
	}
	o.level, o.of[1].n = 1, 0
	i = c.nested(i, o)
	o.level = 0
	o.of[0].add(name, nameEnd, value, i)
	if k := Key(c.data[name:nameEnd]); c.err == nil && (k.Is("result") || k.Is("params")) {
		o.body.fill(c.data[value:i], value, &o.of[1])
		o.body.nonNull = c.nulls == nulls
	}
	return i
}

// fill takes over what was noted of the object text, which begins at base.
func (o *Outline) fill(text []byte, base int, from *list) {
	o.text, o.n = text, min(from.n, maxOutline)
	o.known = from.n <= maxOutline && base+len(text) <= math.MaxUint32
	off := uint32(base)
	for i, m := range from.at[:o.n] {
		o.at[i] = place{m.name - off, m.nameEnd - off, m.value - off, m.end - off}
	}
}
