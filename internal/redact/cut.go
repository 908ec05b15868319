package redact

import "unicode/utf8"

// Cut shortens text to at most most bytes, without splitting a character, and appends a
// mark. From the mark, [Redactor.String] knows that part of a secret may precede it. Cut
// returns a shorter text unchanged.
func Cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most] + cutMark
}
