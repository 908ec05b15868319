package install

import (
	"bytes"
	"fmt"
	"io"

	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/output"
	"github.com/mcpbridge/mcpbridge/internal/hostfile"
)

// contextLines is how many lines a diff has around what is changed.
const contextLines = 3

// Preview tells the user what would be done: a diff on out, which has no secrets, and the servers
// on about.
func (c *Change) Preview(out, about io.Writer, host *hostfile.Host, f *File, path string) error {
	what := "would be changed"
	if !c.changed {
		what = "nothing would be changed"
	}
	if err := output.Bytes(out, diff(path, host.Masked(f.data), host.Masked(c.Data))); err != nil {
		return err
	}
	if err := c.moved.preview(out, host); err != nil {
		return err
	}
	return c.Report(about, path, what)
}

// diff returns the unified diff of two texts of a file; nothing if they are the same.
func diff(path string, before, after []byte) []byte { return diffOf(path, path, before, after) }

// diffOf is diff for a file that was called otherwise before.
func diffOf(from, path string, before, after []byte) []byte {
	d := &differ{a: hostfile.Lines(before), b: hostfile.Lines(after)}
	at := hostfile.Run{} // what was looked at
	for _, r := range append(hostfile.Common(d.a, d.b), hostfile.Run{A: len(d.a), B: len(d.b)}) {
		if r.A > at.A || r.B > at.B {
			d.change(at, r)
		}
		at = hostfile.Run{A: r.A + r.N, B: r.B + r.N}
	}
	d.end(at)
	if len(d.out) == 0 {
		return nil
	}
	return fmt.Appendf(nil, "--- %s\n+++ %s\n%s", from, path, d.out)
}

// A differ writes a diff, part by part.
type differ struct {
	a, b [][]byte
	out  []byte

	part   bytes.Buffer // the lines of the part that is being written
	from   hostfile.Run // where it begins
	shown  hostfile.Run // what it has
	opened bool
}

// change writes lines that differ, with those before.
func (d *differ) change(from, to hostfile.Run) {
	if d.opened && from.A-d.shown.A > 2*contextLines {
		d.end(from)
	}
	if !d.opened {
		n := min(contextLines, from.A-d.shown.A, from.A, from.B)
		d.from = hostfile.Run{A: from.A - n, B: from.B - n}
		d.shown, d.opened = d.from, true
	}
	d.lines(' ', d.a[d.shown.A:from.A])
	d.lines('-', d.a[from.A:to.A])
	d.lines('+', d.b[from.B:to.B])
	d.shown = hostfile.Run{A: to.A, B: to.B}
}

// end writes the lines behind the last change of a part, and its head.
func (d *differ) end(to hostfile.Run) {
	if !d.opened {
		return
	}
	n := min(contextLines, to.A-d.shown.A)
	d.lines(' ', d.a[d.shown.A:d.shown.A+n])
	d.shown.A, d.shown.B = d.shown.A+n, d.shown.B+n
	d.out = fmt.Appendf(d.out, "@@ -%s +%s @@\n%s", span(d.from.A, d.shown.A), span(d.from.B, d.shown.B), d.part.Bytes())
	d.part.Reset()
	d.opened = false
}

// span writes which lines a part has: the first, counted from 1, and how many.
func span(from, to int) string {
	if to == from {
		return fmt.Sprintf("%d,0", from)
	}
	return fmt.Sprintf("%d,%d", from+1, to-from)
}

func (d *differ) lines(mark byte, lines [][]byte) {
	for _, line := range lines {
		d.part.WriteByte(mark)
		d.part.Write(line)
		if !bytes.HasSuffix(line, []byte("\n")) {
			d.part.WriteString("\n\\ No newline at end of file\n")
		}
	}
}
