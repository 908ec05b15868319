package names

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// What the names of a group of servers are made of.
const (
	// Divider stands between the prefix of a member, which does not have it, and an own name.
	Divider = "__"
	// MaxPrefix bounds prefixes, in bytes.
	MaxPrefix = 24
	// HashLen is the length of what a name ends in that is not shown as it is: an underscore
	// and 16 hexadecimal digits.
	HashLen = 1 + 16
)

// Prefix returns the prefix of a server that has none in its configuration: its name, made fit
// for what all clients take.
func Prefix(server string) string {
	p := Fit(server)
	for strings.Contains(p, Divider) {
		p = strings.ReplaceAll(p, Divider, "_")
	}
	return strings.TrimRight(p[:min(len(p), MaxPrefix)], "_")
}

// IsPrefix reports whether a text can be the prefix of a server: letters, digits, - and single _,
// not at the end, at most MaxPrefix.
func IsPrefix(text string) bool { return text != "" && Prefix(text) == text }

// LeastMax returns the length of the longest name that a group must allow for a prefix, so that
// names with a hash fit.
func LeastMax(prefix string) int { return len(prefix) + len(Divider) + HashLen }

// Prefixes are those of the members of a group, by their places: each [IsPrefix].
type Prefixes struct {
	all    []string
	begins [256][]int // places by the first byte
}

// Add adds the prefix of the next member.
func (p *Prefixes) Add(prefix string) {
	p.begins[prefix[0]] = append(p.begins[prefix[0]], len(p.all))
	p.all = append(p.all, prefix)
}

// PlaceIn returns the place of the member with whose prefix a name begins; -1 if there is none.
func PlaceIn[T string | []byte](p *Prefixes, name T) int {
	if len(name) == 0 {
		return -1
	}
	for _, i := range p.begins[name[0]] {
		at := len(p.all[i])
		if len(name) >= at+len(Divider) && string(name[:at]) == p.all[i] && string(name[at:at+len(Divider)]) == Divider {
			return i // a prefix neither has a divider, nor ends in a part of one
		}
	}
	return -1
}

// PlainIn returns the place of the member with whose prefix a shown name begins, -1 if there is none,
// and the member's own name, and whether that is shown as it is; see [IsPlain].
func PlainIn[T string | []byte](p *Prefixes, shown T, max int) (place int, own T, plain bool) {
	place = PlaceIn(p, shown)
	if place < 0 {
		return place, own, false
	}
	own = shown[len(p.all[place])+len(Divider):]
	return place, own, IsPlain(p.all[place], own, max)
}

// InGroup returns the name by which clients of a group see what a member calls own: of at most max
// bytes, and the same wherever and whenever it is asked for. plain says that the whole own name
// follows the prefix; otherwise it ends in a digest.
func InGroup(server, prefix, own string, max int) (shown string, plain bool) {
	if IsPlain(prefix, own, max) {
		return prefix + Divider + own, true
	}
	digest := sha256.Sum256([]byte(server + "\x00" + own)) // no server's name has a zero
	cut := Fit(own)
	cut = cut[:min(len(cut), max-LeastMax(prefix))]
	return prefix + Divider + cut + "_" + hex.EncodeToString(digest[:8]), false
}

// IsPlain reports whether an own name is shown as it is, after the prefix, in a name of at most max
// bytes.
func IsPlain[T string | []byte](prefix string, own T, max int) bool {
	if len(prefix)+len(Divider)+len(own) > max || EndsInHash(own) {
		return false
	}
	for i := range len(own) {
		if !IsFit(own[i]) {
			return false
		}
	}
	return true
}

// EndsInHash reports whether a name that ends in an own name ends as one with a hash does: the
// divider before it has an underscore, too.
func EndsInHash[T string | []byte](own T) bool {
	at := len(own) - HashLen
	if at < -1 || at >= 0 && own[at] != '_' {
		return false
	}
	for _, c := range []byte(own[at+1:]) {
		if !('0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F') {
			return false
		}
	}
	return true
}

// Fit returns a name with a dash for each character that not all clients take.
func Fit(name string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x80 && IsFit(byte(r)) {
			return r
		}
		return '-'
	}, name)
}

// IsFit reports whether all clients take a character in a name.
func IsFit(c byte) bool { return fit[c] }

var fit = func() (is [256]bool) {
	for c := range is {
		is[c] = 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '-'
	}
	return is
}()
