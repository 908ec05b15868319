package bridgetest

import (
	"bytes"
	"regexp"
	"slices"
	"strconv"
	"sync"
)

// A Terminal shows what a person sees: it knows the sequences that a screen of cmd/mcpbridge
// uses. It is safe for concurrent use.
type Terminal struct {
	mu    sync.Mutex
	lines []string // the last one is that of the cursor
	wrote int      // calls of Write
	raw   []byte   // everything that was written
}

var erasing = regexp.MustCompile("\r\x1b\\[([0-9]+)A\x1b\\[J")

// Write implements [io.Writer].
func (t *Terminal) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.wrote++
	t.raw = append(t.raw, p...)
	if t.lines == nil {
		t.lines = []string{""}
	}
	text := p
	if at := erasing.FindSubmatchIndex(text); at != nil && at[0] == 0 {
		up, _ := strconv.Atoi(string(text[at[2]:at[3]]))
		t.lines = append(t.lines[:len(t.lines)-1-up], "")
		text = text[at[1]:]
	}
	for i, line := range bytes.Split(text, []byte("\n")) {
		if i > 0 {
			t.lines = append(t.lines, "")
		}
		t.lines[len(t.lines)-1] += string(line)
	}
	return len(p), nil
}

// Seen returns the lines above the cursor.
func (t *Terminal) Seen() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.lines[:max(len(t.lines)-1, 0)])
}

// WasWritten reports whether a text was ever written.
func (t *Terminal) WasWritten(text string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return bytes.Contains(t.raw, []byte(text))
}

// Writes returns how often it was written to.
func (t *Terminal) Writes() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.wrote
}
