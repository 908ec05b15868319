package redact

import (
	"encoding/binary"
	"slices"
	"strings"
	"sync/atomic"
)

const (
	// Hidden stands where a secret was.
	Hidden = "[hidden]"
	// MinSecret is the least length of a secret, in bytes: shorter ones would be found
	// everywhere.
	MinSecret = 6

	// cutMark ends a text that was cut, with what of a secret stood before it.
	cutMark = "…"
)

// A Redactor hides secrets in text. The zero value knows none, and so does nil. It is
// safe for concurrent use.
type Redactor struct {
	known atomic.Pointer[table]
}

// New returns a Redactor of these secrets; see [Redactor.Learn].
func New(secrets ...string) *Redactor {
	r := new(Redactor)
	r.Learn(secrets...)
	return r
}

// Learn adds secrets, with the forms that they are written in. Those shorter than
// MinSecret are passed over.
func (r *Redactor) Learn(secrets ...string) {
	for {
		old := r.known.Load()
		var all []string
		if old != nil {
			all = slices.Clone(old.values)
		}
		for _, s := range secrets {
			all = append(all, forms(s)...)
		}
		if r.known.CompareAndSwap(old, newTable(all)) {
			return
		}
	}
}

// String returns text without the secrets: text itself if it holds none. Of a secret
// that a cut has shortened, what is left of it before the mark of the cut is hidden.
func (r *Redactor) String(text string) string {
	if r == nil || len(text) < MinSecret {
		return text
	}
	t := r.known.Load()
	if t == nil {
		return text
	}
	from, end := t.find(text, 0)
	if end == 0 {
		return text
	}
	var out strings.Builder
	rest := 0
	for end > 0 {
		out.WriteString(text[rest:from])
		out.WriteString(Hidden)
		rest = end
		from, end = t.find(text, rest)
	}
	out.WriteString(text[rest:])
	return out.String()
}

// Bytes is [Redactor.String] for bytes. It returns text itself if it holds no secret.
func (r *Redactor) Bytes(text []byte) []byte {
	if r == nil || r.known.Load() == nil {
		return text
	}
	before := string(text)
	if after := r.String(before); after != before {
		return []byte(after)
	}
	return text
}

// Words hides secrets, and what looks like one; see [Looks]. It is for what servers
// write.
func (r *Redactor) Words(text string) string { return Looks(r.String(text)) }

// A table holds secrets by their first bytes. It is read-only.
type table struct {
	values []string             // sorted, each once
	pairs  [1 << 16 / 64]uint64 // the first two bytes of any value
	starts map[[MinSecret]byte][]string
}

// newTable returns nil if there are no values.
func newTable(values []string) *table {
	values = slices.DeleteFunc(values, func(v string) bool { return len(v) < MinSecret })
	if len(values) == 0 {
		return nil
	}
	slices.Sort(values)
	t := &table{values: slices.Compact(values), starts: make(map[[MinSecret]byte][]string)}
	for _, v := range t.values {
		pair := binary.LittleEndian.Uint16([]byte(v[:2]))
		t.pairs[pair/64] |= 1 << (pair % 64)
		start := [MinSecret]byte([]byte(v[:MinSecret]))
		t.starts[start] = append(t.starts[start], v)
	}
	return t
}

// find returns the first stretch of text at or after from that is made of secrets,
// which may overlap; end is zero if there is none.
func (t *table) find(text string, from int) (at, end int) {
	for i := from; i+MinSecret <= len(text); i++ {
		if end > 0 && i >= end {
			break
		}
		pair := uint16(text[i]) | uint16(text[i+1])<<8
		if t.pairs[pair/64]&(1<<(pair%64)) == 0 {
			continue
		}
		if n := t.match(text[i:]); n > 0 {
			if end == 0 {
				at = i
			}
			end = max(end, i+n)
		}
	}
	return at, end
}

// match returns how many bytes at the beginning of text are a secret, or what a cut
// left of one.
func (t *table) match(text string) int {
	longest := 0
	for _, v := range t.starts[[MinSecret]byte([]byte(text[:MinSecret]))] {
		n := MinSecret
		for n < len(v) && n < len(text) && v[n] == text[n] {
			n++
		}
		if n == len(v) || strings.HasPrefix(text[n:], cutMark) {
			longest = max(longest, n)
		}
	}
	return longest
}
