package layer

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/mcpbridge/mcpbridge/internal/config/key"
	"github.com/mcpbridge/mcpbridge/internal/config/value"
	"github.com/mcpbridge/mcpbridge/internal/hostfile"
)

// readFile parses a file that the command line names, which may be a pipe. The error is that of reading it; mistakes in the file go to rep.
func readFile(path string, rep *key.Report) (root *yaml.Node, in format, err error) {
	rep.Opened(path)
	data, err := value.ReadFile(path, value.MaxFile, true, rep.Stop)
	if errors.Is(err, value.ErrLarge) {
		err = fmt.Errorf("%w, which is all that is read of a file; divide it into several, and name them with include: [conf.d/*.yaml]", err)
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w; give its path, or make one like config.example.yaml", err)
	}
	if err != nil {
		return nil, "", fmt.Errorf("reading the configuration: %w", err)
	}
	root, in = parseFile(path, data, rep)
	return root, in, nil
}

// A format is how a file is written.
type format string

const (
	inYAML format = "YAML"
	inJSON format = "JSON"
	inTOML format = "TOML" // hosts' alone
)

// parseFile parses the content of a file as JSON, possibly with comments, as the TOML of Codex, or
// as a YAML document; in says which. It reports one mistake with its line if the content is none
// of them.
func parseFile(path string, data []byte, rep *key.Report) (root *yaml.Node, in format) {
	if at, ok := findTOML(path, data); ok {
		if root = readTOML(path, data, at, rep); root == nil {
			root = empty()
		}
		return root, inTOML
	}
	var whyNot error
	if hostfile.LooksLikeJSON(data) {
		if root, whyNot = hostfile.Parse(data); whyNot == nil {
			return foreign(path, root, true, rep), inJSON
		}
	}
	if root = readYAML(path, data, rep, whyNot); root == nil {
		root = empty()
	}
	return foreign(path, root, false, rep), inYAML
}

func empty() *yaml.Node { return &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: 1} }

// foreign returns root, or an empty file if it is one that another program has, which it reports.
func foreign(path string, root *yaml.Node, isJSON bool, rep *key.Report) *yaml.Node {
	advice, line := hostfile.Foreign(root, isJSON)
	if advice == "" {
		return root
	}
	rep.FailAt(key.InFile(path, line), "", "%s", advice)
	return empty()
}

// readTOML parses the file of Codex. It returns nil for a mistake, which it reports.
func readTOML(path string, data []byte, at int, rep *key.Report) *yaml.Node {
	root, err := hostfile.ParseTOML(data)
	switch e := (*hostfile.SyntaxError)(nil); {
	case errors.As(err, &e):
		rep.FailAt(key.InFile(path, e.Line), "", "not readable as TOML: %s (column %d); correct it there, or just before", e.Why, e.Column)
		return nil
	case !slices.Contains(keysIn(root), "mcp_servers"):
		rep.FailAt(lineAt(path, data, at), "", "this is TOML without [mcp_servers.NAME]; mcpbridge reads the TOML of Codex, and its own configuration is YAML, like config.example.yaml")
		return nil
	}
	return root
}

// lineAt returns the place of the byte at an offset.
func lineAt(path string, data []byte, offset int) key.Place {
	line := 1 + bytes.Count(data[:offset], []byte("\n"))
	return key.InFile(path, line)
}

// readYAML parses YAML. It returns nil for an empty document, and for a mistake, which it
// reports. whyNot is the error of parsing the content as JSON; nil if it does not look like
// JSON.
func readYAML(path string, data []byte, rep *key.Report, whyNot error) *yaml.Node {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, second yaml.Node
	if err := dec.Decode(&doc); err != nil {
		switch e := (*hostfile.SyntaxError)(nil); {
		case errors.Is(err, io.EOF):
		case errors.As(whyNot, &e) && quotedKeys.Match(data):
			at := key.InFile(path, e.Line)
			at.Column = e.Column
			rep.FailAt(at, "", "not readable as JSON: %s (column %d); correct it there, or just before", e.Why, e.Column)
		default:
			notYAML(rep, path, data, err)
		}
		return nil
	}
	if err := dec.Decode(&second); err == nil {
		at := key.InFile(path, second.Line)
		rep.FailAt(at, "", "a second YAML document begins here; keep one")
	} else if !errors.Is(err, io.EOF) {
		notYAML(rep, path, data, err)
	}
	return doc.Content[0]
}

