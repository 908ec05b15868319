package hostfile

import (
	"bytes"
	"regexp"
	"slices"
	"sort"
	"strconv"

	"github.com/tailscale/hujson"
	"go.yaml.in/yaml/v3"
)

// A SyntaxError reports that a file is not JSON with comments and trailing commas, or no TOML.
type SyntaxError struct {
	Format       string // JSON or TOML
	Line, Column int    // from 1; 0 if unknown
	Why          string
}

func (e *SyntaxError) Error() string { return e.Why }

var byteOrderMark = []byte("\xef\xbb\xbf")

// LooksLikeJSON reports whether data begins like a JSON object, possibly after comments.
func LooksLikeJSON(data []byte) bool {
	data = bytes.TrimPrefix(data, byteOrderMark)
	for {
		data = bytes.TrimLeft(data, " \t\r\n")
		end := "\n"
		switch {
		case bytes.HasPrefix(data, []byte("/*")):
			end = "*/"
		case !bytes.HasPrefix(data, []byte("//")):
			return bytes.HasPrefix(data, []byte("{"))
		}
		_, rest, ok := bytes.Cut(data, []byte(end))
		if !ok {
			return false
		}
		data = rest
	}
}

// Parse parses JSON with comments and trailing commas. It returns a YAML tree whose nodes
// have the lines of the file. The error is a [*SyntaxError].
func Parse(data []byte) (*yaml.Node, error) {
	v, err := parse(data)
	if err != nil {
		return nil, err
	}
	t := &tree{starts: lineStarts(data)}
	return t.node(&v), nil
}

// ParseTOML parses the file of Codex as [Parse] does JSON. Of settings that are not of servers it
// returns no values.
func ParseTOML(data []byte) (*yaml.Node, error) {
	f, err := parseTOML(data)
	if err != nil {
		return nil, err
	}
	return f.root, nil
}

// Parse parses a file of the host.
func (h *Host) Parse(data []byte) (*yaml.Node, error) {
	if h == codex {
		return ParseTOML(data)
	}
	return Parse(data)
}

var hujsonError = regexp.MustCompile(`^hujson: line (\d+), column (\d+): (?s)(.*)$`)

// parse replaces a byte order mark by spaces, so that offsets stay right.
func parse(data []byte) (hujson.Value, error) {
	if bytes.HasPrefix(data, byteOrderMark) {
		data = slices.Concat([]byte("   "), data[len(byteOrderMark):])
	}
	v, err := hujson.Parse(data)
	if err == nil {
		return v, nil
	}
	e := &SyntaxError{Format: "JSON", Why: err.Error()}
	if m := hujsonError.FindStringSubmatch(e.Why); m != nil {
		e.Line, _ = strconv.Atoi(m[1]) // digits
		e.Column, _ = strconv.Atoi(m[2])
		e.Why = m[3]
	}
	return v, e
}

// A tree converts values of one file to nodes.
type tree struct {
	starts []int // the offset of each line
}

func lineStarts(data []byte) []int {
	starts := []int{0}
	for i, c := range data {
		if c == '\n' {
			starts = append(starts, i+1)
		}
	}
	return starts
}

// line returns the line of an offset, from 1.
func (t *tree) line(offset int) int { return sort.SearchInts(t.starts, offset+1) }

func (t *tree) node(v *hujson.Value) *yaml.Node {
	line := t.line(v.StartOffset)
	n := &yaml.Node{Line: line, Column: v.StartOffset - t.starts[line-1] + 1}
	switch v := v.Value.(type) {
	case *hujson.Object:
		n.Kind, n.Tag = yaml.MappingNode, "!!map"
		for i := range v.Members {
			n.Content = append(n.Content, t.node(&v.Members[i].Name), t.node(&v.Members[i].Value))
		}
	case *hujson.Array:
		n.Kind, n.Tag = yaml.SequenceNode, "!!seq"
		for i := range v.Elements {
			n.Content = append(n.Content, t.node(&v.Elements[i]))
		}
	case hujson.Literal:
		n.Kind, n.Tag, n.Value = yaml.ScalarNode, tagOf(v), v.String()
	}
	return n
}

func tagOf(l hujson.Literal) string {
	switch l.Kind() {
	case '"':
		return "!!str"
	case 'n':
		return "!!null"
	case 't', 'f':
		return "!!bool"
	}
	if bytes.ContainsAny(l, ".eE") {
		return "!!float"
	}
	return "!!int"
}
