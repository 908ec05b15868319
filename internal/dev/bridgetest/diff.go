package bridgetest

import (
	"fmt"
	"strings"
)

// around is how many equal lines a difference is shown with.
const around = 2

// Diff returns the lines in which got differs from want, each with a few equal ones
// around it and under the header of its txtar section; empty if nothing differs.
func Diff(want, got string) string {
	if want == got {
		return ""
	}
	lines := compare(strings.Split(want, "\n"), strings.Split(got, "\n"))
	var out strings.Builder
	header, shown := "", -1
	for i, l := range lines {
		if l.mark == ' ' && strings.HasPrefix(l.text, "-- ") {
			header = l.text
		}
		if !nearChange(lines, i) {
			continue
		}
		if shown != i-1 || shown < 0 {
			fmt.Fprintf(&out, "@@ %s\n", header)
		}
		fmt.Fprintf(&out, "%c %s\n", l.mark, l.text)
		shown = i
	}
	return out.String()
}

// A diffLine is a line of both texts (' '), of the wanted one ('-') or the other ('+').
type diffLine struct {
	mark byte
	text string
}

func nearChange(lines []diffLine, i int) bool {
	for _, l := range lines[max(i-around, 0):min(i+around+1, len(lines))] {
		if l.mark != ' ' {
			return true
		}
	}
	return false
}

// compare keeps a longest common subsequence of the lines.
func compare(a, b []string) []diffLine {
	length := commonLengths(a, b)
	var out []diffLine
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			out = append(out, diffLine{' ', a[i]})
			i++
			j++
		case j == len(b) || i < len(a) && length[i+1][j] >= length[i][j+1]:
			out = append(out, diffLine{'-', a[i]})
			i++
		default:
			out = append(out, diffLine{'+', b[j]})
			j++
		}
	}
	return out
}

// commonLengths returns how long the common subsequence of a[i:] and b[j:] is.
func commonLengths(a, b []string) [][]int {
	length := make([][]int, len(a)+1)
	length[len(a)] = make([]int, len(b)+1)
	for i := len(a) - 1; i >= 0; i-- {
		length[i] = make([]int, len(b)+1)
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				length[i][j] = length[i+1][j+1] + 1
			} else {
				length[i][j] = max(length[i+1][j], length[i][j+1])
			}
		}
	}
	return length
}
