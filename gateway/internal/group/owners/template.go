package owners

import "strings"

// matches reports whether a URI may be one of a URI template. It may be wrong where expressions
// follow each other, since it only orders who is asked.
//
// Spec: RFC 6570, 1.4 and 3.
func matches(template, uri string) bool {
	literal, template, more := strings.Cut(template, "{")
	rest, ok := strings.CutPrefix(uri, literal)
	wide := false // what the expressions before a literal stand for may be anything
	for ok && more {
		var expression, value string
		expression, template, _ = strings.Cut(template, "}")
		wide = wide || isWide(expression)
		if literal, template, more = strings.Cut(template, "{"); literal == "" && more {
			continue
		}
		value, rest, ok = upTo(rest, literal, !more)
		ok = ok && (wide || isSegment(value))
		wide = false
	}
	return ok && rest == ""
}

// upTo divides text at a literal: at the first one, or else at the one that ends it.
func upTo(text, literal string, last bool) (before, after string, ok bool) {
	if last {
		before, ok = strings.CutSuffix(text, literal)
		return before, "", ok
	}
	return strings.Cut(text, literal)
}

// isWide reports whether an expression may stand for any text.
func isWide(expression string) bool {
	return expression == "" || strings.ContainsRune("+#./;?&", rune(expression[0])) || strings.HasSuffix(expression, "*")
}

// isSegment reports whether text may stand for a simple expression, which has no slashes.
func isSegment(text string) bool { return text != "" && !strings.Contains(text, "/") }
