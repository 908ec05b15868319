package names

import "strings"

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
func IsFit(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '-'
}
