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

// StateDir returns the folder for what the user would miss: mcpbridge in $XDG_STATE_HOME or
// ~/.local/state, in ~/Library/Application Support on a Mac, and in %LocalAppData% on
// Windows. It returns "" if there is no home directory, or if its path is relative.
func StateDir(environ []string) string { return stateDirOn(runtime.GOOS, environ) }

func stateDirOn(goos string, environ []string) string {
	dir, home := variable(goos, environ, "XDG_STATE_HOME"), variable(goos, environ, "HOME")
	switch {
	case goos == "windows":
		dir = variable(goos, environ, "LocalAppData")
	case goos == "darwin":
		dir = filepath.Join(home, "Library", "Application Support")
	case dir == "":
		dir = filepath.Join(home, ".local", "state")
	}
	if !filepath.IsAbs(dir) {
		return ""
	}
	return filepath.Join(dir, "mcpbridge")
}

func cacheDir(goos string, environ []string) string {
	if goos == "windows" {
		return variable(goos, environ, "LocalAppData")
	}
	if dir := variable(goos, environ, "XDG_CACHE_HOME"); dir != "" && goos != "darwin" {
		return dir
	}
	home := variable(goos, environ, "HOME")
	switch {
	case home == "":
		return ""
	case goos == "darwin":
		return filepath.Join(home, "Library", "Caches")
	}
	return filepath.Join(home, ".cache")
}

// variable returns the first value of name, as os.Getenv does: on Windows in any case.
func variable(goos string, environ []string, name string) string {
	for _, entry := range environ {
		if n, value, _ := strings.Cut(entry, "="); n == name || goos == "windows" && strings.EqualFold(n, name) {
			return value
		}
	}
	return ""
}
