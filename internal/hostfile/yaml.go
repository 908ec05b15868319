package hostfile

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"
)

// YAML returns the result of [Host.Adapt] as a configuration file of mcpbridge, with the
// notes as comments above the settings. head is the comment at the top, of one or more
// lines.
func YAML(root *yaml.Node, notes []Note, head string) ([]byte, error) {
	servers := valueOf(root, "servers")
	out := mapping(0)
	for _, kv := range pairs(servers) {
		var about []string
		for _, n := range notes {
			if len(n.Path) > 1 && n.Path[1] == kv.name() {
				about = append(about, comment(n.Path[2:], n.Text))
			}
		}
		key := text(kv.name(), 0)
		key.HeadComment = strings.Join(about, "\n")
		out.Content = append(out.Content, key, plain(kv.value))
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s\n", commented(head))
	for _, n := range notes {
		if len(n.Path) < 2 {
			fmt.Fprintf(&b, "%s\n", comment(n.Path, n.Text))
		}
	}
	b.WriteByte('\n')
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(withServers(0, out)); err != nil {
		return nil, fmt.Errorf("writing YAML: %w", err)
	}
	return b.Bytes(), enc.Close()
}

func comment(path []string, text string) string {
	if len(path) == 0 {
		return commented(text)
	}
	return commented(strings.Join(path, ".") + ": " + text)
}

// commented converts text to a comment. It replaces characters that end a line in YAML,
// which names of keys may contain.
func commented(text string) string {
	text = strings.Map(func(r rune) rune {
		if r != '\n' && unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || r == '\ufeff' {
			return ' '
		}
		return r
	}, text)
	return "# " + strings.ReplaceAll(text, "\n", "\n# ")
}

// plain returns a copy of n without the positions and style of its file. It writes each
// list on one line, and replaces ${input:…} by its variable.
func plain(n *yaml.Node) *yaml.Node {
	c := &yaml.Node{Kind: n.Kind, Tag: n.Tag, Value: n.Value}
	if n.Kind == yaml.SequenceNode {
		c.Style = yaml.FlowStyle
	}
	if n.Kind == yaml.ScalarNode && n.Tag == "!!str" {
		c.Value = braced.ReplaceAllStringFunc(n.Value, func(ref string) string {
			if id, ok := strings.CutPrefix(ref, "${input:"); ok {
				return "${" + InputVariable(strings.TrimSuffix(id, "}")) + "}"
			}
			return ref
		})
	}
	for _, below := range n.Content {
		c.Content = append(c.Content, plain(below))
	}
	return c
}
