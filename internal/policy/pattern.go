package policy

import "strings"

// A pattern is a text in which * stands for any text, the empty one included. No other
// character is special: resource URIs contain most of them.
type pattern struct {
	parts []string // the text between the stars; never empty
}

func compile(text string) pattern { return pattern{strings.Split(text, "*")} }

func (p pattern) match(s string) bool {
	first, rest := p.parts[0], p.parts[1:]
	if len(rest) == 0 {
		return s == first
	}
	if !strings.HasPrefix(s, first) {
		return false
	}
	s = s[len(first):]
	for _, part := range rest[:len(rest)-1] {
		i := strings.Index(s, part)
		if i < 0 {
			return false
		}
		s = s[i+len(part):]
	}
	return strings.HasSuffix(s, rest[len(rest)-1])
}

// Matches reports whether one of the patterns of a rule that allows matches a text.
func Matches(patterns []string, text string) bool { return anyMatch(compileAll(patterns), text) }

func anyMatch(patterns []pattern, s string) bool {
	for _, p := range patterns {
		if p.match(s) {
			return true
		}
	}
	return false
}
