package transport

import (
	"maps"
	"runtime"
	"slices"
	"strings"
)

// inherited names the variables a child gets without being given them: what
// programs need to find themselves and their user, and no secrets.
var inherited = []string{"HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER"}

// inheritedWindows is the same for Windows, where programs do not start, or do
// not find the network, without most of these.
var inheritedWindows = []string{
	"APPDATA", "COMSPEC", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATH", "PATHEXT",
	"PROCESSOR_ARCHITECTURE", "PROGRAMDATA", "PROGRAMFILES", "SYSTEMDRIVE", "SYSTEMROOT",
	"TEMP", "TMP", "USERNAME", "USERPROFILE", "WINDIR",
}

// ChildEnv returns the environment that the command gets.
func (o CommandOptions) ChildEnv() []string { return childEnv(o.Environ, o.Env) }

// childEnv returns the environment of a child: of environ the inherited
// variables, then all of extra, which wins.
func childEnv(environ []string, extra map[string]string) []string {
	env := make([]string, 0, len(inherited)+len(extra))
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		// A value that begins like this is a shell function, hence a program.
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
