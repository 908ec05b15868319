package layer

import (
	"github.com/mcpbridge/mcpbridge/internal/config/key"
)

// Check reports the mistakes that the text of a file has by itself.
func Check(path, text string, environ []string, keys *key.Key, rep *key.Report) {
	r := &reader{Options: Options{Path: path, Environ: environ}, keys: keys, rep: rep}
	root, in := parseFile(path, []byte(text), rep)
	r.fileWalker(path).value(r.adapted(path, root, in), keys, "")
}

// IsHosts reports whether a text is JSON, and that of a host's file.
func IsHosts(text string, keys *key.Key) bool {
	root, in := parseFile("c.json", []byte(text), key.NewReport(""))
	return in == inJSON && isHosts(root, keys)
}
