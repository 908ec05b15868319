// Package page has the files of the admin page: HTML, a style and modules as browsers read
// them. Nothing makes them, and nothing in them is fetched from elsewhere.
package page

import (
	"embed"
	"io/fs"
)

//go:embed files
var files embed.FS

// Files returns the files, by their names.
func Files() fs.FS {
	sub, err := fs.Sub(files, "files")
	if err != nil {
		panic(err) // files is a valid path
	}
	return sub
}
