package output

import (
	"encoding/json"
	"io"
	"os"
	"strings"
	"unicode"

	"golang.org/x/term"
)

// Printable replaces what could steer a terminal. What servers say is theirs,
// and must not move the cursor, rename the window or hide a line (CWE-150).
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && !unicode.IsPrint(r) {
			return unicode.ReplacementChar
		}
		return r
	}, s)
}

// OneLine keeps a text on its row of a table.
func OneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || r == '\v' || r == '\f' {
			return ' '
		}
		return r
	}, text)
}

// Join writes words one after the other.
func Join[T ~string](words []T) string {
	texts := make([]string, len(words))
	for i, w := range words {
		texts[i] = string(w)
	}
	return strings.Join(texts, ", ")
}

// JSON writes v as people pipe it: indented, one value.
func JSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// IsTerminal reports whether a person reads or writes at w.
func IsTerminal(w io.Writer) bool {
	if _, ok := w.(*Screen); ok {
		return true
	}
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
