package transport

import (
	"maps"
	"runtime"
	"slices"
	"strings"
)

// inherited names the variables that a child inherits: what programs need to find files
// and their user, and no secrets.
var inherited = []string{"HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER"}

// inheritedWindows is the same for Windows, where most of these are needed to start
// programs, or to use the network.
var inheritedWindows = []string{
	"APPDATA", "COMSPEC", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATH", "PATHEXT",
	"PROCESSOR_ARCHITECTURE", "PROGRAMDATA", "PROGRAMFILES", "SYSTEMDRIVE", "SYSTEMROOT",
	"TEMP", "TMP", "USERNAME", "USERPROFILE", "WINDIR",
}

// ChildEnv returns the environment of the command.
func (o CommandOptions) ChildEnv() []string { return childEnv(o.Environ, o.Env) }

// childEnv returns the environment of a child: the inherited variables of environ, and
// all of extra, which overrides them.
func childEnv(environ []string, extra map[string]string) []string {
	env := make([]string, 0, len(inherited)+len(extra))
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		// A value that begins like this is a shell function, that is, code.
		if inherits(name) && !strings.HasPrefix(value, "()") {
			env = append(env, entry)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(extra)) {
		env = append(env, name+"="+extra[name])
	}
	return env
}

func inherits(name string) bool {
	if runtime.GOOS == "windows" {
		return slices.Contains(inheritedWindows, strings.ToUpper(name))
	}
	return slices.Contains(inherited, name)
}
