package policy

import "strings"

// A pattern is a text in which * stands for any text, including none. No other character is
// special, because resource URIs contain most of them.
type pattern struct {
	first, last string   // the text before the first star, and after the last
	middle      []string // the text between the stars
	star        bool     // without one, first is the whole pattern
}

func compile(text string) pattern {
	parts := strings.Split(text, "*")
	n := len(parts) - 1
	if n == 0 {
		return pattern{first: text}
	}
	return pattern{first: parts[0], middle: parts[1:n], last: parts[n], star: true}
}

func (p *pattern) match(s string) bool {
	if !p.star {
		return s == p.first
	}
	if len(s) < len(p.first)+len(p.last) || !strings.HasPrefix(s, p.first) || !strings.HasSuffix(s, p.last) {
		return false
	}
	s = s[len(p.first) : len(s)-len(p.last)]
	for _, part := range p.middle {
		i := strings.Index(s, part)
		if i < 0 {
			return false
		}
		s = s[i+len(part):]
	}
	return true
}

// Matches reports whether one of the patterns, of a rule that allows, matches a text.
func Matches(patterns []string, text string) bool { return anyMatch(compileAll(patterns), text) }

func anyMatch(patterns []pattern, s string) bool {
	for i := range patterns {
		if patterns[i].match(s) {
			return true
		}
	}
	return false
}
