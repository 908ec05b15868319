package layers

import (
	"bytes"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// maxPackageLines is how many lines the product files of one folder may have: about what
// a reader can learn in a day.
const maxPackageLines = 4150

func TestPackageSizes(t *testing.T) {
	t.Chdir(root)
	sizes, err := packageLines(".")
	if err != nil {
		t.Fatal(err)
	}
	for dir, lines := range sizes {
		if lines > maxPackageLines {
			t.Errorf("%s has %d lines, the limit is %d: split it where a reader would expect a boundary", dir, lines, maxPackageLines)
		}
	}
}

// packageLines counts the lines of the Go files below root by their folder, whatever
// their build tags, but for those of tests.
func packageLines(root string) (map[string]int, error) {
	sizes := make(map[string]int)
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		name = filepath.ToSlash(name)
		switch {
		case err != nil:
			return err
		case d.IsDir():
			return enter(name)
		case !strings.HasSuffix(name, ".go"), strings.HasSuffix(name, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(name)
		sizes[path.Dir(name)] += bytes.Count(text, []byte{'\n'})
		return err
	})
	return sizes, err
}
