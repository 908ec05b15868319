package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"strings"
)

// A Key is the name of a member as it was written, quotes and escapes included.
type Key []byte

// Is reports whether the key spells name. Names are case-sensitive.
func (k Key) Is(name string) bool {
	if len(k) <= len(name)+2 { // escapes only make a name longer
		return len(k) == len(name)+2 && string(k[1:len(k)-1]) == name && bytes.IndexByte(k, '\\') < 0
	}
	return bytes.IndexByte(k, '\\') >= 0 && k.String() == name
}

// String returns the name without quotes, its escapes resolved.
func (k Key) String() string { return Unquote(k) }

// Members iterates over the members of the object in text, in order, as they
// were written; over none if text is no object. The text must have passed
// [Check]. Keys and values alias it.
func Members(text []byte) iter.Seq2[Key, []byte] {
	return func(yield func(Key, []byte) bool) {
		i := skipSpace(text, 0)
		if i >= len(text) || text[i] != '{' {
			return
		}
		for i = skipSpace(text, i+1); i < len(text) && text[i] == '"'; {
			key := i
			i = skipString(text, i)
			name := Key(text[key:i])
			val := skipSpace(text, skipSpace(text, i)+1)
			i = skipValue(text, val)
			if !yield(name, text[val:i]) {
				return
			}
			if i = skipSpace(text, i); i < len(text) && text[i] == ',' {
				i = skipSpace(text, i+1)
			}
		}
	}
}

// Elements iterates over the elements of the array in text; over none if text is
// no array. The text must have passed [Check]. Elements alias it.
func Elements(text []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		i := skipSpace(text, 0)
		if i >= len(text) || text[i] != '[' {
			return
		}
		for i = skipSpace(text, i+1); i < len(text) && text[i] != ']'; {
			from := i
			i = skipValue(text, i)
			if !yield(text[from:i]) {
				return
			}
			if i = skipSpace(text, i); i < len(text) && text[i] == ',' {
				i = skipSpace(text, i+1)
			}
		}
	}
}

// Get returns the value of the first member called name of the object in text,
// or nil if there is none or text is no object. The text must have passed
// [Check].
func Get(text []byte, name string) []byte {
	for k, v := range Members(text) {
		if k.Is(name) {
			return v
		}
	}
	return nil
}

// GetString returns the string that Get finds, and whether there is one.
func GetString(text []byte, name string) (string, bool) {
	v := Get(text, name)
	if len(v) == 0 || v[0] != '"' {
		return "", false
	}
	return Unquote(v), true
}

// An Edit sets one member of an object, or removes it where Value is nil.
type Edit struct {
	Name  string
	Value []byte // JSON
}

// AppendEdited appends to dst the object in text with edits applied, and returns
// the extended slice. Members keep their order and their bytes; edits that set a
// member which is not there add it at the end, in the order given. The text must
// have passed [Check]; where it is empty or no object an empty object stands for
// it.
func AppendEdited(dst, text []byte, edits ...Edit) []byte {
	var doneBits uint64 // edits applied to a member that was there
	dst = append(dst, '{')
	for k, v := range Members(text) {
		if i := find(edits, k); i >= 0 {
			if edits[i].Value == nil || doneBits&(1<<i) != 0 {
				continue
			}
			doneBits |= 1 << i
			v = edits[i].Value
		}
		dst = append(append(dst, k...), ':')
		dst = append(append(dst, v...), ',')
	}
	for i, e := range edits {
		if e.Value != nil && doneBits&(1<<i) == 0 {
			dst = append(AppendString(dst, e.Name), ':')
			dst = append(append(dst, e.Value...), ',')
		}
	}
	return closeList(dst, '}')
}

func find(edits []Edit, k Key) int {
	for i := range edits {
		if k.Is(edits[i].Name) {
			return i
		}
	}
	return -1
}

// CheckUnique returns an error that names the first member name which stands
// twice in the object in text. Two parties that pick different ones of two
// members would disagree about what was asked. The text must have passed
// [Check].
func CheckUnique(text []byte) error {
	var all names
	for k := range Members(text) {
		if err := all.add(k); err != nil {
			return err
		}
	}
	return nil
}

