package client

import (
	"reflect"
	"testing"
)

const schema = `{"type":"object","required":["name"],"properties":{
	"name":{"type":"string","description":"Of the note."},"count":{"type":"integer"},"ratio":{"type":"number"},"deep":{"type":"boolean"},
	"tags":{"type":"array"},"either":{"type":["string","null"]},"maybe":{"type":["integer","null"]},"any":{},
	"region":{"type":"string","x-mcp-header":"Region"},
	"at":{"type":"object","properties":{"zone":{"type":"integer","x-mcp-header":"Zone"}}}}}`

func TestReadArguments(t *testing.T) {
	for _, tt := range []struct{ name, word, want, err string }{
		{"string", "name=5", `{"name":"5"}`, ""},
		{"empty string", "name=", `{"name":""}`, ""},
		{"= in a value", "name=a=b:=c", `{"name":"a=b:=c"}`, ""},
		{"integer keeps its digits", "count=9007199254740993", `{"count":9007199254740993}`, ""},
		{"number", "ratio=1.50", `{"ratio":1.50}`, ""},
		{"boolean", "deep=true", `{"deep":true}`, ""},
		{"array", `tags=["a", 1]`, `{"tags":["a", 1]}`, ""},
		{"string where allowed", "either=null", `{"either":"null"}`, ""},
		{"no string allowed", "maybe=null", `{"maybe":null}`, ""},
		{"no type", "any=1", `{"any":"1"}`, ""},
		{"not in the schema", "other=1", `{"other":"1"}`, ""},
		{"forced JSON", `name:={"a":1}`, `{"name":{"a":1}}`, ""},
		{"forced, not JSON", "name:=x", "", `edit: name: "x" is not JSON; quote it as JSON, or write key=value for a text`},
		{"not the type", "count=many", "", `edit: count: the tool wants integer, and "many" is none; write it as JSON`},
		{"no =", "name", "", `"name" is not an argument; write key=value, or key:=JSON`},
		{"no key", "=x", "", `"=x" is not an argument; write key=value, or key:=JSON`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := readArguments("edit", []byte(schema), []string{tt.word})
			if tt.err != "" {
				if err == nil || err.Error() != tt.err {
					t.Errorf("readArguments(%q) = %s, %v, want the error %q", tt.word, got, err, tt.err)
				}
				return
			}
			if err != nil || string(got) != tt.want {
				t.Errorf("readArguments(%q) = %s, %v, want %s", tt.word, got, err, tt.want)
			}
		})
	}
	if _, err := readArguments("edit", nil, []string{"a=1", "a=2"}); err == nil {
		t.Error("an argument given twice is taken")
	}
}

// Spec: 2026-07-28, basic/transports/streamable-http, Custom Headers from Tool
// Parameters.
func TestParamHeaders(t *testing.T) {
	for _, tt := range []struct {
		args string
		want map[string][]string
	}{
		{`{"name":"x"}`, map[string][]string{}},
		{`{"region":null}`, map[string][]string{}},
		{`{"region":"eu","at":{"zone":7}}`, map[string][]string{"Mcp-Param-Region": {"eu"}, "Mcp-Param-Zone": {"7"}}},
		{`{"region":"é"}`, map[string][]string{"Mcp-Param-Region": {"=?base64?w6k=?="}}},
	} {
		if got := map[string][]string(paramHeaders([]byte(schema), []byte(tt.args))); !reflect.DeepEqual(got, tt.want) {
			t.Errorf("paramHeaders(%s) = %q, want %q", tt.args, got, tt.want)
		}
	}
}

func TestContentText(t *testing.T) {
	const result = `{"content":[{"type":"text","text":"a\nb"},{"type":"image","mimeType":"image/png","data":"AAAA"},` +
		`{"type":"resource_link","uri":"file:///x"},{"type":"resource","resource":{"uri":"file:///y","text":"inside"}},` +
		`{"type":"resource","resource":{"uri":"file:///z","blob":"AA"}},{"type":"new"}],"structuredContent":{"n":1}}`
	want := "a\nb\n[image, image/png, 4 bytes of base64]\n[link to file:///x]\ninside\n[resource file:///z]\n[new]"
	if got := contentText([]byte(result)); got != want {
		t.Errorf("contentText = %q, want %q", got, want)
	}
	if got := contentText([]byte(`{"content":[],"structuredContent":{"n":1}}`)); got != `{"n":1}` {
		t.Errorf("contentText of structured content alone = %q", got)
	}
}
