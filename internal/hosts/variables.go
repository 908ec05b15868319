package hosts

import (
	"path/filepath"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// predefine finds the values of the variables that the host has beside the
// environment.
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

// under makes path absolute, below dir, unless it begins with what tells where it is.
func under(dir, path string) string {
	if path == "" || filepath.IsAbs(path) || path[0] == '$' || path[0] == '~' {
		return path
	}
	return filepath.Join(dir, path)
}

// aboutFolder are the variables whose value is a guess in a user's file.
var aboutFolder = regexp.MustCompile(`\$\{(workspaceFolder|workspaceFolderBasename|CLAUDE_PROJECT_DIR)\}`)

// replace puts the values of the host's variables into every value below n. Others
// are left to the reader of the result.
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
		a.elsewhere = false // said
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
	// bareVariable is $NAME, which Gemini CLI expands, too.
	bareVariable = regexp.MustCompile(`(^|[^$])\$([A-Za-z_][A-Za-z0-9_]*)`)
)
