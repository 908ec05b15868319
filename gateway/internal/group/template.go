package group

import "strings"

// matches reports whether a URI may be one of a URI template. It may be wrong where expressions
// follow each other, since it only orders who is asked.
//
// Spec: RFC 6570, 1.4 and 3.
func matches(template, uri string) bool {
	rest := uri
	wide, gap := false, false // what the expressions before a literal may be: anything, or no slash; and whether there are any
	for template != "" {
		literal, expression, isExpression := strings.Cut(template, "{")
		at := 0
		switch {
		case !gap:
			if !strings.HasPrefix(rest, literal) {
				return false
			}
		case literal == "":
			at = 0
		case !isExpression: // the last one
			if at = len(rest) - len(literal); at < 0 || rest[at:] != literal {
				return false
			}
		default:
			if at = strings.Index(rest, literal); at < 0 {
				return false
			}
		}
		if gap && literal != "" {
			if !wide && !isSegment(rest[:at]) {
				return false
			}
			wide, gap = false, false
		}
		rest = rest[at+len(literal):]
		if !isExpression {
			return !gap && rest == "" || gap && (wide || isSegment(rest))
		}
		expression, template, _ = strings.Cut(expression, "}")
		wide = wide || expression == "" || strings.ContainsRune("+#./;?&", rune(expression[0])) || strings.HasSuffix(expression, "*")
		gap = true
	}
	return gap && (wide || isSegment(rest)) || !gap && rest == ""
}

// isSegment reports whether text may stand for a simple expression, which has no slashes.
func isSegment(text string) bool { return text != "" && !strings.Contains(text, "/") }
