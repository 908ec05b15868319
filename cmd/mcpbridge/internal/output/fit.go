package output

import (
	"io"
	"slices"
	"strings"
	"unicode"
)

// Colours, as those of the log.
const (
	faint = "\x1b[2m"
	good  = "\x1b[92m"
	warns = "\x1b[93m"
	bad   = "\x1b[91m"
	reset = "\x1b[0m"
)

// styleOf returns the colour of a state.
func styleOf(state string) string {
	switch state {
	case "ready":
		return good
	case "down", "failed", "closed":
		return bad
	}
	return warns
}

func (p painter) painted(text, style string) string {
	if style == "" || p.plain || text == "" {
		return text
	}
	return style + text + reset
}

// For is [To] for a program with an environment: NO_COLOR, if it is not empty, and a terminal that
// can't, have no colours.
func For(w io.Writer, environ []string) io.Writer {
	w = To(w)
	if s, ok := w.(*Screen); ok {
		s.plain = s.plain || slices.ContainsFunc(environ, func(entry string) bool {
			return strings.HasPrefix(entry, "NO_COLOR=") && entry != "NO_COLOR=" || entry == "TERM=dumb"
		})
	}
	return w
}

// Entry writes a name of a list and the first line of a text about it, on a line that begins with
// indent. At a terminal it fits. With whole the whole text follows below the name.
func Entry(w io.Writer, indent, name, text string, whole bool) error {
	name, text = Escape(name), strings.TrimSpace(text)
	s := ScreenOf(w)
	if whole {
		_, err := Printf(w, "%s%s\n", Block(indent), name)
		if err == nil && text != "" {
			err = Paragraph(w, indent+"    ", text, true)
		}
		return err
	}
	first, _, _ := strings.Cut(text, "\n")
	first = Escape(first)
	if s == nil {
		_, err := io.WriteString(w, strings.TrimRight(indent+padded(name, nameWidth)+" "+first, " ")+"\n")
		return err
	}
	p := painter{s.columns(), s.plain}
	left := p.columns - len(indent) - max(widthOf(name), nameWidth) - 1
	line := indent + padded(name, nameWidth) + " " + p.painted(cut(first, left), faint)
	if left < leastCell || first == "" { // a name is typed again, and never cut
		line = indent + name
	}
	_, err := s.write([]byte(line + "\n"))
	return err
}

// nameWidth is how much space names have in a list.
const nameWidth = 24

// padded is text with spaces up to a number of characters, as fmt pads.
func padded(text string, n int) string {
	return text + strings.Repeat(" ", max(n-len([]rune(text)), 0))
}

// Paragraph writes a text with an indent. With whole, each of its lines begins so, and those that
// a terminal has not the space for go on in the next; else it is one line, which fits.
func Paragraph(w io.Writer, indent, text string, whole bool) error {
	s, columns := ScreenOf(w), 0
	if s != nil {
		columns = max(s.columns()-len(indent), leastCell)
	}
	lines := []string{Escape(text)}
	switch {
	case whole:
		lines = nil
		for line := range strings.Lines(text) {
			lines = append(lines, wrapped(Escape(strings.TrimRight(line, "\r\n")), columns)...)
		}
	case s != nil:
		lines[0] = cut(lines[0], columns)
	}
	for _, line := range lines {
		if _, err := io.WriteString(w, strings.TrimRight(indent+line, " ")+"\n"); err != nil {
			return err
		}
	}
	return nil
}

// wrapped divides a line at spaces where it would not fit; columns is zero for any width.
func wrapped(line string, columns int) (parts []string) {
	if columns == 0 || widthOf(line) <= columns {
		return []string{line}
	}
	part := ""
	for i, word := range strings.Split(line, " ") {
		switch {
		case i == 0:
			part = word
		case widthOf(part)+1+widthOf(word) <= columns:
			part += " " + word
		default:
			parts, part = append(parts, part), word
		}
	}
	return append(parts, part)
}

// cut returns text within a number of columns. Of a URL the end says more than the middle.
func cut(text string, columns int) string {
	if columns <= 0 || widthOf(text) <= columns {
		return text
	}
	tail := ""
	if strings.Contains(text, "://") && columns > 3*leastCell {
		runes := []rune(text)
		for i := len(runes) - 1; widthOf(tail)+widthOfRune(runes[i]) <= columns/2; i-- {
			tail = string(runes[i]) + tail
		}
	}
	var head strings.Builder
	left := columns - 1 - widthOf(tail)
	for _, r := range text {
		if left -= widthOfRune(r); left < 0 {
			break
		}
		head.WriteRune(r)
	}
	return head.String() + "…" + tail
}

func widthOf(text string) (n int) {
	for _, r := range text {
		n += widthOfRune(r)
	}
	return n
}

// wide are the characters that take two columns: those of East Asia, and emoji.
var wide = &unicode.RangeTable{
	R16: []unicode.Range16{{Lo: 0x1100, Hi: 0x115f, Stride: 1}, {Lo: 0x2e80, Hi: 0x303e, Stride: 1}, {Lo: 0x3041, Hi: 0xa4cf, Stride: 1}, {Lo: 0xac00, Hi: 0xd7a3, Stride: 1}, {Lo: 0xf900, Hi: 0xfaff, Stride: 1}, {Lo: 0xfe30, Hi: 0xfe6f, Stride: 1}, {Lo: 0xff00, Hi: 0xff60, Stride: 1}, {Lo: 0xffe0, Hi: 0xffe6, Stride: 1}},
	R32: []unicode.Range32{{Lo: 0x1f300, Hi: 0x1faff, Stride: 1}, {Lo: 0x20000, Hi: 0x3fffd, Stride: 1}},
}

// widthOfRune returns how many columns a character takes.
func widthOfRune(r rune) int {
	switch {
	case r < 0x300:
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	case unicode.Is(wide, r):
		return 2
	}
	return 1
}