// quotedKeys distinguishes JSON with mistakes from YAML in braces.
var quotedKeys = regexp.MustCompile(`\{\s*(//[^\n]*\s*|/\*[^*]*\*/\s*)*["}]`)

var tomlTable = regexp.MustCompile(`(?m)^\[mcp_servers\.[^\]]+\]`)

// findTOML reports whether data is TOML, and at which offset that is visible.
func findTOML(path string, data []byte) (at int, ok bool) {
	if bytes.Contains(data, []byte("[mcp_servers.")) {
		if m := tomlTable.FindIndex(data); m != nil {
			return m[0], true
		}
	}
	return 0, strings.EqualFold(filepath.Ext(path), ".toml")
}

var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)`)

func notYAML(rep *key.Report, path string, data []byte, err error) {
	why := err.Error()
	at := lineAt(path, data, unlined(data, why))
	if m := yamlLine.FindStringSubmatch(why); m != nil {
		why = m[2]
		if line, err := strconv.Atoi(m[1]); err == nil {
			at = key.InFile(path, line)
		}
	}
	if line := tabbed(data); line > 0 && strings.Contains(why, "cannot start any token") {
		at = key.InFile(path, line)
		rep.FailAt(at, "", "this line is indented with a tab, and YAML requires spaces; write two spaces for each tab")
		return
	}
	hint := cmp.Or(hintOf(why), "; correct it there, or just before")
	if strings.Contains(why, "did not find expected key") || strings.Contains(why, "did not find expected '-'") {
		if line := misindented(data); line > 0 {
			at = key.InFile(path, line)
		}
	}
	rep.FailAt(at, "", "not readable as YAML or JSON: %s%s", why, hint)
}

// unlined returns the offset of a mistake for which the parser gives no line: that of the
// unknown anchor or invalid character, or 0.
func unlined(data []byte, why string) int {
	at := 0
	if name, ok := strings.CutPrefix(why, "yaml: unknown anchor '"); ok {
		at = bytes.Index(data, []byte("*"+strings.TrimSuffix(name, "' referenced")))
	} else if strings.HasPrefix(why, "yaml: control characters") || strings.Contains(why, "UTF-8") || strings.Contains(why, "Unicode") {
		at = bytes.IndexFunc(data, noText)
	}
	return max(at, 0)
}

// noText reports whether YAML refuses r everywhere.
func noText(r rune) bool {
	switch r {
	case '\t', '\n', '\r', 0x85:
		return false
	case utf8.RuneError, 0xfffe, 0xffff:
		return true
	}
	return unicode.IsControl(r)
}

// tabbed returns the number of the first line that is indented with a tab, or zero.
func tabbed(data []byte) int {
	for i, line := range bytes.Split(data, []byte("\n")) {
		indent := line[:len(line)-len(bytes.TrimLeft(line, " \t"))]
		if bytes.IndexByte(indent, '\t') >= 0 && len(indent) < len(line) {
			return i + 1
		}
	}
	return 0
}

// serverNames returns the names below servers in the order of the file.
func serverNames(root *yaml.Node) []string {
	var names []string
	for i := 0; root.Kind == yaml.MappingNode && i+1 < len(root.Content); i += 2 {
		k, v := root.Content[i], root.Content[i+1]
		if k.Value != "servers" && k.Value != "mcpServers" {
			continue
		}
		for v.Kind == yaml.AliasNode {
			v = v.Alias
		}
		for j := 0; v.Kind == yaml.MappingNode && j+1 < len(v.Content); j += 2 {
			names = append(names, v.Content[j].Value)
		}
	}
	return names
}
