package remember

import (
	"path/filepath"
	"runtime"
	"strings"
)

// Dir returns the folder of the user whose environment this is, as os.Environ
// gives it: mcpbridge/servers in the folder that [os.UserCacheDir] names. It is
// empty where there is no home, or where the environment names it by a relative
// path.
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
