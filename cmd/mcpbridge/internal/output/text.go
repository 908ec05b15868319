package output

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"
)

// A Block is a text of several lines: [Printf] keeps its newlines and tabs.
type Block string

// Printf writes a text for people. What the format has stays as it is; the arguments are
// the words of others, and are escaped, each on one line but for a [Block].
func Printf(w io.Writer, format string, args ...any) (int, error) {
	return io.WriteString(w, Sprintf(format, args...))
}

// Sprintf returns what [Printf] writes.
func Sprintf(format string, args ...any) string {
	safe := make([]any, len(args))
	for i, a := range args {
		safe[i] = word{a}
	}
	return fmt.Sprintf(format, safe...)
}

// A word is an argument that is formatted as it would be, and escaped then.
type word struct{ value any }

// Format implements [fmt.Formatter].
func (a word) Format(f fmt.State, verb rune) {
	text := fmt.Sprintf(fmt.FormatString(f, verb), a.value)
	if _, ok := a.value.(Block); ok {
		text = EscapeBlock(text)
	} else {
		text = Escape(text)
	}
	_, _ = io.WriteString(f, text) // into memory
}

// Escape makes a text fit for one line of a terminal: what could steer the terminal, hide
// or reorder the text or end the line is shown as in Go, `\x1b` (CWE-150).
func Escape(text string) string { return escape(text, "") }

// EscapeBlock is Escape for a text of several lines: newlines and tabs stay.
func EscapeBlock(text string) string { return escape(text, "\n\t") }

func escape(text, keep string) string {
	i := steering(text, keep)
	if i < 0 {
		return text
	}
	var b strings.Builder
	for ; i >= 0; i = steering(text, keep) {
		r, size := utf8.DecodeRuneInString(text[i:])
		b.WriteString(text[:i])
		switch {
		case r < ' ' || r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, text[i])
		default: // as JSON has it, too: a value stays the same
			fmt.Fprintf(&b, `\u%04x`, r)
		}
		text = text[i+size:]
	}
	b.WriteString(text)
	return b.String()
}

// steering returns where the first character is that has to be escaped; -1 if none has.
func steering(text, keep string) int {
	for i := 0; i < len(text); {
		if c := text[i]; c < utf8.RuneSelf {
			if c < ' ' && strings.IndexByte(keep, c) < 0 || c == 0x7f {
				return i
			}
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(text[i:])
		if r == utf8.RuneError && size == 1 || steers(r) {
			return i
		}
		i += size
	}
	return -1
}

// steers reports whether a character beyond ASCII is a control, a separator of lines, or
// changes the direction or can't be seen. What joins letters and emoji is none.
func steers(r rune) bool {
	const nonJoiner, joiner = '\u200c', '\u200d'
	return r <= 0xffff && r != nonJoiner && r != joiner && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
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

// JSONLine writes v on a line.
func JSONLine(w io.Writer, v any) error { return json.NewEncoder(w).Encode(v) }

// Bytes writes what is wanted as it is: a result, a file. Only a [Screen] escapes what
// could steer it.
func Bytes(w io.Writer, text []byte) error {
	_, err := w.Write(text)
	return err
}

// Line is Bytes with a newline.
func Line[T ~string | ~[]byte](w io.Writer, text T) error {
	return Bytes(w, append([]byte(text), '\n'))
}

// IsTerminal reports whether a person reads or writes at w.
func IsTerminal(w io.Writer) bool {
	if _, ok := w.(*Screen); ok {
		return true
	}
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// File returns the file that w is, or whose terminal it is.
func File(w io.Writer) (*os.File, bool) {
	if s, ok := w.(*Screen); ok {
		w = s.w
	}
	f, ok := w.(*os.File)
	return f, ok
}

// To returns where a program writes to w: the screen, if it is a terminal, which nothing
// that is written can steer.
func To(w io.Writer) io.Writer {
	if s := ScreenOf(w); s != nil {
		return s
	}
	return w
}
