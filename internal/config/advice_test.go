package config

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Errors tell people which key to change. A key that is not known would be refused, and
// one of a limit comes from its declaration.
func TestAdvisedKeysExist(t *testing.T) {
	known := map[string][]string{"timeouts": serverKey.ByName["timeouts"].Spelled()}
	advised := regexp.MustCompile(`\b(limits|timeouts)\.([a-z_]+)\b`)
	text := regexp.MustCompile("\"(?:[^\"\\\\\n]|\\\\.)*\"|`[^`]*`")
	found := 0
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		for _, literal := range text.FindAllString(string(source), -1) {
			for _, m := range advised.FindAllStringSubmatch(literal, -1) {
				found++
				if !slices.Contains(known[m[1]], m[2]) {
					t.Errorf("%s speaks of %s, want a key, or Raise of a limit", path, m[0])
				}
			}
		}
		return err
	})
	if err != nil || found == 0 {
		t.Errorf("%d keys found: %v", found, err)
	}
}
