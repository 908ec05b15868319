package hostfile

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// predefine sets the host's variables other than those of the environment.
func (a *adapter) predefine() {
	a.vars = make(map[string]string)
	file := under(a.o.Here, a.o.Path)
	folder := workspace(file)
	a.folder = folder
	if folder == "" || folder == a.o.Home {
		a.folder, folder, a.elsewhere = filepath.Dir(file), a.o.Here, true
	}
	if a.host == claudeCode || a.host == Any {
		a.vars["CLAUDE_PROJECT_DIR"] = folder
	}
	if !a.host.variables {
		return
	}
	separator := "/"
	if a.o.OS == "windows" {
		separator = `\`
	}
	a.vars["userHome"] = a.o.Home
	a.vars["workspaceFolder"] = folder
	a.vars["workspaceFolderBasename"] = filepath.Base(folder)
	a.vars["pathSeparator"] = separator
	a.vars["/"] = separator
}

// under returns path below dir, unless path is absolute or begins with a variable or ~.
func under(dir, path string) string {
	if path == "" || filepath.IsAbs(path) || path[0] == '$' || path[0] == '~' {
		return path
	}
	return filepath.Join(dir, path)
}

// aboutFolder matches the variables whose value is a guess in a user's file.
var aboutFolder = regexp.MustCompile(`\$\{(workspaceFolder|workspaceFolderBasename|CLAUDE_PROJECT_DIR)\}`)

// replace replaces the host's variables in every value below n. It keeps other variables.
func (a *adapter) replace(n *yaml.Node, path []string) {
	if n.Kind == yaml.MappingNode {
		for _, kv := range pairs(n) {
			a.replace(kv.value, path)
		}
		return
	}
	for _, item := range n.Content {
		a.replace(item, path)
	}
	if n.Kind != yaml.ScalarNode || n.Tag != "!!str" || !strings.Contains(n.Value, "$") {
		return
	}
	if a.elsewhere && a.defines(n.Value) {
		a.note(n, path, "${workspaceFolder} is taken for the current folder, %s", a.o.Here)
		a.elsewhere = false // note it only once
	}
	if a.host == gemini {
		n.Value = bareVariable.ReplaceAllString(n.Value, "$1$${$2}")
	}
	n.Value = braced.ReplaceAllStringFunc(n.Value, func(ref string) string {
		name, _, _ := strings.Cut(ref[2:len(ref)-1], ":-")
		if v, ok := a.vars[name]; ok {
			return strings.ReplaceAll(v, "${", "$${")
		}
		if path, ok := strings.CutPrefix(ref, "${file:"); ok {
			return "${file:" + under(filepath.Dir(under(a.o.Here, a.o.Path)), strings.TrimSuffix(path, "}")) + "}"
		}
		return ref
	})
}

func (a *adapter) defines(value string) bool {
	m := aboutFolder.FindStringSubmatch(value)
	if m == nil {
		return false
	}
	_, ok := a.vars[m[1]]
	return ok
}

var (
	braced = regexp.MustCompile(`\$\{[^{}]*\}`)
	// bareVariable matches $NAME, which Gemini CLI also expands.
	bareVariable = regexp.MustCompile(`(^|[^$])\$([A-Za-z_][A-Za-z0-9_]*)`)
)

// expands reports whether the host replaces variables in the values of its file.
func (h *Host) expands() bool { return h != claude && h != cline && h != codex && h != zed }

// variablesIn returns the environment variables that the host replaces in a text.
func (h *Host) variablesIn(text string) (names []string) {
	if h == gemini {
		text = bareVariable.ReplaceAllString(text, "$1$${$2}")
	}
	for _, ref := range braced.FindAllString(text, -1) {
		name, _, _ := strings.Cut(strings.TrimPrefix(ref[2:len(ref)-1], "env:"), ":-")
		ours := strings.HasPrefix(name, "MCPBRIDGE_") || name == "CLAUDE_PROJECT_DIR"
		if h.expands() && variableName.MatchString(name) && !ours && !slices.Contains(names, name) && h.reads(ref) {
			names = append(names, name)
		}
	}
	return names
}

// reads reports whether the host takes ${…} for an environment variable.
func (h *Host) reads(ref string) bool {
	return strings.HasPrefix(ref, "${env:") || h == claudeCode || h == gemini
}

// reference returns what the host replaces by an environment variable, or by nothing if it is not
// set.
func (h *Host) reference(name string) string {
	switch h {
	case claudeCode:
		return "${" + name + ":-}"
	case gemini:
		return "${" + name + "}"
	}
	return "${env:" + name + "}"
}

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
