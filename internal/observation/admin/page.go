package admin

import (
	"embed"
	"io/fs"
)

// page has the files of the page: HTML, a style and modules as browsers read them. Nothing
// makes them, and nothing in them is fetched from elsewhere.
//
//go:embed page
var page embed.FS

// pageFiles returns the files of the page, by their names.
func pageFiles() fs.FS {
	sub, err := fs.Sub(page, "page")
	if err != nil {
		panic(err) // page is a valid path
	}
	return sub
}
