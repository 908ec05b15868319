package key

import "strings"

// Delim separates the names of a path. It is not a dot because names of servers, headers and
// methods contain dots.
const Delim = "\x1f"

// Join returns the path of what is below path by names; path is empty for the top.
func Join(path string, names ...string) string {
	below := strings.Join(names, Delim) // one name is itself
	if path == "" || len(names) == 0 {
		return path + below
	}
	return path + Delim + below
}

// Parent returns the path of what a path is below, empty for the top.
func Parent(path string) string {
	i := strings.LastIndex(path, Delim)
	return path[:max(i, 0)]
}

// Base returns the last name of a path.
func Base(path string) string { return path[strings.LastIndex(path, Delim)+1:] }

// Shown returns a path as people write it.
func Shown(path string) string { return strings.ReplaceAll(path, Delim, ".") }
