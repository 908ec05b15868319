package reload

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/config"
)

// Files of a configuration with mistakes are watched beside those in use, until another one
// is in use or has mistakes.
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
	f.Use([]string{"main", "d"})
	want("in use", "d", "main")
}
