package remember

import (
	"path/filepath"
	"runtime"
	"strings"
)

// Dir returns the folder for the user with the given environment, which has the form of
// os.Environ: mcpbridge/servers in the folder that [os.UserCacheDir] returns. It returns
// "" if there is no home directory, or if its path is relative.
func Dir(environ []string) string { return dirOn(runtime.GOOS, environ) }

func dirOn(goos string, environ []string) string {
	cache := cacheDir(goos, environ)
	if !filepath.IsAbs(cache) {
		return ""
	}
	return filepath.Join(cache, "mcpbridge", "servers")
}

func cacheDir(goos string, environ []string) string {
	if goos == "windows" {
		return variable(environ, "LocalAppData", strings.EqualFold)
	}
	same := func(a, b string) bool { return a == b }
	if dir := variable(environ, "XDG_CACHE_HOME", same); dir != "" && goos != "darwin" {
		return dir
	}
	home := variable(environ, "HOME", same)
	switch {
	case home == "":
		return ""
	case goos == "darwin":
		return filepath.Join(home, "Library", "Caches")
	}
	return filepath.Join(home, ".cache")
}

// variable returns the first value of name, as os.Getenv does.
func variable(environ []string, name string, same func(a, b string) bool) string {
	for _, entry := range environ {
		if n, value, _ := strings.Cut(entry, "="); same(n, name) {
			return value
		}
	}
	return ""
}
