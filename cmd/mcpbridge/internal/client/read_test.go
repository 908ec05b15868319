package client

import (
	"errors"
	"strings"
	"testing"
)

func answerWith(result string) string { return `{"jsonrpc":"2.0","id":1,` + result + `}` }

// Texts are printed as they are; of what is no text, what it is.
func TestRead(t *testing.T) {
	const contents = `"result":{"resultType":"complete","contents":[{"uri":"note://todo","text":"buy milk\n"},{"uri":"note://a","mimeType":"image/png","blob":"AAAA"},{"uri":"note://b","text":""}]}`
	s := &script{answers: map[string]string{"resources/read": answerWith(contents)}}
	p := s.start(t)
	err := p.Read(t.Context(), "note://tödo")
	if out, _ := p.printed(); err != nil || out != "buy milk\n\n[image/png, 4 bytes of base64]\n\n" {
		t.Errorf("Read = %v, and prints %q", err, out)
	}
	if got := s.got[0].Header.Get("Mcp-Name"); got != "=?base64?bm90ZTovL3TDtmRv?=" || !strings.Contains(s.body[0], `"params":{"uri":"note://tödo","_meta":{`) {
		t.Errorf("the request has Mcp-Name %s, and is %s", got, s.body[0])
	}
	p = s.start(t)
	p.AsJSON = true
	err = p.Read(t.Context(), "note://todo")
	if out, _ := p.printed(); err != nil || out != answerWith(contents)+"\n" {
		t.Errorf("Read = %v, and prints as JSON %q, want the response", err, out)
	}
}

// The messages of a prompt are printed with who says them.
func TestPrompt(t *testing.T) {
	s := &script{answers: map[string]string{"prompts/get": answerWith(`"result":{"messages":[` +
		`{"role":"user","content":{"type":"text","text":"Sum up."}},{"role":"assistant","content":{"type":"resource_link","uri":"note://todo"}}]}`)}}
	p := s.start(t)
	err := p.Prompt(t.Context(), "summarize", []string{"name=5", "of=a=b"})
	if out, _ := p.printed(); err != nil || out != "user: Sum up.\nassistant: [link to note://todo]\n" {
		t.Errorf("Prompt = %v, and prints %q", err, out)
	}
	if want := `"params":{"name":"summarize","arguments":{"name":"5","of":"a=b"},"_meta":{`; !strings.Contains(s.body[0], want) {
		t.Errorf("the request is %s, want %s in it", s.body[0], want)
	}
	var words *WordsError
	if err := p.Prompt(t.Context(), "summarize", []string{"name"}); !errors.As(err, &words) || err.Error() != `"name" is not an argument; write key=value, or key:=JSON` || len(s.got) != 1 {
		t.Errorf("Prompt = %v after %d requests, want the words to be wrong before anything is sent", err, len(s.got))
	}
}

// Errors say what was wanted of whom; and where the server may not have it, what to do.
func TestReadErrors(t *testing.T) {
	for _, tt := range []struct{ name, answer, want string }{
		{"it is not there", answerWith(`"error":{"code":-32602,"message":"no such note"}`), "no such note (code -32602); mcpbridge ls shows what it has"},
		{"as the older era says so", answerWith(`"error":{"code":-32002,"message":"Resource not found"}`), "Resource not found (code -32002); mcpbridge ls shows what it has"},
		{"anything else", answerWith(`"error":{"code":-32603,"message":"the disk is away"}`), "the disk is away (code -32603)"},
		{"questions", answerWith(`"result":{"resultType":"input_required","inputRequests":{}}`), "it asks questions, which can't be answered here; use a client that can"},
	} {
		p := (&script{answers: map[string]string{"resources/read": tt.answer, "prompts/get": tt.answer}}).start(t)
		if err, want := p.Read(t.Context(), "note://x"), "reading note://x of "+p.Name+": "+tt.want; err == nil || err.Error() != want {
			t.Errorf("%s: Read = %v, want %s", tt.name, err, want)
		}
		if err, want := p.Prompt(t.Context(), "x", nil), "getting x of "+p.Name+": "+tt.want; err == nil || err.Error() != want {
			t.Errorf("%s: Prompt = %v, want %s", tt.name, err, want)
		}
	}
}

// ls prints what the server says that it has, list by list, and asks for no other.
func TestList(t *testing.T) {
	s := &script{answers: map[string]string{
		"server/discover":          answerWith(`"result":{"capabilities":{"tools":{},"resources":{}}}`),
		"tools/list":               answerWith(`"result":{"tools":[{"name":"edit","description":"Edits.\nMore."},{"name":"a` + "\u202e" + `b"}]}`),
		"resources/list":           answerWith(`"result":{"resources":[]}`),
		"resources/templates/list": answerWith(`"result":{"resourceTemplates":[{"uriTemplate":"note://{name}","name":"note","description":"One note."}]}`),
	}}
	p := s.start(t)
	err := p.List(t.Context())
	const want = "tools\n  edit                     Edits.\n  a\\u202eb\nresource templates\n  note://{name}            One note.\n"
	if out, _ := p.printed(); err != nil || out != want {
		t.Errorf("List = %v, and prints\n%s\nwant\n%s", err, out, want)
	}
	for _, r := range s.got {
		if r.Header.Get("Mcp-Method") == "prompts/list" {
			t.Error("it asked for prompts, which the server does not have")
		}
	}
	p = s.start(t)
	p.AsJSON = true
	err = p.List(t.Context())
	if out, _ := p.printed(); err != nil || !strings.Contains(out, "\"resources\": [],\n") || strings.Contains(out, `"prompts"`) || !strings.Contains(out, `"description": "Edits.\nMore."`) {
		t.Errorf("List = %v, and prints as JSON %s", err, out)
	}
}

func TestListErrors(t *testing.T) {
	const discovered = `"result":{"capabilities":{"prompts":{}}}`
	for _, tt := range []struct{ name, discover, list, out, err string }{
		{"nothing", `"result":{"capabilities":{}}`, "", "it has no tools, no prompts and no resources\n", ""},
		{"empty lists", discovered, `"result":{"prompts":[]}`, "it has no tools, no prompts and no resources\n", ""},
		{"no answer to what it has", `"error":{"code":-32601,"message":"Method not found"}`, "", "", "asking URL what it has: Method not found (code -32601)"},
		{"no list", discovered, `"error":{"code":-32603,"message":"the disk is away"}`, "", "listing the prompts of URL: the disk is away (code -32603)"},
	} {
		p := (&script{answers: map[string]string{"server/discover": answerWith(tt.discover), "prompts/list": answerWith(tt.list)}}).start(t)
		err := p.List(t.Context())
		out, _ := p.printed()
		if want := strings.ReplaceAll(tt.err, "URL", p.Name); out != tt.out || want == "" && err != nil || want != "" && (err == nil || err.Error() != want) {
			t.Errorf("%s: List = %v, and prints %q, want %q and %q", tt.name, err, out, want, tt.out)
		}
	}
}
