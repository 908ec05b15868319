package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/mcpbridge/mcpbridge/internal/hosts"
)

// readFile parses the file as JSON, with comments or without, or as one YAML
// document; isJSON says which. A file that is neither is reported as one mistake
// with its line; the error is the file system's.
func readFile(path string, rep *report) (root *yaml.Node, isJSON bool, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, false, fmt.Errorf("reading the configuration: %w", err)
	}
	empty := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: 1}
	if isTOML(path, data) {
		rep.fail(place{where: path}, "", "%s", tomlAdvice)
		return empty, false, nil
	}
	var whyNot error
	if hosts.LooksLikeJSON(data) {
		if root, whyNot = hosts.Parse(data); whyNot == nil {
			return root, true, nil
		}
	}
	if root = readYAML(path, data, rep, whyNot); root == nil {
		root = empty
	}
	return root, false, nil
}

// readYAML returns nil for an empty document, or one that is reported. whyNot says
// why what looks like JSON is none, and may be nil.
func readYAML(path string, data []byte, rep *report, whyNot error) *yaml.Node {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, second yaml.Node
	if err := dec.Decode(&doc); err != nil {
		switch e := (*hosts.SyntaxError)(nil); {
		case errors.Is(err, io.EOF):
		case errors.As(whyNot, &e) && quotedKeys.Match(data):
			rep.fail(place{where: fmt.Sprintf("%s:%d", path, e.Line), line: e.Line}, "", "not readable as JSON: %s (column %d)", e.Why, e.Column)
		default:
			notYAML(rep, path, data, err)
		}
		return nil
	}
	if err := dec.Decode(&second); err == nil {
		at := place{where: fmt.Sprintf("%s:%d", path, second.Line), line: second.Line}
		rep.fail(at, "", "a second YAML document begins here; keep one")
	} else if !errors.Is(err, io.EOF) {
		notYAML(rep, path, data, err)
	}
	return doc.Content[0]
}

// quotedKeys tells what was meant to be JSON from YAML in braces.
var quotedKeys = regexp.MustCompile(`\{\s*(//[^\n]*\s*|/\*[^*]*\*/\s*)*["}]`)

const tomlAdvice = "is TOML, as Codex has it, which mcpbridge does not read; write its servers into a YAML file, as config.example.yaml has them, and point Codex at mcpbridge: url = \"http://127.0.0.1:2526/mcp/NAME\", or command = \"mcpbridge\" and args = [\"wrap\", \"--\", COMMAND, ARGS...]"

var tomlTable = regexp.MustCompile(`(?m)^\[mcp_servers\.[^\]]+\]`)

func isTOML(path string, data []byte) bool {
	return strings.EqualFold(filepath.Ext(path), ".toml") || tomlTable.Match(data)
}

var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)`)

func notYAML(rep *report, path string, data []byte, err error) {
	at, why := place{where: path}, err.Error()
	if m := yamlLine.FindStringSubmatch(why); m != nil {
		why = m[2]
		if line, err := strconv.Atoi(m[1]); err == nil {
			at = place{where: fmt.Sprintf("%s:%d", path, line), line: line}
		}
	}
	if line := tabbed(data); line > 0 && strings.Contains(why, "cannot start any token") {
		at = place{where: fmt.Sprintf("%s:%d", path, line), line: line}
		rep.fail(at, "", "a tab indents this line, and YAML wants spaces; write two spaces for each tab")
		return
	}
	rep.fail(at, "", "not readable as YAML or JSON: %s", why)
}

// tabbed returns the number of the first line that a tab indents, zero if none does.
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
