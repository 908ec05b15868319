// Package argv answers "what does this command line run?", so that a server can be called
// after it. It knows the programs that run others: npx, uvx, docker, python and their like.
package argv

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/mcpbridge/mcpbridge/internal/hostfile"
)

// Name returns what a server is called whose command is argv: after the package, module,
// image or script that it runs, not after the program that runs it.
func Name(argv []string) string { return hostfile.Name(whatRuns(argv, 4)) }

// whatRuns follows programs that run others, to depth at most.
func whatRuns(argv []string, depth int) string {
	if len(argv) == 0 {
		return ""
	}
	program := programName(argv[0])
	find := runners[strings.TrimRight(program, "0123456789.")]
	if find == nil || depth == 0 {
		return scriptName(argv[0])
	}
	if name := find(argv[1:], depth-1); name != "" {
		return name
	}
	return program
}

// A finder finds the name of what runs in the arguments of a program that runs it; it
// returns "" if there is none.
type finder func(args []string, depth int) string

var runners map[string]finder

// init breaks the circle: the finders call whatRuns.
func init() {
	packages := func(args []string, _ int) string { return packageArg(args) }
	script := func(args []string, _ int) string { return scriptArg(args) }
	runners = map[string]finder{
		"npx": packages, "bunx": packages, "pnpx": packages, "uvx": packages,
		"npm": afterVerb(packages, "exec", "x"), "pnpm": afterVerb(packages, "dlx", "exec", "x"),
		"yarn": afterVerb(packages, "dlx", "exec"), "pipx": afterVerb(packages, "run"),
		"bun": bunName, "uv": uvName, "deno": afterVerb(script, "run", "serve"),
		"node": script, "tsx": script, "ts-node": script, "ruby": script, "php": script, "bash": script, "sh": script,
		"python": pythonName, "py": pythonName, "pythonw": pythonName,
		"docker": afterVerb(imageName, "run"), "podman": afterVerb(imageName, "run"),
		"java": script, "dotnet": script, "go": afterVerb(script, "run"),
		"cmd": nested, "env": nested, "sudo": nested,
	}
}

// afterVerb looks behind the first of verbs, past flags before it.
func afterVerb(find finder, verbs ...string) finder {
	return func(args []string, depth int) string {
		if i := slices.IndexFunc(args, func(a string) bool { return slices.Contains(verbs, a) }); i >= 0 {
			return find(args[i+1:], depth)
		}
		return ""
	}
}

// nested names the command after flags and variables: cmd /c npx …, env A=b npx ….
func nested(args []string, depth int) string {
	for i, a := range args {
		if !strings.HasPrefix(a, "-") && !isSwitch(a) && !strings.Contains(a, "=") {
			return whatRuns(args[i:], depth)
		}
	}
	return ""
}

// isSwitch reports whether a is one as Windows has them: /c.
func isSwitch(a string) bool { return len(a) == 2 && a[0] == '/' }

func bunName(args []string, _ int) string {
	if len(args) > 0 && args[0] == "x" {
		return packageArg(args[1:])
	}
	if len(args) > 0 && args[0] == "run" {
		args = args[1:]
	}
	return scriptArg(args)
}

// uvName reads uv run SCRIPT, uv run PROGRAM ARGS… and uv tool run PACKAGE.
func uvName(args []string, depth int) string {
	words := operands(args, withValue)
	if len(words) > 1 && args[words[0]] == "tool" && args[words[1]] == "run" {
		return packageArg(args[words[1]+1:])
	}
	i := slices.Index(args, "run")
	if i < 0 {
		return ""
	}
	rest := args[i+1:]
	if words := operands(rest, withValue); len(words) > 0 {
		return whatRuns(rest[words[0]:], depth)
	}
	return ""
}

func pythonName(args []string, _ int) string {
	if i := slices.Index(args, "-m"); i >= 0 && i+1 < len(args) {
		module := args[i+1]
		for before, last, ok := cutLast(module, "."); ok && slices.Contains(plainNames, last); before, last, ok = cutLast(module, ".") {
			module = before
		}
		return module
	}
	return scriptArg(args)
}

// imageName names the image of docker run, without registry, tag and digest.
func imageName(args []string, _ int) string {
	words := operands(args, ofContainers)
	if len(words) == 0 {
		return ""
	}
	image, _, _ := strings.Cut(args[words[0]], "@")
	base := image[strings.LastIndexByte(image, '/')+1:]
	base, _, _ = strings.Cut(base, ":")
	return base
}

// packageArg names the first package, or the program that is run of one that -p or
// --from names.
func packageArg(args []string) string {
	if words := operands(args, withValue); len(words) > 0 {
		return packageName(args[words[0]])
	}
	if i := slices.IndexFunc(args, func(a string) bool { return a == "-c" || a == "--call" }); i >= 0 && i+1 < len(args) {
		first, _, _ := strings.Cut(args[i+1], " ")
		return packageName(first)
	}
	return ""
}

var packageVersion = regexp.MustCompile(`(.)(@[^/@]*|[=~<>!]=.*|[<>].*|\[.*)$`)

// packageName is a package without its scope, version and extras.
func packageName(spec string) string {
	spec = strings.TrimPrefix(strings.TrimPrefix(spec, "npm:"), "jsr:")
	spec = strings.TrimSuffix(spec, "/")
	if at := strings.LastIndexByte(spec, '/'); at >= 0 {
		spec = spec[at+1:]
	}
	spec = packageVersion.ReplaceAllString(spec, "$1")
	return strings.TrimSuffix(spec, ".git")
}

// scriptArg names the first file among args.
func scriptArg(args []string) string {
	words := operands(args, withValue)
	if len(words) == 0 {
		return ""
	}
	if file := args[words[0]]; strings.HasPrefix(file, "npm:") || strings.HasPrefix(file, "jsr:") {
		return packageName(file)
	}
	return scriptName(args[words[0]])
}

// plainNames are those of files and modules that say nothing of what they are.
var plainNames = []string{"index", "main", "__main__", "server", "app", "cli", "start", "run", "mcp", "stdio"}

// plainFolders are those where the files of a program are kept.
var plainFolders = []string{"dist", "build", "src", "lib", "out", "bin", "target", "release", "debug", "cmd", "js", "esm", "cjs", ".", ""}

// scriptName names a file, or the folder of the program that a file called index.js
// or server.py belongs to.
func scriptName(file string) string {
	file = strings.ReplaceAll(file, `\`, "/")
	base := programName(file)
	if !slices.Contains(plainNames, base) {
		return base
	}
	for dir := path.Dir(file); ; dir = path.Dir(dir) {
		name := path.Base(dir)
		if name == "/" || name == "." || name == ".." {
			return base
		}
		if !slices.Contains(plainFolders, name) {
			return name
		}
	}
}

var programEnding = regexp.MustCompile(`(?i)\.(exe|cmd|bat|ps1|com|[cm]?js|[cm]?ts|pyz?|rb|php|sh|jar|dll|go)$`)

// programName is a file's name without its folder and what tells its kind.
func programName(file string) string {
	file = strings.ReplaceAll(file, `\`, "/")
	return programEnding.ReplaceAllString(file[strings.LastIndexByte(file, '/')+1:], "")
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}
