package router

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/wire"
)

const serverInfo = `"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"peer","version":"7"}}`

// result returns the result of an answer, or fails. An answer that takes long is a stream.
func (a answer) result(t *testing.T) json.RawMessage {
	t.Helper()
	text := a.body
	if at := strings.LastIndex(text, "data: {"); at >= 0 && !strings.HasPrefix(text, "{") {
		text, _, _ = strings.Cut(text[at+len("data: "):], "\n")
	}
	m, err := wire.Parse([]byte(text), wire.Options{})
	if err != nil || m.Result == nil {
		t.Fatalf("answer = %d %s (%v), want a result", a.status, a.body, err)
	}
	return m.Result
}

func TestM2L08ResultsAreStamped(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	const cached = `"ttlMs":0,"cacheScope":"private",`
	for _, tt := range []struct{ method, name, rest, sent, want string }{
		{"tools/list", "", "", `{"tools":[],"nextCursor":"n"}`, `{"tools":[],"nextCursor":"n","resultType":"complete",` + cached + serverInfo + `}`},
		{"prompts/list", "", "", `{"prompts":[]}`, `{"prompts":[],"resultType":"complete",` + cached + serverInfo + `}`},
		{"resources/list", "", "", `{"resources":[]}`, `{"resources":[],"resultType":"complete",` + cached + serverInfo + `}`},
		{"resources/templates/list", "", "", `{"resourceTemplates":[]}`, `{"resourceTemplates":[],"resultType":"complete",` + cached + serverInfo + `}`},
		{"resources/read", "u:x", `"uri":"u:x"`, `{"contents":[{"uri":"u:x","text":"t"}]}`, `{"contents":[{"uri":"u:x","text":"t"}],"resultType":"complete",` + cached + serverInfo + `}`},
		{"tools/call", "a", `"name":"a"`, `{"content":[],"isError":false}`, `{"content":[],"isError":false,"resultType":"complete",` + serverInfo + `}`},
		{"prompts/get", "p", `"name":"p"`, `{"messages":[]}`, `{"messages":[],"resultType":"complete",` + serverInfo + `}`},
		{"completion/complete", "", "", `{"completion":{"values":["a"]}}`, `{"completion":{"values":["a"]},"resultType":"complete",` + serverInfo + `}`},
		{"x/extension", "", "", `{"n":1.50,"big":9007199254740993}`, `{"n":1.50,"big":9007199254740993,"resultType":"complete",` + serverInfo + `}`},
	} {
		t.Run("M2L-08 "+tt.method, func(t *testing.T) {
			r.peer.answer(tt.method, tt.sent)
			if got := string(r.call(t, "1", tt.method, tt.name, tt.rest).result(t)); got != tt.want {
				t.Errorf("result = %s\nwant     %s", got, tt.want)
			}
		})
	}
	t.Run("M2L-08 leaked stamps are replaced, other _meta stays", func(t *testing.T) {
		r.peer.answer("tools/list", `{"resultType":"x","ttlMs":5,"cacheScope":"public","_meta":{"a":1},"tools":[]}`)
		want := `{"tools":[],"resultType":"complete",` + cached + `"_meta":{"a":1,` + strings.TrimPrefix(serverInfo, `"_meta":{`) + `}`
		if got := string(r.call(t, "1", "tools/list", "", "").result(t)); got != want {
			t.Errorf("result = %s\nwant     %s", got, want)
		}
	})
}

