package projection

import (
	"slices"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/quirks"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// project is AppendResult for tests that expect success.
func project(t *testing.T, rev spec.Revision, method, params, body string, tools *Tools) string {
	t.Helper()
	out, _, err := AppendResult([]byte("~"), rev, method, []byte(params), []byte(body), tools)
	if err != nil {
		t.Fatalf("AppendResult(%s, %s, %s): %v", rev, method, body, err)
	}
	if err := wire.Check(out[1:], 0); err != nil || out[0] != '~' {
		t.Fatalf("AppendResult(%s, %s, %s) = %s: %v", rev, method, body, out, err)
	}
	return string(out[1:])
}

func TestL2M06Stamps(t *testing.T) {
	for _, tt := range []struct{ name, method, in, want string }{
		{"all of them", "resources/read",
			`{"resultType":"complete","contents":[],"ttlMs":5,"cacheScope":"public","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s"},"io.modelcontextprotocol/subscriptionId":"1"}}`,
			`{"contents":[]}`},
		{"others stay as written", "prompts/list",
			`{"vendor" : {"n":9007199254740993,"e":"\u00e9\/"}, "prompts":[ ],"nextCursor":"","_meta":{"a":null,"io.modelcontextprotocol/serverInfo":{},"traceparent":"x"}}`,
			`{"vendor":{"n":9007199254740993,"e":"\u00e9\/"},"prompts":[ ],"nextCursor":"","_meta":{"a":null,"traceparent":"x"}}`},
		{"a _meta that was empty stays", "prompts/list", `{"prompts":[],"_meta":{}}`, `{"prompts":[],"_meta":{}}`},
		{"names in escapes", "prompts/list", `{"\u0072esultType":"\u0063omplete","prompts":[]}`, `{"prompts":[]}`},
		{"without resultType", "tools/call", `{"content":[]}`, `{"content":[]}`},
		{"an extension's own words", "acme/keep", `{"resultType":"complete","ttlMs":5,"cacheScope":"x","tools":null,"nextCursor":null}`,
			`{"ttlMs":5,"cacheScope":"x","tools":null,"nextCursor":null}`},
		{"nothing but stamps", "acme/keep", `{"resultType":"complete"}`, `{}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, rev := range spec.Revisions(spec.Legacy) {
				if got := project(t, rev, tt.method, `{}`, tt.in, nil); got != tt.want {
					t.Errorf("AppendResult(%s, %s, %s) = %s, want %s", rev, tt.method, tt.in, got, tt.want)
				}
			}
		})
	}
}

// Members that must not be null, and required lists.
func TestNulls(t *testing.T) {
	for _, tt := range []struct {
		name, method, in, want string
		met                    quirks.Quirk
	}{
		{"L2M-07 the next cursor", "tools/list", `{"tools":[],"nextCursor":null}`, `{"tools":[]}`, quirks.NullMembers},
		{"L2M-07 tools", "tools/list", `{"tools":null}`, `{"tools":[]}`, quirks.ListMissing},
		{"prompts", "prompts/list", `{"prompts":null,"x":null}`, `{"prompts":[],"x":null}`, quirks.ListMissing},
		{"members of a prompt", "prompts/list", `{"prompts":[{"name":"null","arguments":null,"_meta":{"k":null},"x":null}]}`,
			`{"prompts":[{"name":"null","_meta":{"k":null},"x":null}]}`, quirks.NullMembers},
		{"resources missing", "resources/list", `{}`, `{"resources":[]}`, quirks.ListMissing},
		{"members of a resource", "resources/list", `{"resources":[{"uri":"a:b","name":"n","size":null,"mimeType":null}]}`,
			`{"resources":[{"uri":"a:b","name":"n"}]}`, quirks.NullMembers},
		{"members of a template", "resources/templates/list", `{"resourceTemplates":[{"uriTemplate":"a:{b}","title":null}]}`,
			`{"resourceTemplates":[{"uriTemplate":"a:{b}"}]}`, quirks.NullMembers},
		{"what was read", "resources/read", `{"contents":[{"uri":"a:b","text":"null","blob":null}]}`,
			`{"contents":[{"uri":"a:b","text":"null"}]}`, quirks.NullMembers},
		{"a prompt", "prompts/get", `{"description":null,"messages":[{"role":"user","content":{"type":"text","text":"t","annotations":null}}]}`,
			`{"messages":[{"role":"user","content":{"type":"text","text":"t"}}]}`, quirks.NullMembers},
		{"a called tool", "tools/call", `{"isError":null,"content":[null,{"type":"text","text":"null","_meta":null}]}`,
			`{"content":[{"type":"text","text":"null"}]}`, quirks.NullMembers},
		{"a completion", "completion/complete", `{"completion":{"values":["a"],"total":null,"hasMore":null}}`,
			`{"completion":{"values":["a"]}}`, quirks.NullMembers},
		{"_meta", "prompts/list", `{"_meta":null,"prompts":[]}`, `{"prompts":[]}`, quirks.NullMembers},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, rev := range spec.Revisions(spec.Legacy) {
				if got := project(t, rev, tt.method, `{}`, tt.in, nil); got != tt.want {
					t.Errorf("AppendResult(%s, %s, %s) = %s, want %s", rev, tt.method, tt.in, got, tt.want)
				}
				if _, met, _ := AppendResult(nil, rev, tt.method, nil, []byte(tt.in), nil); !slices.Equal(met, []quirks.Quirk{tt.met}) {
					t.Errorf("AppendResult(%s, %s, %s) mended %v, want %v", rev, tt.method, tt.in, met, tt.met)
				}
			}
		})
	}
}

func TestCompletionIsCut(t *testing.T) {
	body := `{"completion":{"values":[` + strings.Repeat(`"a",`, 100) + `"b"],"total":101}}`
	want := `{"completion":{"values":[` + strings.Repeat(`"a",`, 99) + `"a"],"total":101,"hasMore":true}}`
	if got := project(t, spec.Rev20251125, "completion/complete", `{}`, body, nil); got != want {
		t.Errorf("101 values became %s", got)
	}
}

const (
	link  = `{"type":"resource_link","uri":"file:///a.rs","name":"a.rs","title":"The \"A\"","mimeType":"text/x-rust","description":"Main\nentry","annotations":{"priority":1}}`
	audio = `{"type":"audio","data":"UklGRg==","mimeType":"audio/wav","_meta":{"k":1}}`

	linkAsText  = `{"type":"text","text":"Resource \"The \\\"A\\\"\" (text/x-rust): file:///a.rs\nMain\nentry","annotations":{"priority":1}}`
	audioAsText = `{"type":"text","text":"[content of type audio/wav was left out: it is known to clients since revision 2025-03-26]","_meta":{"k":1}}`
)

func TestL2M06Content(t *testing.T) {
	text := `{"type":"text","text":"t"}`
	for _, tt := range []struct {
		name, in string
		want     map[spec.Revision]string // where it differs from ""'s
	}{
		{"missing", `{}`, map[spec.Revision]string{"": `{"content":[]}`}},
		{"null", `{"content":null}`, map[spec.Revision]string{"": `{"content":[]}`}},
		{"one block without an array", `{"content":` + text + `}`, map[spec.Revision]string{"": `{"content":[` + text + `]}`}},
		{"a string", `{"content":"a\nb"}`, map[spec.Revision]string{"": `{"content":[{"type":"text","text":"a\nb"}]}`}},
		{"a link", `{"content":[` + text + `,` + link + `]}`, map[spec.Revision]string{
			"":               `{"content":[` + text + `,` + link + `]}`,
			spec.Rev20250326: `{"content":[` + text + `,` + linkAsText + `]}`,
			spec.Rev20241105: `{"content":[` + text + `,` + linkAsText + `]}`,
		}},
		{"audio", `{"content":[` + audio + `],"isError":false}`, map[spec.Revision]string{
			"":               `{"content":[` + audio + `],"isError":false}`,
			spec.Rev20241105: `{"content":[` + audioAsText + `],"isError":false}`,
		}},
		{"a type that nobody knows", `{"content":[{"type":"smell","data":"x"}]}`, map[spec.Revision]string{
			"": `{"content":[{"type":"text","text":"[content of type \"smell\" was left out: it is known to no revision of the protocol]"}]}`,
		}},
		{"a type in escapes", `{"content":[{"type":"\u0074ext","text":"t"}]}`, map[spec.Revision]string{"": `{"content":[{"type":"\u0074ext","text":"t"}]}`}},
		{"structured and text", `{"content":[` + text + `],"structuredContent":{"a":1}}`, map[spec.Revision]string{
			"": `{"content":[` + text + `],"structuredContent":{"a":1}}`,
		}},
		{"structured without text", `{"structuredContent":{"a" :"\"\\\u00e9",` + "\n\t\r" + `"n":1.0E+2},"content":[` + audio + `]}`, map[spec.Revision]string{
			"":               `{"structuredContent":{"a" :"\"\\\u00e9",` + "\n\t\r" + `"n":1.0E+2},"content":[` + audio + `,{"type":"text","text":"{\"a\" :\"\\\"\\\\\\u00e9\",\n\t\r\"n\":1.0E+2}"}]}`,
			spec.Rev20241105: `{"structuredContent":{"a" :"\"\\\u00e9",` + "\n\t\r" + `"n":1.0E+2},"content":[` + audioAsText + `,{"type":"text","text":"{\"a\" :\"\\\"\\\\\\u00e9\",\n\t\r\"n\":1.0E+2}"}]}`,
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, rev := range spec.Revisions(spec.Legacy) {
				want, ok := tt.want[rev]
				if !ok {
					want = tt.want[""]
				}
				if got := project(t, rev, "tools/call", `{"name":"x"}`, tt.in, NewTools()); got != want {
					t.Errorf("AppendResult(%s, %s)\n got %s\nwant %s", rev, tt.in, got, want)
				}
			}
		})
	}
}

func TestL2M06PromptMessages(t *testing.T) {
	in := `{"messages":[{"role":"user","content":` + link + `},{"role":"assistant","content":` + audio + `}],"description":"d"}`
	for rev, want := range map[spec.Revision]string{
		spec.Rev20251125: in,
		spec.Rev20250618: in,
		spec.Rev20250326: `{"messages":[{"role":"user","content":` + linkAsText + `},{"role":"assistant","content":` + audio + `}],"description":"d"}`,
		spec.Rev20241105: `{"messages":[{"role":"user","content":` + linkAsText + `},{"role":"assistant","content":` + audioAsText + `}],"description":"d"}`,
	} {
		if got := project(t, rev, "prompts/get", `{}`, in, nil); got != want {
			t.Errorf("AppendResult(%s, prompts/get)\n got %s\nwant %s", rev, got, want)
		}
	}
}

func TestL2M09ResultType(t *testing.T) {
	for _, in := range []string{
		`{"resultType":"task","taskId":"1"}`, `{"content":[],"resultType":"input_required"}`, `{"resultType":null}`, `{"resultType":1}`, `[]`, `null`,
	} {
		out, _, err := AppendResult([]byte("kept"), spec.Rev20251125, "tools/call", nil, []byte(in), nil)
		if err == nil || string(out) != "kept" {
			t.Errorf("AppendResult(%s) = %s, %v, want an error and nothing added", in, out, err)
		}
	}
}

// The text for clients is the JSON that the server sent.
func TestAppendQuoted(t *testing.T) {
	for _, in := range []string{`{}`, `"\\\"\u0000 é"`, "[\n\t1 ,\r2]", `{"a":"b\\"}`} {
		if got := wire.Unquote(appendQuoted(nil, []byte(in))); got != in {
			t.Errorf("appendQuoted(%q) says %q", in, got)
		}
	}
}
