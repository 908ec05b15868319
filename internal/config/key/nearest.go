package key

import (
	"fmt"
	"strings"
)

// Suggest returns the end of a message about an unknown word: the nearest known word if one
// is similar, or else all known words.
func Suggest(word string, known []string) string {
	if near, ok := Nearest(word, known); ok {
		return fmt.Sprintf("did you mean %s?", near)
	}
	return "known here: " + strings.Join(known, ", ")
}

// Nearest returns the known word with the smallest edit distance, if it is at most a third
// of the word's length.
func Nearest(word string, known []string) (string, bool) {
	best, at := len(word)/3+1, ""
	for _, k := range known {
		if d := distance(strings.ToLower(word), strings.ToLower(k)); d < best || (d == best && at == "") {
			best, at = d, k
		}
	}
	return at, at != ""
}

// distance is the number of insertions, deletions, substitutions and swaps of
// neighbours between a and b, bytewise.
func distance(a, b string) int {
	before, prev, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(prev[j]+1, row[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, prev, row = prev, row, before
	}
	return prev[len(b)]
}

// Either writes words as a choice: "a, b or c".
func Either(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}
