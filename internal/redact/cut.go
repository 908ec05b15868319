package redact

import "unicode/utf8"

// Cut returns the first most bytes of text, whole characters of it, and the mark of a
// cut: [Redactor.String] knows that a secret may have stood there. A shorter text stays
// as it is.
func Cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most] + cutMark
}