// names are those of an object so far.
type names struct {
	n    int
	few  [8]Key
	many map[string]bool // nil while few has room
}

// add returns an error if k is there already.
func (s *names) add(k Key) error {
	if s.many != nil || s.n == len(s.few) {
		return s.addMany(k)
	}
	for _, n := range s.few[:s.n] {
		if bytes.Equal(n, k) || escaped(n, k) && n.String() == k.String() {
			return duplicate(k)
		}
	}
	s.few[s.n] = k
	s.n++
	return nil
}

func (s *names) addMany(k Key) error {
	if s.many == nil {
		s.many = make(map[string]bool)
		for _, n := range s.few {
			s.many[n.String()] = true
		}
	}
	name := k.String()
	if s.many[name] {
		return duplicate(k)
	}
	s.many[name] = true
	return nil
}

func escaped(a, b Key) bool {
	return bytes.IndexByte(a, '\\') >= 0 || bytes.IndexByte(b, '\\') >= 0
}

func duplicate(k Key) error { return fmt.Errorf("duplicate member %s", []byte(k)) }

// Unquote returns what the JSON string in text says, or "" if text is no string.
// The text must have passed [Check].
func Unquote(text []byte) string {
	if len(text) < 2 || text[0] != '"' {
		return ""
	}
	if bytes.IndexByte(text, '\\') < 0 {
		return string(text[1 : len(text)-1])
	}
	return unescape(bytes.Clone(text)) // a copy, or all texts that are looked into would be on the heap
}

func unescape(text []byte) string {
	var s string
	if json.Unmarshal(text, &s) != nil {
		return ""
	}
	return s
}

// AppendString appends s as a JSON string. What is not UTF-8 in s is replaced.
func AppendString(dst []byte, s string) []byte {
	if plain([]byte(s), 0) == len(s) {
		dst = append(append(dst, '"'), s...)
		return append(dst, '"')
	}
	return appendEscaped(dst, strings.Clone(s)) // a copy, as in Unquote
}

func appendEscaped(dst []byte, s string) []byte {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if enc.Encode(s) != nil { // a string always encodes
		return append(dst, `""`...)
	}
	return append(dst, bytes.TrimSuffix(buf.Bytes(), []byte("\n"))...)
}

// Quote returns s as a JSON string.
func Quote(s string) []byte { return AppendString(nil, s) }

// IsObject reports whether text, which has passed [Check], is an object.
func IsObject(text []byte) bool { return begins(text, '{') }

// IsArray reports whether text, which has passed [Check], is an array.
func IsArray(text []byte) bool { return begins(text, '[') }

// IsNull reports whether text, which has passed [Check], is null.
func IsNull(text []byte) bool { return begins(text, 'n') }

func begins(text []byte, b byte) bool {
	i := skipSpace(text, 0)
	return i < len(text) && text[i] == b
}

// skipValue returns the offset behind the value at i, in text that Check passed.
func skipValue(text []byte, i int) int {
	if i >= len(text) {
		return i
	}
	switch text[i] {
	case '"':
		return skipString(text, i)
	case '{', '[':
		return skipNested(text, i)
	}
	for i < len(text) {
		switch text[i] {
		case ',', '}', ']', ' ', '\n', '\r', '\t':
			return i
		}
		i++
	}
	return i
}

// skipNested counts brackets; those inside strings are stepped over.
func skipNested(text []byte, i int) int {
	for depth := 0; i < len(text); {
		switch text[i] {
		case '"':
			i = skipString(text, i)
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
		i++
	}
	return i
}

// skipString returns the offset behind the string whose opening quote is at open.
// From one place that needs a closer look to the next it takes the way of skim.
func skipString(text []byte, open int) int {
	for i := open + 1; i < len(text); {
		near := text[i:min(i+skimmed, len(text))]
		n := bytes.IndexByte(near, '"')
		if n < 0 {
			i += len(near)
		} else if i += n + 1; !isEscaped(text, open+1, i-1) {
			return i
		}
		if len(text)-i >= skimmed {
			i = skim(text, i)
		}
	}
	return len(text)
}
