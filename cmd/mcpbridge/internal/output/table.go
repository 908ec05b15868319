package output

import (
	"bytes"
	"io"
	"strings"
	"text/tabwriter"
)

// gap is the space between columns.
const gap = 2

// leastCell is what is left of a cell at least, in columns of the terminal.
const leastCell = 6

// A Table writes lines of cells that are ended by tabs, one below the other. At a terminal each
// line fits, and a head of capitals and what stands below STATE have colours; elsewhere all is as
// it was written. Nothing is written before Flush.
type Table struct {
	screen *Screen // nil for no terminal
	whole  bool    // cells are not cut
	text   bytes.Buffer
	plain  *tabwriter.Writer // for no terminal
}

// NewTable returns a table for w. With whole, cells are not cut.
func NewTable(w io.Writer, whole bool) *Table {
	return &Table{screen: ScreenOf(w), whole: whole, plain: tabwriter.NewWriter(w, 0, 8, gap, ' ', 0)}
}

// Write implements [io.Writer]. What others say in p is escaped, as by [Printf].
func (t *Table) Write(p []byte) (int, error) {
	if t.screen == nil {
		return t.plain.Write(p)
	}
	return t.text.Write(p)
}

// Flush writes the table.
func (t *Table) Flush() error {
	if t.screen == nil {
		return t.plain.Flush()
	}
	_, err := t.screen.write([]byte(t.screen.laidOut(t.text.String(), t.whole)))
	return err
}

// laidOut returns a text with tabs as lines of the terminal.
func (s *Screen) laidOut(text string, whole bool) string {
	p := painter{plain: s.plain}
	if !whole {
		p.columns = s.columns()
	}
	var out strings.Builder
	var block [][]string // of lines with cells, one after the other
	for line := range strings.Lines(EscapeBlock(text)) {
		line = strings.TrimSuffix(line, "\n")
		if strings.Contains(line, "\t") {
			block = append(block, strings.Split(line, "\t"))
			continue
		}
		p.block(&out, block)
		block = nil
		for _, part := range wrapped(line, p.columns) {
			out.WriteString(part + "\n")
		}
	}
	p.block(&out, block)
	return out.String()
}

// A painter writes for a terminal of so many columns; zero for any number.
type painter struct {
	columns int
	plain   bool
}

// block writes lines of cells.
func (p painter) block(out *strings.Builder, lines [][]string) {
	if len(lines) == 0 {
		return
	}
	widths, state := p.fitting(lines), -1
	head := isHead(lines[0])
	for i, cells := range lines {
		if i == 0 && head {
			state = indexOf(cells, "STATE")
		}
		var line strings.Builder
		for c, cell := range cells {
			cell = cut(cell, widths[c])
			style := ""
			switch {
			case i == 0 && head:
				style = faint
			case c == state:
				style = styleOf(cell)
			}
			pad := 0
			if c < len(cells)-1 {
				pad = widths[c] - widthOf(cell) + gap
			}
			line.WriteString(p.painted(cell, style) + strings.Repeat(" ", pad))
		}
		out.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
}

// fitting returns the widths of columns: what their cells need, less what the terminal has not.
func (p painter) fitting(lines [][]string) []int {
	var widths []int
	for _, cells := range lines {
		for c, cell := range cells {
			if c == len(widths) {
				widths = append(widths, 0)
			}
			widths[c] = max(widths[c], widthOf(cell))
		}
	}
	if p.columns == 0 {
		return widths
	}
	sum := gap * (len(widths) - 1)
	for _, w := range widths {
		sum += w
	}
	for sum > p.columns {
		widest := 0
		for c := range widths {
			if widths[c] > widths[widest] {
				widest = c
			}
		}
		if widths[widest] <= leastCell {
			break // there are too many columns
		}
		widths[widest]--
		sum--
	}
	return widths
}

// isHead reports whether cells are the head of a table.
func isHead(cells []string) bool {
	first, _, _ := strings.Cut(cells[0], " ")
	return first != "" && first == strings.ToUpper(first) && first != strings.ToLower(first)
}

func indexOf(cells []string, name string) int {
	for i, cell := range cells {
		if cell == name {
			return i
		}
	}
	return -1
}