func TestM2L09ResultsAreRepaired(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	many := make([]string, 130)
	for i := range many {
		many[i] = fmt.Sprintf(`"v%d"`, i)
	}
	for _, tt := range []struct{ name, method, tool, rest, sent, member, want string }{
		{"content missing", "tools/call", "a", `"name":"a"`, `{}`, "content", `[]`},
		{"content null", "tools/call", "a", `"name":"a"`, `{"content":null}`, "content", `[]`},
		{"isError null", "tools/call", "a", `"name":"a"`, `{"content":[],"isError":null}`, "isError", ``},
		{"null in a block", "tools/call", "a", `"name":"a"`, `{"content":[{"type":"text","text":"null","annotations":null,"x":null}]}`, "content", `[{"type":"text","text":"null","x":null}]`},
		{"structuredContent untouched", "tools/call", "a", `"name":"a"`, `{"structuredContent":{"description":null}}`, "structuredContent", `{"description":null}`},
		{"structuredContent null", "tools/call", "a", `"name":"a"`, `{"structuredContent":null}`, "structuredContent", `null`},
		{"unknown member null", "tools/call", "a", `"name":"a"`, `{"x":null}`, "x", `null`},
		{"nextCursor null", "tools/list", "", "", `{"tools":[],"nextCursor":null}`, "nextCursor", ``},
		{"list null", "prompts/list", "", "", `{"prompts":null}`, "prompts", `[]`},
		{"nulls in items", "resources/list", "", "", `{"resources":[{"uri":"u","name":"n","description":null,"size":null,"x":null}]}`, "resources", `[{"uri":"u","name":"n","x":null}]`},
		{"inputSchema missing", "tools/list", "", "", `{"tools":[{"name":"t"}]}`, "tools", `[{"name":"t","inputSchema":{"type":"object"}}]`},
		{"inputSchema null", "tools/list", "", "", `{"tools":[{"name":"t","inputSchema":null}]}`, "tools", `[{"name":"t","inputSchema":{"type":"object"}}]`},
		{"inputSchema without type", "tools/list", "", "", `{"tools":[{"name":"t","inputSchema":{"properties":{"a":{"default":null}}}}]}`, "tools", `[{"name":"t","inputSchema":{"properties":{"a":{"default":null}},"type":"object"}}]`},
		{"tool with another root left out", "tools/list", "", "", `{"tools":[{"name":"bad","inputSchema":{"type":"string"}},{"name":"t","inputSchema":{"type":"object"}}]}`, "tools", `[{"name":"t","inputSchema":{"type":"object"}}]`},
		{"outputSchema of any root stays", "tools/list", "", "", `{"tools":[{"name":"t","inputSchema":{"type":"object"},"outputSchema":{"type":"array"}}]}`, "tools", `[{"name":"t","inputSchema":{"type":"object"},"outputSchema":{"type":"array"}}]`},
		{"M2L-07 execution left out", "tools/list", "", "", `{"tools":[{"name":"t","inputSchema":{"type":"object"},"execution":{"taskSupport":"optional"}}]}`, "tools", `[{"name":"t","inputSchema":{"type":"object"}}]`},
		{"completions cut", "completion/complete", "", "", `{"completion":{"values":[` + strings.Join(many, ",") + `],"total":130,"hasMore":false}}`, "completion", `{"values":[` + strings.Join(many[:100], ",") + `],"total":130,"hasMore":true}`},
	} {
		t.Run("M2L-09 "+tt.name, func(t *testing.T) {
			r.peer.answer(tt.method, tt.sent)
			if got := string(wire.Get(r.call(t, "1", tt.method, tt.tool, tt.rest).result(t), tt.member)); got != tt.want {
				t.Errorf("%s = %s, want %s", tt.member, got, tt.want)
			}
		})
	}
	if !strings.Contains(r.logs.String(), "tool left out of the list") || !strings.Contains(r.logs.String(), "tool=bad") {
		t.Errorf("log = %s, want a warning that names the tool", r.logs)
	}
}

