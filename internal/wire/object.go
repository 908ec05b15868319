package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
)

// A Key is the name of a member as it was written, with its quotes and escapes.
type Key []byte

// Is reports whether the key means name. Names are case-sensitive.
func (k Key) Is(name string) bool {
	if len(k) <= len(name)+2 { // escapes only make a name longer
		return len(k) == len(name)+2 && string(k[1:len(k)-1]) == name && bytes.IndexByte(k, '\\') < 0
	}
	return bytes.IndexByte(k, '\\') >= 0 && k.String() == name
}

// String returns the name without quotes and escapes.
func (k Key) String() string { return Unquote(k) }

// Members iterates over the members of the object in text, in order and as written. There
// are none if text is not an object. The text must have passed [Check]. Keys and values
// alias it.
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

// Elements iterates over the elements of the array in text. There are none if text is not
// an array. The text must have passed [Check]. Elements alias it.
func Elements(text []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for e, rest := CutElement(text); e != nil; e, rest = CutElement(rest) {
			if !yield(e) {
				return
			}
		}
	}
}

// CutElement returns the first element of the array in text, nil if there is none, and the rest, from
// which the next one is cut. The rest is nil behind the last element. The text must have passed
// [Check], and both alias it.
func CutElement(text []byte) (element, rest []byte) {
	i := skipSpace(text, 0)
	if i >= len(text) || text[i] != '[' && text[i] != ',' { // a rest begins with its comma
		return nil, nil
	}
	from := skipSpace(text, i+1)
	if from >= len(text) || text[from] == ']' {
		return nil, nil
	}
	i = skipValue(text, from)
	element = text[from:i]
	if i = skipSpace(text, i); i < len(text) && text[i] == ',' {
		rest = text[i:]
	}
	return element, rest
}

// Get returns the value of the first member called name of the object in text, or nil if
// there is none or text is not an object. The text must have passed [Check].
func Get(text []byte, name string) []byte {
	for k, v := range Members(text) {
		if k.Is(name) {
			return v
		}
	}
	return nil
}

// HasAny reports whether an object has a member of one of the names. The text must have passed [Check].
func HasAny(text []byte, names ...string) bool {
	for k := range Members(text) {
		if slices.ContainsFunc(names, k.Is) {
			return true
		}
	}
	return false
}

// GetSeldom is [Get] for a name that few texts have. It is faster where text lacks it.
func GetSeldom(text []byte, name string) []byte {
	part := name[max(strings.LastIndexByte(name, '/'), 0):]                     // what stands before a slash is that of many names
	if !bytes.Contains(text, []byte(part)) && bytes.IndexByte(text, '\\') < 0 { // no name has an escape
		return nil
	}
	return Get(text, name)
}

// GetString returns the string that Get finds, and whether there is one.
func GetString(text []byte, name string) (string, bool) {
	v := Get(text, name)
	if len(v) == 0 || v[0] != '"' {
		return "", false
	}
	return Unquote(v), true
}

// Says reports whether text is the JSON string that says s. It makes no copy.
func Says(text []byte, s string) bool {
	return len(text) > 0 && text[0] == '"' && Key(text).Is(s)
}

// An Edit sets one member of an object, or removes it if Value is nil.
type Edit struct {
	Name  string
	Value []byte // JSON
}

// Without returns the object in text without the members of the names. It is nil if nothing is left, or
// text is no object. The text must have passed [Check].
func Without(text []byte, names ...string) []byte {
	edits := make([]Edit, len(names))
	for i, name := range names {
		edits[i].Name = name
	}
	if out := AppendEdited(nil, text, edits...); string(out) != "{}" {
		return out
	}
	return nil
}

// EditedIn returns the object in text with edits applied to its member of a name, an object as well, as
// by [AppendEdited].
func EditedIn(text []byte, name string, edits ...Edit) []byte {
	return AppendEdited(nil, text, Edit{name, AppendEdited(nil, Get(text, name), edits...)})
}

