package output

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"

	"golang.org/x/term"
)

// defaultColumns is how wide a terminal is taken to be that doesn't say.
const defaultColumns = 80

// A Screen is a person's terminal. What is written to it scrolls; a status of some lines
// stays below that and is kept up to date. It is safe for concurrent use.
type Screen struct {
	w       io.Writer
	columns func() int // people resize their terminals
	plain   bool       // without colours; set before it is used

	// mu guards status and is held while the terminal is written to: a log line must
	// not come between the erasing of the status and its drawing.
	mu     sync.Mutex
	status []string // as it was asked for
	drawn  int      // its lines on the terminal
}

// NewScreen returns the screen of a terminal, which has so many columns.
func NewScreen(w io.Writer, columns func() int) *Screen { return &Screen{w: w, columns: columns} }

// ScreenOf returns the screen that w is, or nil if w is no terminal.
func ScreenOf(w io.Writer) *Screen {
	if s, ok := w.(*Screen); ok {
		return s
	}
	if !IsTerminal(w) {
		return nil
	}
	f := w.(*os.File)
	return NewScreen(f, func() int {
		columns, _, err := term.GetSize(int(f.Fd()))
		if err != nil || columns <= 0 {
			return defaultColumns
		}
		return columns
	})
}

// Write writes whole lines above the status. Nothing in them can steer the terminal.
func (s *Screen) Write(p []byte) (int, error) {
	text := p
	if safe := EscapeBlock(string(p)); len(safe) != len(p) {
		text = []byte(safe)
	}
	if _, err := s.write(text); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (s *Screen) write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.w.Write(s.redrawn(p)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Page clears the terminal that w is, and writes a text of several lines, of which those with tabs
// are laid out as by a [Table].
func Page(w io.Writer, text string, whole bool) error {
	const clear = "\x1b[H\x1b[J" // the cursor to the beginning, and what follows is cleared
	if s := ScreenOf(w); s != nil {
		_, err := s.write([]byte(clear + s.laidOut(text, whole)))
		return err
	}
	var b bytes.Buffer
	t := NewTable(&b, whole)
	_, _ = io.WriteString(t, EscapeBlock(text)) // into memory
	_ = t.Flush()
	_, err := io.WriteString(w, clear+b.String())
	return err
}

// A colored is a screen for lines of tint, of which the colors are the program's own, and
// all else is escaped: a backslash before an escape is what tint has made of the text `\x1b`
// within quotes.
type colored struct{ screen *Screen }

// Write implements [io.Writer].
func (c colored) Write(p []byte) (int, error) {
	_, err := c.screen.write(bytes.ReplaceAll(p, []byte("\\\x1b"), []byte(`\x1b`)))
	return len(p), err
}

// Show replaces the status; none removes it.
func (s *Screen) Show(status []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.Equal(status, s.status) {
		return
	}
	s.status = status
	_, _ = s.w.Write(s.redrawn(nil)) // it is a courtesy
}

// redrawn returns what erases the status, writes p and draws the status anew. A line
// that the terminal would wrap is cut: its rows have to be known to be erased.
func (s *Screen) redrawn(p []byte) []byte {
	var b bytes.Buffer
	if s.drawn > 0 {
		fmt.Fprintf(&b, "\r\x1b[%dA\x1b[J", s.drawn)
	}
	b.Write(p)
	for _, line := range s.status {
		line = Escape(line)
		b.WriteString(strings.ToValidUTF8(line[:min(len(line), max(s.columns()-1, 0))], ""))
		b.WriteByte('\n')
	}
	s.drawn = len(s.status)
	return b.Bytes()
}
