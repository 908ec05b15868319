package output

import (
	"runtime"
	"strings"
)

// ShellWord writes a word as the shells of this system read it.
func ShellWord(word string) string {
	switch {
	case runtime.GOOS == "windows" && word != "" && !strings.ContainsAny(word, " \t\n\"&|<>^()"):
		return word
	case runtime.GOOS == "windows": // where ' quotes nothing, and \\ stands between folders
		return `"` + strings.ReplaceAll(word, `"`, `""`) + `"`
	case word != "" && !strings.ContainsAny(word, " \t\n'\"\\$`&|;<>()*?[]{}!#~"):
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
