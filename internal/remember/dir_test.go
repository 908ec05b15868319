//go:build unix

package remember

import (
	"os"
	"path/filepath"
	"testing"
)

func TestDir(t *testing.T) {
	for _, tt := range []struct {
		name, goos string
		environ    []string
		want       string
	}{
		{"home", "linux", []string{"HOME=/home/ada"}, "/home/ada/.cache/mcpbridge/servers"},
		{"XDG", "linux", []string{"HOME=/home/ada", "XDG_CACHE_HOME=/x"}, "/x/mcpbridge/servers"},
		{"XDG without a home", "freebsd", []string{"XDG_CACHE_HOME=/x"}, "/x/mcpbridge/servers"},
		{"empty XDG", "linux", []string{"XDG_CACHE_HOME=", "HOME=/home/ada"}, "/home/ada/.cache/mcpbridge/servers"},
		{"relative XDG", "linux", []string{"XDG_CACHE_HOME=x", "HOME=/home/ada"}, ""},
		{"the first counts", "linux", []string{"HOME=/a", "HOME=/b"}, "/a/.cache/mcpbridge/servers"},
		{"no home", "linux", []string{"PATH=/bin", "HOMEX=/x", "home=/y"}, ""},
		{"empty home", "linux", []string{"HOME="}, ""},
		{"darwin", "darwin", []string{"XDG_CACHE_HOME=/x", "HOME=/Users/ada"}, "/Users/ada/Library/Caches/mcpbridge/servers"},
		{"windows", "windows", []string{"HOME=/x", "LOCALAPPDATA=/local"}, "/local/mcpbridge/servers"},
		{"windows without", "windows", []string{"HOME=/x"}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := dirOn(tt.goos, tt.environ); got != tt.want {
				t.Errorf("dirOn(%q, %q) = %q, want %q", tt.goos, tt.environ, got, tt.want)
			}
		})
	}
}

// On this system the folder is in os.UserCacheDir.
func TestDirIsTheUsers(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", "")
	t.Setenv("HOME", "/home/ada")
	want, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	if got := Dir(os.Environ()); got != filepath.Join(want, "mcpbridge", "servers") {
		t.Errorf("Dir = %q, want it below %q", got, want)
	}
}