func TestF02ParameterHeaders(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.peer.answer("tools/list", `{"tools":[{"name":"sql","inputSchema":{"type":"object","properties":{
		"region":{"type":"string","x-mcp-header":"Region"},"n":{"type":"integer","x-mcp-header":"N"},
		"o":{"type":"object","properties":{"z":{"type":"boolean","x-mcp-header":"Z"}}}}}}]}`)
	r.peer.answer("tools/call", `{"content":[]}`)
	send := func(args string, header map[string]string) answer {
		h := modernHeaders("tools/call", "sql")
		for k, v := range header {
			h.Set(k, v)
		}
		return r.send(t, http.MethodPost, modernBody("1", "tools/call", `"name":"sql","arguments":`+args), h)
	}
	if got := send(`{"region":"x"}`, nil); got.status != 200 {
		t.Errorf("before the schema is known: %d %s, want 200", got.status, got.body)
	}
	r.call(t, "1", "tools/list", "", "")
	for _, tt := range []struct {
		name, args string
		header     map[string]string
		status     int
		code       int64
	}{
		{"all there", `{"region":"eu","n":42,"o":{"z":true}}`, map[string]string{"Mcp-Param-Region": "eu", "Mcp-Param-N": "42", "Mcp-Param-Z": "true"}, 200, 0},
		{"encoded", `{"region":"é"}`, map[string]string{"Mcp-Param-Region": "=?base64?w6k=?="}, 200, 0},
		{"numbers as numbers", `{"n":42}`, map[string]string{"Mcp-Param-N": "42.0"}, 200, 0},
		{"unknown header passes", `{}`, map[string]string{"Mcp-Param-Other": "x"}, 200, 0},
		{"null needs none", `{"region":null}`, nil, 200, 0},
		{"missing", `{"region":"eu"}`, nil, 400, -32020},
		{"different", `{"region":"eu"}`, map[string]string{"Mcp-Param-Region": "us"}, 400, -32020},
		{"different number", `{"n":9007199254740993}`, map[string]string{"Mcp-Param-N": "9007199254740992"}, 400, -32020},
		{"nested different", `{"o":{"z":true}}`, map[string]string{"Mcp-Param-Z": "false"}, 400, -32020},
		{"argument missing", `{}`, map[string]string{"Mcp-Param-Region": "eu"}, 400, -32020},
		{"F-07 duplicate mirrored argument", `{"region":"eu","region":"us"}`, map[string]string{"Mcp-Param-Region": "eu"}, 400, -32600},
	} {
		t.Run("F-02 "+tt.name, func(t *testing.T) {
			if got := send(tt.args, tt.header); got.status != tt.status || got.code() != tt.code {
				t.Errorf("%d %s, want %d, code %d", got.status, got.body, tt.status, tt.code)
			}
		})
	}
}

// Large members are not copied on their way to a JSON body: they must arrive in
// their place all the same, in either form of the answer.
func TestLargeResultsArriveWhole(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	for _, n := range []int{64 << 10, 127 << 10, 128 << 10, 300 << 10} {
		large := `{"type":"text","text":"` + strings.Repeat("x", n) + `"}`
		for _, tt := range []struct{ name, sent, want string }{
			{"list", `{"content":[` + large + `],"isError":false}`, `{"content":[` + large + `],"isError":false,`},
			{"two", `{"content":[` + large + `],"structuredContent":` + large + `}`, `{"content":[` + large + `],"structuredContent":` + large + `,`},
			{"with a null to remove", `{"content":[{"title":null,` + large[1:] + `]}`, `{"content":[` + large + `],`},
		} {
			t.Run(fmt.Sprintf("%s of %d bytes", tt.name, n), func(t *testing.T) {
				r.peer.answer("tools/call", tt.sent)
				want := tt.want + `"resultType":"complete",` + serverInfo + `}`
				for _, accept := range []string{"application/json, text/event-stream", "text/event-stream"} {
					h := modernHeaders("tools/call", "a")
					h.Set("Accept", accept)
					a := r.send(t, http.MethodPost, modernBody("1", "tools/call", `"name":"a"`), h)
					_, a.body, _ = strings.Cut("data: "+strings.TrimPrefix(a.body, "event: message\ndata: "), "data: ")
					got := a.result(t)
					if string(got) != want {
						t.Errorf("accepting %s: result has %d bytes, want %d; it begins %.80s", accept, len(got), len(want), got)
					}
				}
			})
		}
	}
}