// AppendEdited appends to dst the object in text with edits applied, and returns the
// extended slice. Members keep their order and their bytes. An edit of a missing member
// adds it at the end, in the order given. The text must have passed [Check]. A text that
// is empty or not an object counts as an empty object.
func AppendEdited(dst, text []byte, edits ...Edit) []byte {
	var doneBits uint64 // edits applied to an existing member
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

// ReplacePart returns text with another text in the place of part, which aliases it.
func ReplacePart(text, part, by []byte) []byte {
	at := cap(text) - cap(part)
	return append(append(append(make([]byte, 0, len(text)+len(by)-len(part)), text[:at]...), by...), text[at+len(part):]...)
}

// AppendReplaced is [AppendEdited] that keeps all other bytes, also the white space between
// members. It removes no members: each edit has a Value.
func AppendReplaced(dst, text []byte, edits ...Edit) []byte {
	if !IsObject(text) {
		return AppendEdited(dst, nil, edits...)
	}
	var doneBits uint64
	from, members := 0, false
	for k, v := range Members(text) {
		members = true
		if i := find(edits, k); i >= 0 {
			doneBits |= 1 << i
			at := cap(text) - cap(v) // v aliases text
			dst = append(append(dst, text[from:at]...), edits[i].Value...)
			from = at + len(v)
		}
	}
	end := bytes.LastIndexByte(text, '}')
	dst = append(dst, text[from:end]...)
	for i, e := range edits {
		if doneBits&(1<<i) != 0 {
			continue
		}
		if members {
			dst = append(dst, ',')
		}
		members = true
		dst = append(append(AppendString(dst, e.Name), ':'), e.Value...)
	}
	return append(dst, text[end:]...)
}

func find(edits []Edit, k Key) int {
	for i := range edits {
		if k.Is(edits[i].Name) {
			return i
		}
	}
	return -1
}

// CheckUnique returns an error that names the first duplicate member name of the object
// in text. Of two members with one name, two programs may use different ones and so
// disagree about the request. The text must have passed [Check].
func CheckUnique(text []byte) error {
	var all names
	for k := range Members(text) {
		if err := all.add(k); err != nil {
			return err
		}
	}
	return nil
}

// names holds the member names of an object read so far.
type names struct {
	n       int
	few     [8]Key
	escaped bool            // one of few has an escape
	many    map[string]bool // nil while few suffices
}

// add returns an error if k is a duplicate.
func (s *names) add(k Key) error {
	if s.many != nil || s.n == len(s.few) {
		return s.addMany(k)
	}
	s.escaped = s.escaped || bytes.IndexByte(k, '\\') >= 0
	for _, n := range s.few[:s.n] {
		if bytes.Equal(n, k) || s.escaped && n.String() == k.String() {
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

func duplicate(k Key) error { return fmt.Errorf("duplicate member %s", []byte(k)) }

// Unquote returns the value of the JSON string in text, or "" if text is not a string.
// The text must have passed [Check].
func Unquote(text []byte) string {
	if len(text) < 2 || text[0] != '"' {
		return ""
	}
	if bytes.IndexByte(text, '\\') < 0 {
		return string(text[1 : len(text)-1])
	}
	return unescape(bytes.Clone(text)) // a copy, so that text does not escape to the heap
}

// Strings returns the elements of the array in text that are strings and not empty. There
// are none if text is not an array. The text must have passed [Check].
func Strings(text []byte) []string {
	var found []string
	for e := range Elements(text) {
		if s := Unquote(e); s != "" {
			found = append(found, s)
		}
	}
	return found
}

func unescape(text []byte) string {
	var s string
	if json.Unmarshal(text, &s) != nil {
		return ""
	}
	return s
}

// AppendString appends s as a JSON string. It replaces invalid UTF-8 in s.
func AppendString(dst []byte, s string) []byte {
	if skipPlain([]byte(s), 0) == len(s) {
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
func Quote(s string) []byte { return AppendString(make([]byte, 0, len(s)+len(`""`)), s) }

// IsObject reports whether text, which has passed [Check], is an object.
func IsObject(text []byte) bool { return begins(text, '{') }

// IsEmptyObject reports whether text, which has passed [Check], is an object without members.
func IsEmptyObject(text []byte) bool {
	for range Members(text) {
		return false
	}
	return IsObject(text)
}

// IsArray reports whether text, which has passed [Check], is an array.
func IsArray(text []byte) bool { return begins(text, '[') }

// IsNull reports whether text, which has passed [Check], is null.
func IsNull(text []byte) bool { return begins(text, 'n') }

func begins(text []byte, b byte) bool {
	i := skipSpace(text, 0)
	return i < len(text) && text[i] == b
}

// skipValue returns the offset after the value at i, in text that has passed Check.
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

// skipNested returns the offset after the object or array at i. It counts brackets
// outside strings.
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

// skipString returns the offset after the string whose opening quote is at open.
// skipToQuote takes it past long stretches without the end.
func skipString(text []byte, open int) int {
	for i := open + 1; i < len(text); {
		near := text[i:min(i+stride, len(text))]
		n := bytes.IndexByte(near, '"')
		if n < 0 {
			i += len(near)
		} else if i += n + 1; !isEscaped(text, open+1, i-1) {
			return i
		}
		if len(text)-i >= stride {
			i = skipToQuote(text, i)
		}
	}
	return len(text)
}
