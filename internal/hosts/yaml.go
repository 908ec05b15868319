package hosts

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"
)

// YAML writes what [Host.Adapt] returned as a file of ours, the notes as comments
// above what they are about. head is the comment at the top, one line or more.
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

// commented makes a comment of text. What YAML takes for the end of a line would end
// the comment, too, and names of keys may hold it.
func commented(text string) string {
	text = strings.Map(func(r rune) rune {
		if r != '\n' && unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || r == '\ufeff' {
			return ' '
		}
		return r
	}, text)
	return "# " + strings.ReplaceAll(text, "\n", "\n# ")
}

// plain is n without what belongs to the file it came from. Lists are written on a
// line of their own, as people write arguments, and ${input:…} as the variable that it
// stands for.
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
