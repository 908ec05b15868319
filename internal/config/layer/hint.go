package layer

import (
	"bytes"
	"regexp"
	"strings"
)

// yamlHints are what to do about mistakes that the parser names in its own terms.
var yamlHints = []struct {
	why, hint string // part of what the parser says
}{
	{"cannot start any token", "a text that begins with @, ` or % wants quotes, as in \"@scope/package\""},
	{"mapping values are not allowed", "the line is indented deeper than its neighbours, or it has a text with \": \" in it, which wants quotes"},
	{"found unexpected end of stream", "a quote is not closed; close it"},
	{"did not find expected ',' or ']'", "a [ is not closed"},
	{"did not find expected ',' or '}'", "a { is not closed, or a text in it wants quotes"},
	{"did not find expected key", "the keys of one level have to begin in the same column"},
	{"did not find expected '-'", "the items of a list have to begin in the same column"},
}

// hintOf returns what to do, after a semicolon; empty if that is not known.
func hintOf(why string) string {
	for _, h := range yamlHints {
		if strings.Contains(why, h.why) {
			return "; " + h.hint
		}
	}
	return ""
}

// blockText matches the end of a line whose text follows on deeper lines.
var blockText = regexp.MustCompile(`[|>][+-]?\d?\s*$`)

// misindented returns the number of the first line that goes back to a column in which no level
// begins; zero if there is none. The parser names only where the level has begun.
func misindented(data []byte) int {
	var levels levels
	text, number := -1, 0 // text is the column of a block text's key; -1 outside of one
	for line := range bytes.Lines(data) {
		number++
		bare := bytes.TrimLeft(line, " ")
		if b := bytes.TrimSpace(bare); len(b) == 0 || b[0] == '#' || text >= 0 && len(line)-len(bare) > text {
			continue
		}
		if !levels.fit(len(line) - len(bare)) {
			return number
		}
		levels.items(bare, len(line)-len(bare))
		if text = -1; blockText.Match(line) {
			text = levels[len(levels)-1]
		}
	}
	return 0
}

// levels are the columns in which the levels around a line begin.
type levels []int

// fit goes to the column of the next line. It reports false if that goes back to none.
func (l *levels) fit(column int) bool {
	back := false
	for len(*l) > 0 && (*l)[len(*l)-1] > column {
		*l, back = (*l)[:len(*l)-1], true
	}
	if len(*l) > 0 && (*l)[len(*l)-1] == column {
		return true
	}
	*l = append(*l, column)
	return !back
}

// items adds the levels of what is in items of lists, of a line without its indentation.
func (l *levels) items(line []byte, column int) {
	for bytes.HasPrefix(line, []byte("- ")) {
		inner := bytes.TrimLeft(line[1:], " ")
		column += len(line) - len(inner)
		line = inner
		*l = append(*l, column)
	}
}
