package client

import (
	"errors"
	"strings"
	"testing"
)

// Misspelt and missing arguments are named before anything is sent, and nothing is refused that the
// schema allows.
func TestCheckArguments(t *testing.T) {
	const (
		loose  = `{"type":"object","required":["path"],"properties":{"path":{"type":"string"},"limit":{"type":"integer"}}}`
		closed = `{"type":"object","additionalProperties":false,"required":["path","edits"],"properties":{"path":{"type":"string"},"edits":{"type":"array"}},"patternProperties":{"^x-":{}}}`
		open   = `{"type":"object","additionalProperties":{"type":"string"},"properties":{"path":{"type":"string"}}}`
		parts  = `{"allOf":[{"properties":{"other":{}}}],"properties":{"path":{"type":"string"}},"required":["path"]}`
	)
	for _, tt := range []struct{ name, schema, given, notes, err string }{
		{"all there", loose, `{"path":"a","limit":1}`, "", ""},
		{"misspelt, so that it is missing", loose, `{"pth":"a"}`, "", `read: unknown argument "pth"; did you mean "path"?`},
		{"missing", loose, `{"limit":1}`, "", `read: the argument "path" is missing, which the tool requires (string); write path=VALUE`},
		{"missing, and one that is like none", loose, `{"colour":1}`, "", "read: unknown argument \"colour\"; known here: path, limit\nread: the argument \"path\" is missing, which the tool requires (string); write path=VALUE"},
		{"misspelt, and allowed", loose, `{"path":"a","limti":1}`, `read: unknown argument "limti"; did you mean "limit"?`, ""},
		{"like none, and allowed", loose, `{"path":"a","colour":1}`, `read: unknown argument "colour"; known here: path, limit`, ""},
		{"refused by the schema", closed, `{"path":"a","edits":[],"colour":1}`, "", `read: unknown argument "colour"; known here: path, edits`},
		{"missing JSON", closed, `{"path":"a"}`, "", `read: the argument "edits" is missing, which the tool requires (array); write edits:=JSON`},
		{"of a pattern", closed, `{"path":"a","edits":[],"x-y":1}`, "", ""},
		{"what the schema is for", open, `{"anything":"b"}`, "", ""},
		{"what looks misspelt there", open, `{"paht":"b"}`, `read: unknown argument "paht"; did you mean "path"?`, ""},
		{"properties in parts", parts, `{"path":"a","other":1,"else":2}`, "", ""},
		{"no arguments", `{"type":"object","properties":{}}`, `{"a":1}`, `read: unknown argument "a"; the tool has no arguments`, ""},
		{"no schema", ``, `{"a":1}`, "", ""},
		{"null is given", loose, `{"path":null}`, "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			notes, err := checkArguments("read", []byte(tt.schema), []byte(tt.given))
			if got := strings.Join(notes, "\n"); got != tt.notes {
				t.Errorf("notes = %q, want %q", got, tt.notes)
			}
			if tt.err == "" && err != nil || tt.err != "" && (err == nil || err.Error() != tt.err || !errors.As(err, new(*WordsError))) {
				t.Errorf("error = %v, want %q", err, tt.err)
			}
		})
	}
}
