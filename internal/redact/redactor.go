package redact

import (
	"encoding/binary"
	"slices"
	"strings"
	"sync/atomic"
)

const (
	// Hidden replaces a secret.
	Hidden = "[hidden]"
	// MinSecret is the minimum length of a secret, in bytes. Shorter ones would match
	// parts of ordinary words.
	MinSecret = 6

	// cutMark is the end of a text that Cut has shortened, possibly within a secret.
	cutMark = "…"
)

// A Redactor hides secrets in text. The zero value and nil have no secrets. It is safe
// for concurrent use.
type Redactor struct {
	known  atomic.Pointer[table] // what Learn has learned
	tokens tokens                // what Replace has
}

// New returns a Redactor for the secrets; see [Redactor.Learn].
func New(secrets ...string) *Redactor {
	r := new(Redactor)
	r.Learn(secrets...)
	return r
}

// Learn adds secrets and the forms in which they may appear. It ignores secrets shorter
// than MinSecret.
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

// String returns text with secrets replaced by Hidden, or text itself if it has none. It
// also hides the beginning of a secret before the mark of [Cut].
func (r *Redactor) String(text string) string {
	if r == nil || len(text) < MinSecret {
		return text
	}
	t := tables{r.known.Load(), r.tokens.known.Load()}
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

// Bytes is [Redactor.String] for bytes. It returns text itself if it has no secret.
func (r *Redactor) Bytes(text []byte) []byte {
	if r == nil || r.known.Load() == nil && r.tokens.known.Load() == nil {
		return text
	}
	before := string(text)
	if after := r.String(before); after != before {
		return []byte(after)
	}
	return text
}

// Words hides secrets and what looks like one; see [Looks]. It is for texts from servers.
func (r *Redactor) Words(text string) string { return Looks(r.String(text)) }

// A table has the secrets by their first bytes. It is read-only.
type table struct {
	values []string             // sorted, each once
	pairs  [1 << 16 / 64]uint64 // the first two bytes of any value
	starts map[[MinSecret]byte][]string
	below  *table // has further values, whose pairs are in this one, too; nil for none
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
		t.add(v)
	}
	return t
}

// add has a value found. It belongs to making a table.
func (t *table) add(v string) {
	pair := binary.LittleEndian.Uint16([]byte(v[:2]))
	t.pairs[pair/64] |= 1 << (pair % 64)
	start := [MinSecret]byte([]byte(v[:MinSecret]))
	t.starts[start] = append(t.starts[start], v)
}

// tables are those in which a text is looked for; nil ones are empty.
type tables [2]*table

// find returns the first range of text from from on that consists of secrets, which may
// overlap. end is zero if there is none.
func (t *tables) find(text string, from int) (at, end int) {
	if t[0] == nil && t[1] == nil {
		return 0, 0
	}
	first, second := t[0].begins(), t[1].begins()
	for i := from; i+MinSecret <= len(text); i++ {
		if end > 0 && i >= end {
			break
		}
		pair := uint16(text[i]) | uint16(text[i+1])<<8
		if (first[pair/64]|second[pair/64])&(1<<(pair%64)) == 0 {
			continue
		}
		if n := max(t[0].match(text[i:]), t[1].match(text[i:])); n > 0 {
			if end == 0 {
				at = i
			}
			end = max(end, i+n)
		}
	}
	return at, end
}

// begins returns the first two bytes of all values.
func (t *table) begins() *[1 << 16 / 64]uint64 {
	if t == nil {
		return &none
	}
	return &t.pairs
}

var none [1 << 16 / 64]uint64 // read-only

// match returns the length of the secret, or of the beginning of a cut secret, with which
// text begins; zero for none.
func (t *table) match(text string) int {
	longest := 0
	for ; t != nil; t = t.below {
		for _, v := range t.starts[[MinSecret]byte([]byte(text[:MinSecret]))] {
			n := MinSecret
			for n < len(v) && n < len(text) && v[n] == text[n] {
				n++
			}
			if n == len(v) || strings.HasPrefix(text[n:], cutMark) {
				longest = max(longest, n)
			}
		}
	}
	return longest
}
