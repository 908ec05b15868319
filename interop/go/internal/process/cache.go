package process

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// WithCache returns a command that gets the cache directory of the test, for clients that
// start it with few variables.
func WithCache(argv ...string) []string {
	return append([]string{"/usr/bin/env", "XDG_CACHE_HOME=" + os.Getenv("XDG_CACHE_HOME")}, argv...)
}

// init gives the programs of a test a cache directory of their own: what mcpbridge
// remembers of servers there is of this run alone. Go's build cache stays where it is.
func init() {
	if os.Getenv("GOCACHE") == "" {
		if out, err := exec.Command("go", "env", "GOCACHE").Output(); err == nil {
			_ = os.Setenv("GOCACHE", strings.TrimSpace(string(out)))
		}
	}
	dir := filepath.Join(os.TempDir(), "mcpbridge-interop-cache")
	_ = os.RemoveAll(dir) // of an earlier run
	if err := os.MkdirAll(dir, 0o700); err != nil {
		panic(err)
	}
	_ = os.Setenv("XDG_CACHE_HOME", dir)
}
