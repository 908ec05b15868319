package transport

import "regexp"

const (
	// fewLines are quoted as they are.
	fewLines = 5
	// errorLines and endLines are how many lines of more are quoted that speak of an error,
	// and that were the last.
	errorLines, endLines = 3, 2
)

// gap stands for lines that are left out.
const gap = "…"

// speaksOfError matches lines that have the cause of an end: npm, node and python print it first
// or in the middle, and advice or a stack after it.
var speaksOfError = regexp.MustCompile(`(?i)error|cannot|can't|could not|not found|no such|denied|refused|invalid|missing|required|fatal|panic|failed|exception|\b[EW][A-Z]{4,}\b`)

// stackLine matches lines of a stack, which name errors and have no cause.
var stackLine = regexp.MustCompile(`^\s+(at|File) `)

// tellingLines returns, of the lines of a program that has ended, those that most probably have
// the cause, with a gap for what is between them. whole says that there were no lines before.
func tellingLines(lines []string, whole bool) []string {
	if len(lines) <= fewLines {
		return lines
	}
	chosen, errors := make([]bool, len(lines)), 0
	chosen[0] = whole
	for i, line := range lines {
		last := i >= len(lines)-endLines
		speaks := !last && errors < errorLines && speaksOfError.MatchString(line) && !stackLine.MatchString(line)
		if speaks {
			errors++
		}
		chosen[i] = chosen[i] || last || speaks
	}
	if errors == 0 { // nothing is known of it but that the end is the last thing
		for i := len(lines) - fewLines; i < len(lines); i++ {
			chosen[i] = true
		}
		chosen[0] = false
	}
	return withGaps(lines, chosen)
}

// withGaps returns the chosen lines, and gaps between those that are apart.
func withGaps(lines []string, chosen []bool) (out []string) {
	apart := false
	for i, line := range lines {
		switch {
		case !chosen[i]:
			apart = len(out) > 0
			continue
		case apart:
			out = append(out, gap)
		}
		out, apart = append(out, line), false
	}
	return out
}
