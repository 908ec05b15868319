package reload

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/config"
)

// Files of a configuration that can't be used are watched beside those in use, until another one
// is in use or can't be.
func TestFiles(t *testing.T) {
	var f Files
	want := func(when string, files ...string) {
		t.Helper()
		if got := f.All(); !slices.Equal(got, files) {
			t.Errorf("%s the files are %q, want %q", when, got, files)
		}
	}
	want("at first")
	f.Use([]string{"main", "a"})
	want("at the start", "a", "main")
	f.Failed(fmt.Errorf("reading: %w", &config.Error{Files: []string{"main", "b", "c/*.yaml"}}))
	want("after a mistake", "a", "b", "c/*.yaml", "main")
	f.Failed(errors.New("the file is gone"))
	want("after an error that has no files", "a", "b", "c/*.yaml", "main")
	f.Failed(&config.Error{Files: []string{"main", "d"}})
	want("after another mistake", "a", "d", "main")
	f.Refused([]string{"main", "e"})
	f.Failed(errors.New("a server of it can't be made"))
	want("after one without a mistake that is refused", "a", "e", "main")
	f.Use([]string{"main", "d"})
	want("in use", "d", "main")
}
