package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"

	"go.yaml.in/yaml/v3"
)

// readFile parses the file as one YAML document. A file that is not YAML is
// reported as one mistake with its line; the error is the file system's.
func readFile(path string, rep *report) (*yaml.Node, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the configuration: %w", err)
	}
	empty := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: 1}
	dec := yaml.NewDecoder(bytes.NewReader(asYAML(data)))
	var doc, second yaml.Node
	if err := dec.Decode(&doc); err != nil {
		if !errors.Is(err, io.EOF) {
			notYAML(rep, path, err)
		}
		return empty, nil
	}
	if err := dec.Decode(&second); err == nil {
		at := place{where: fmt.Sprintf("%s:%d", path, second.Line), line: second.Line}
		rep.fail(at, "", "a second YAML document begins here; keep one")
	} else if !errors.Is(err, io.EOF) {
		notYAML(rep, path, err)
	}
	return doc.Content[0], nil
}

var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)`)

func notYAML(rep *report, path string, err error) {
	at, why := place{where: path}, err.Error()
	if m := yamlLine.FindStringSubmatch(why); m != nil {
		why = m[2]
		if line, err := strconv.Atoi(m[1]); err == nil {
			at = place{where: fmt.Sprintf("%s:%d", path, line), line: line}
		}
	}
	rep.fail(at, "", "not readable as YAML or JSON: %s", why)
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

// Pairs of surrogates, and escaped slashes, are the two escapes of JSON that
// YAML does not have; the other alternatives step over those it has.
var jsonEscape = regexp.MustCompile(`\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\.`)

// asYAML rewrites JSON so that a YAML parser reads it the same way. Lines
// stay where they are. What is not JSON is returned as it is.
func asYAML(data []byte) []byte {
	if !bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) || !json.Valid(data) {
		return data
	}
	return jsonEscape.ReplaceAllFunc(data, func(esc []byte) []byte {
		if string(esc) == `\/` {
			return []byte("/")
		}
		var s string
		if len(esc) == 2 || json.Unmarshal([]byte(`"`+string(esc)+`"`), &s) != nil {
			return esc
		}
		return []byte(s)
	})
}
