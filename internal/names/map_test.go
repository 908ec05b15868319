package names

import (
	"errors"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/trust/policy"
)

// files is what the tests show of a server.
var files = Options{
	Tools: Part{
		Deny:     []string{"write_*", "Drop"},
		Rename:   map[string]string{"read_text_file": "read", "list*": "List", "swap": "paws", "paws": "swap"},
		Describe: map[string]string{"read": "Reads a note.", "plain": "A \"plain\" one."},
	},
	Prompts:   Part{Allow: []string{"ask_*"}, Rename: map[string]string{"ask_me": "ask"}},
	Resources: Part{Deny: []string{"file:///vault/*"}},
}

func mapOf(t *testing.T, o Options) *Map {
	t.Helper()
	m, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// own returns the server's own name of what a request is about; a dash for nothing.
func own(t *testing.T, m *Map, method, params string) string {
	t.Helper()
	op, err := policy.Read(method, []byte(params), nil)
	if err != nil {
		t.Fatalf("%s %s: %v", method, params, err)
	}
	got, renamed, ok := m.Own(op)
	if !ok {
		return "-"
	}
	_, name := got.About()
	if _, asked := op.About(); renamed != (asked != name) {
		t.Errorf("%s %s: renamed = %v, from %q to %q", method, params, renamed, asked, name)
	}
	return name
}

// What clients call a thing is what the server calls it, but for what is hidden, which has no
// name however it is spelled.
func TestG03Own(t *testing.T) {
	m := mapOf(t, files)
	for _, tt := range []struct{ method, params, want string }{
		{"tools/call", `{"name":"other"}`, "other"},
		{"tools/call", `{"name":"read"}`, "read_text_file"},
		{"tools/call", `{"name":"r\u0065ad"}`, "read_text_file"},
		{"tools/call", `{"name":"List"}`, "list*"},
		{"tools/call", `{"name":"swap"}`, "paws"},
		{"tools/call", `{"name":"paws"}`, "swap"},
		{"tools/call", `{"name":"Paws"}`, "-"},
		{"tools/call", `{"name":"read_text_file"}`, "-"},
		{"tools/call", `{"name":"READ_text_file"}`, "-"},
		{"tools/call", `{"name":" read_text_file"}`, "-"},
		{"tools/call", `{"name":"listing"}`, "listing"}, // a name is no pattern
		{"tools/call", `{"name":"write_x"}`, "-"},
		{"tools/call", `{"name":"WRITE_x"}`, "-"},
		{"tools/call", `{"name":"drop"}`, "-"},
		{"prompts/get", `{"name":"ask"}`, "ask_me"},
		{"prompts/get", `{"name":"ask_you"}`, "ask_you"},
		{"prompts/get", `{"name":"ASK_you"}`, "-"}, // allow is as it is written
		{"prompts/get", `{"name":"ask_me"}`, "-"},
		{"prompts/get", `{"name":"read"}`, "-"},
		{"completion/complete", `{"ref":{"type":"ref/prompt","name":"ask"}}`, "ask_me"},
		{"completion/complete", `{"ref":{"type":"ref/prompt","name":"ask_me"}}`, "-"},
		{"completion/complete", `{"ref":{"type":"ref/resource","uri":"file:///vault/{x}"}}`, "-"},
		{"completion/complete", `{"ref":{"type":"ref/prompt","name":"ask","uri":"file:///vault/x"}}`, "-"},
		{"resources/read", `{"uri":"file:///open"}`, "file:///open"},
		{"resources/read", `{"uri":"file:///open/../vault/key"}`, "-"},
		{"resources/subscribe", `{"uri":"FILE:/%76ault/key"}`, "-"},
		{"tools/list", `{}`, ""},
		{"tasks/get", `{"taskId":"write_x"}`, ""},
		{"x/y", `{"name":"write_x"}`, ""},
	} {
		if got := own(t, m, tt.method, tt.params); got != tt.want {
			t.Errorf("%s %s is about %q, want %q", tt.method, tt.params, got, tt.want)
		}
	}
	if got := own(t, nil, "tools/call", `{"name":"write_x"}`); got != "write_x" {
		t.Errorf("of no map: %q", got)
	}
}

// Nothing of an item changes but its name and its description, and an item without a change is
// the very same text.
func TestG03Item(t *testing.T) {
	m := mapOf(t, files)
	for _, tt := range []struct {
		kind       policy.Kind
		item, want string // an empty text is hidden
	}{
		{policy.Tool, `{"name":"other", "x": 1.0 }`, `{"name":"other", "x": 1.0 }`},
		{policy.Tool, "{ \"x\":1e2,\n\"name\" : \"read_text_file\" , \"description\":\"old\",\"inputSchema\": {\"name\":\"read_text_file\"} }", "{ \"x\":1e2,\n\"name\" : \"read\" , \"description\":\"Reads a note.\",\"inputSchema\": {\"name\":\"read_text_file\"} }"},
		{policy.Tool, `{"n\u0061me":"read_text_f\u0069le"}`, `{"n\u0061me":"read","description":"Reads a note."}`},
		{policy.Tool, `{"name":"plain" }`, `{"name":"plain" ,"description":"A \"plain\" one."}`},
		{policy.Tool, `{"name":"swap"}`, `{"name":"paws"}`},
		{policy.Tool, `{"name":"write_x"}`, ``},
		{policy.Tool, `{"name":"wr\u0069te_x"}`, ``},
		{policy.Tool, `{"name":7}`, ``},
		{policy.Prompt, `{"name":"ask_me","title":"ask_me"}`, `{"name":"ask","title":"ask_me"}`},
		{policy.Prompt, `{"name":"read_text_file"}`, ``},
	} {
		got, err := m.Item(tt.kind, "name", []byte(tt.item))
		if string(got) != tt.want || (err != nil) != (tt.want == "") || err != nil && !errors.Is(err, ErrHidden) {
			t.Errorf("Item(%s) = %s, %v, want %s", tt.item, got, err, tt.want)
		}
		if text := []byte(tt.item); tt.want == tt.item {
			if got, _ = m.Item(tt.kind, "name", text); &got[0] != &text[0] {
				t.Errorf("Item(%s) is a copy", tt.item)
			}
		}
	}
	if got, err := m.Item(policy.Resource, "uri", []byte(`{"uri":"file:///vault/../vault/x"}`)); !errors.Is(err, ErrHidden) {
		t.Errorf("a hidden resource = %s, %v", got, err)
	}
	renames := mapOf(t, Options{Tools: Part{Rename: map[string]string{"a": "b"}}})
	if got, err := renames.Item(policy.Tool, "name", []byte(`{"name":7}`)); err != nil || string(got) != `{"name":7}` {
		t.Errorf("an item without a name, where nothing is hidden = %s, %v", got, err)
	}
}

// Of two things that would have one name none is lost in silence: the error has both.
func TestG03Clash(t *testing.T) {
	m := mapOf(t, files)
	for item, want := range map[string]string{
		`{"name":"read"}`:           `"read_text_file" and "read"`,
		`{"name":"Read_Text_File"}`: `"read_text_file" and "Read_Text_File"`,
	} {
		_, err := m.Item(policy.Tool, "name", []byte(item))
		if clash := (*ClashError)(nil); !errors.As(err, &clash) || !strings.Contains(err.Error(), want) {
			t.Errorf("Item(%s) = %v, want an error with %s", item, err, want)
		}
	}
	hidden := mapOf(t, Options{Tools: Part{Deny: []string{"read"}, Rename: map[string]string{"read_text_file": "read"}}})
	if _, err := hidden.Item(policy.Tool, "name", []byte(`{"name":"read"}`)); !errors.Is(err, ErrHidden) {
		t.Errorf("a tool that is hidden to make room: %v, want it hidden", err)
	}
	if got := own(t, hidden, "tools/call", `{"name":"read"}`); got != "read_text_file" {
		t.Errorf("its name is that of %q", got)
	}
}

// Only the name changes in params, where the method has it.
func TestG03Params(t *testing.T) {
	for _, tt := range []struct{ method, params, want string }{
		{"tools/call", `{"arguments": {"name":"read"}, "name" : "read"}`, `{"arguments": {"name":"read"}, "name" : "own"}`},
		{"completion/complete", `{ "argument":{"name":"read","value":"v"},"ref":{"type":"ref/prompt", "name":"read"}}`, `{ "argument":{"name":"read","value":"v"},"ref":{"type":"ref/prompt", "name":"own"}}`},
	} {
		if got := Params(tt.method, []byte(tt.params), "own"); string(got) != tt.want {
			t.Errorf("Params(%s) = %s, want %s", tt.params, got, tt.want)
		}
	}
}

// What is hidden gets the error of what does not exist.
func TestG03Unknown(t *testing.T) {
	for _, tt := range []struct {
		era            spec.Era
		method, params string
		code           int64
		message, data  string
	}{
		{spec.Modern, "tools/call", `{"name":"x"}`, spec.CodeInvalidParams, "Unknown tool: x", ``},
		{spec.Legacy, "tools/call", `{"name":"x"}`, spec.CodeInvalidParams, "Unknown tool: x", ``},
		{spec.Legacy, "prompts/get", `{"name":"x"}`, spec.CodeInvalidParams, "Unknown prompt: x", ``},
		{spec.Modern, "resources/read", `{"uri":"x:y"}`, spec.CodeInvalidParams, "Resource not found", `{"uri":"x:y"}`},
		{spec.Legacy, "resources/read", `{"uri":"x:y"}`, spec.CodeResourceNotFound, "Resource not found", `{"uri":"x:y"}`},
		{spec.Legacy, "completion/complete", `{"ref":{"type":"ref/resource","uri":"x:y"}}`, spec.CodeInvalidParams, "Resource not found", `{"uri":"x:y"}`},
	} {
		op, err := policy.Read(tt.method, []byte(tt.params), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := Unknown(tt.era, &op); got.Code != tt.code || got.Message != tt.message || string(got.Data) != tt.data {
			t.Errorf("%s of %s: %d %q %s, want %d %q %s", tt.method, tt.era, got.Code, got.Message, got.Data, tt.code, tt.message, tt.data)
		}
	}
}

// Logs have the server's own names.
func TestG03Subject(t *testing.T) {
	m := mapOf(t, files)
	for _, tt := range []struct{ method, shown, want string }{
		{"tools/call", "read", "read_text_file"},
		{"tools/call", "ask", "ask"},
		{"prompts/get", "ask", "ask_me"},
		{"completion/complete", "ask", "ask_me"},
		{"resources/read", "read", "read"},
		{"x/y", "read", "read"},
	} {
		if got := m.Called(tt.method, tt.shown); got != tt.want {
			t.Errorf("Called(%s, %s) = %q, want %q", tt.method, tt.shown, got, tt.want)
		}
	}
}

// So have traces, whatever the client has sent.
func TestG03Named(t *testing.T) {
	req := &mcp.Request{Method: "completion/complete", Params: []byte(`{"ref":{"name":"a\u0073k"}}`)}
	if got := mapOf(t, files).Named(req).Subject(); got != "ask_me" {
		t.Errorf("Subject() = %q, want ask_me", got)
	}
	if got := (*Map)(nil).Named(req).Subject(); got != "ask" {
		t.Errorf("Subject() of no map = %q, want ask", got)
	}
}

// Contradictions are mistakes: nothing depends on which of two the program likes.
func TestG03Contradictions(t *testing.T) {
	rename := func(kv ...string) Part {
		p := Part{Rename: make(map[string]string)}
		for i := 0; i < len(kv); i += 2 {
			p.Rename[kv[i]] = kv[i+1]
		}
		return p
	}
	with := func(p Part, change func(*Part)) Part { change(&p); return p }
	for _, tt := range []struct {
		name  string
		tools Part
		want  string // empty for none
	}{
		{"nothing", Part{}, ""},
		{"two of one name", rename("a", "x", "b", "x"), `tools.rename.b: "x" would be the name of "a", too`},
		{"its own name", rename("a", "a"), "tools.rename.a: has that name already"},
		{"a swap", rename("a", "b", "b", "a"), ""},
		{"two cases", rename("a", "x", "A", "y"), "tools.rename.a: and \"A\" differ only in case"},
		{"a space", rename("a", "my tool"), "is not a name that clients take"},
		{"no name", rename("a", ""), "is not a name that clients take"},
		{"too long", rename("a", strings.Repeat("x", 129)), "is not a name that clients take"},
		{"what allow shows", with(rename("a", "b"), func(p *Part) { p.Allow = []string{"a", "b"} }), `"b" is the name of something else`},
		{"what allow would show", with(rename("a", "b"), func(p *Part) { p.Allow, p.Deny = []string{"a", "b"}, []string{"b"} }), ""},
		{"of what is denied", with(rename("a", "b"), func(p *Part) { p.Deny = []string{"a"} }), "tools.rename.a: is hidden"},
		{"of what is not allowed", with(rename("a", "b"), func(p *Part) { p.Allow = []string{"b"} }), "tools.rename.a: is hidden"},
		{"no patterns", Part{Allow: []string{}}, "tools.allow: is empty"},
		{"description of what is hidden", Part{Deny: []string{"a"}, Describe: map[string]string{"a": "x"}}, "tools.describe.a: is hidden"},
		{"two descriptions", with(rename("a", "b"), func(p *Part) { p.Describe = map[string]string{"a": "x", "b": "y"} }), "tools.describe.b: is described as \"a\", too"},
		{"an empty description", Part{Describe: map[string]string{"a": ""}}, "tools.describe.a: is empty"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m, err := New(Options{Tools: tt.tools})
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("New = %v, want %q", err, tt.want)
			}
			if tt.name == "nothing" && m != nil {
				t.Error("New = a map, want none where there is nothing to do")
			}
		})
	}
	if _, err := New(Options{Resources: rename("a", "b")}); err == nil {
		t.Error("resources were renamed")
	}
	prompt := rename("a", "a prompt / für dich")
	if _, err := New(Options{Prompts: prompt}); err != nil {
		t.Errorf("a prompt of another form: %v", err)
	}
}

// A rename costs an item nothing but itself.
func BenchmarkItem(b *testing.B) {
	m, err := New(files)
	if err != nil {
		b.Fatal(err)
	}
	item := []byte(`{"name":"other_tool","description":"Reads a file.","inputSchema":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}}`)
	b.ReportAllocs()
	for b.Loop() {
		if got, err := m.Item(policy.Tool, "name", item); err != nil || len(got) != len(item) {
			b.Fatal(err)
		}
	}
}
