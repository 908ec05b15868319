package group

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/backtest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// call has a client's request served by the group.
func (r *rig) call(ctx context.Context, req *mcp.Request) (string, error) {
	res, err := r.Serve(ctx, req, &backtest.Caller{})
	return backtest.Body(res, err)
}

// wantError fails the test unless err has the code and the text.
func wantError(t *testing.T, what string, err error, code int64, text string) {
	t.Helper()
	var we *wire.Error
	if !errors.As(err, &we) || we.Code != code || !strings.Contains(we.Message, text) {
		t.Errorf("%s: %v, want %d with %q", what, err, code, text)
	}
}

// last returns the last request that the member was asked.
func (f *fake) last(t *testing.T) *mcp.Request {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.asked) == 0 {
		t.Fatalf("%s was not asked", f.name)
	}
	return f.asked[len(f.asked)-1]
}

// A call goes to one member, with its own name and all other bytes as they were; its profile,
// token and headers stay with it.
func TestG11CallsGoToOneMember(t *testing.T) {
	files, docs := newFake("files", "read", "files__x"), newFake("docs", "read")
	docs.pages[spec.MethodPromptsList] = [][]string{toolItems("ask")}
	r := newRig(t, nil, files, docs)
	for _, tt := range []struct{ method, params, sent, answer string }{
		{spec.MethodToolsCall, `{ "arguments":{"name":"files__read","n":1.0}, "name":"docs__read" ,"x":null}`, `{ "arguments":{"name":"files__read","n":1.0}, "name":"read" ,"x":null}`, "docs read"},
		{spec.MethodToolsCall, `{"n\u0061me":"docs\u005f_read"}`, `{"n\u0061me":"read"}`, "docs read"},
		{spec.MethodToolsCall, `{"name":"files__files__x"}`, `{"name":"files__x"}`, "files files__x"},
		{spec.MethodPromptsGet, `{"name":"docs__ask","_meta":{"progressToken":7}}`, `{"name":"ask","_meta":{"progressToken":7}}`, "docs ask"},
	} {
		req := request(tt.method, tt.params)
		req.ProgressToken, req.ParamHeaders = []byte(`7`), map[string][]string{"Mcp-Param-X": {"y"}}
		before := len(files.requests()) + len(docs.requests())
		got, err := r.call(t.Context(), req)
		if err != nil || !strings.Contains(got, tt.answer) {
			t.Errorf("%s = %s, %v, want %s", tt.params, got, err, tt.answer)
		}
		owner := r.members[strings.Fields(tt.answer)[0]]
		if n := len(files.requests()) + len(docs.requests()); n != before+1 {
			t.Errorf("%s: %d members were asked", tt.params, n-before)
		}
		sent := owner.last(t)
		if string(sent.Params) != tt.sent || string(sent.ProgressToken) != "7" || sent.ParamHeaders["Mcp-Param-X"] == nil || sent.Plain.Of(sent.Params) {
			t.Errorf("%s: the member got %s with %s and %v, want %s", tt.params, sent.Params, sent.ProgressToken, sent.ParamHeaders, tt.sent)
		}
	}
}

// No other spelling is a way to a tool or prompt.
func TestG11NoOtherNames(t *testing.T) {
	files, docs := newFake("files", "read", "Read"), newFake("docs", "write")
	files.pages[spec.MethodPromptsList] = [][]string{toolItems("ask")}
	r := newRig(t, nil, files, docs)
	for _, method := range []string{spec.MethodToolsCall, spec.MethodPromptsGet} {
		for _, name := range []string{
			"read", "write", "ask", "", "files", "files_read", "files-read", "Files__read", "FILES__read", "ﬁles__read", "files__read ", " files__read", "files＿＿read", "files%5F%5Fread",
			"files__docs__write", "docs__x", "docs__files__read", "all__read", "all__files__read", "__read", "files__READ", "files__rea\u0000d", "files\u0000__read",
		} {
			got, err := r.call(t.Context(), request(method, `{"name":`+string(wire.Quote(name))+`}`))
			wantError(t, method+" "+name+" "+got, err, spec.CodeInvalidParams, "Unknown")
		}
		for _, params := range []string{``, `{}`, `{"name":null}`, `{"name":7}`, `{"name":["files__read"]}`} {
			_, err := r.call(t.Context(), request(method, params))
			wantError(t, method+params, err, spec.CodeInvalidParams, "params.name is missing")
		}
		_, err := r.call(t.Context(), request(method, `{"Name":"docs__write","name":"files__read"}`))
		wantError(t, "another spelling of the member", err, spec.CodeInvalidParams, "names are case-sensitive")
	}
	for _, f := range []*fake{files, docs} {
		for _, req := range f.asked {
			if name, _ := wire.GetString(req.Params, "name"); name == "read" || name == "write" || name == "ask" {
				t.Errorf("%s was asked %s %s", f.name, req.Method, req.Params)
			}
		}
	}
}

func TestG11AbsentMembersAndMethods(t *testing.T) {
	files, docs := newFake("files", "read"), newFake("docs", "read")
	r := newRig(t, nil, files, docs)
	files.change(func(f *fake) { f.gone = true })
	_, err := r.call(t.Context(), request(spec.MethodToolsCall, `{"name":"files__read"}`))
	wantError(t, "a member that is away", err, spec.CodeInternal, `"files"`)
	if got := docs.requests(); len(got) > 0 {
		t.Errorf("another member was asked %q", got)
	}
	if got, err := r.call(t.Context(), request(spec.MethodPing, "")); got != "{}" || err != nil {
		t.Errorf("ping = %s, %v", got, err)
	}
	for _, method := range []string{spec.MethodSubscribe, spec.MethodInitialize, "tasks/list", "tasks/result", "tasks/x"} {
		_, err := r.call(t.Context(), request(method, `{"uri":"x:/1","taskId":"1"}`))
		wantError(t, method, err, spec.CodeMethodNotFound, `group "all"`)
	}
}

// What the member returns passes as it is.
func TestG11ResultsPass(t *testing.T) {
	files := newFake("files", "read")
	r := newRig(t, nil, files, newFake("docs"))
	const text = `{ "content":[{"type":"text","text":"files__read"}] ,"resultType":"complete","x":1.0}`
	for _, era := range []spec.Era{spec.Modern, spec.Legacy} {
		files.era = era
		files.serve = func(context.Context, *mcp.Request, mcp.Caller) (*mcp.Result, error) {
			res := mcp.NewResult([]byte(text), nil)
			res.Era, res.Extra = era, []byte(`"x":1`)
			return res, nil
		}
		res, err := r.Serve(t.Context(), request(spec.MethodToolsCall, `{"name":"files__read"}`), &backtest.Caller{})
		if err != nil || string(res.Body) != text || res.Era != era || string(res.Extra) != `"x":1` {
			t.Errorf("%v: %s, %v", era, res.Body, err)
		}
	}
	files.serve = func(context.Context, *mcp.Request, mcp.Caller) (*mcp.Result, error) {
		return nil, wire.Errorf(-32000, "no %s", "files__read")
	}
	_, err := r.call(t.Context(), request(spec.MethodToolsCall, `{"name":"files__read"}`))
	wantError(t, "an error", err, -32000, "no files__read")
}

// The era decides whether a call may be parked by the front.
func TestG11Eras(t *testing.T) {
	files, docs := newFake("files"), newFake("docs")
	docs.era = spec.Legacy
	r := newRig(t, nil, files, docs)
	for _, tt := range []struct {
		method, params string
		want           spec.Era
	}{
		{spec.MethodToolsCall, `{"name":"files__x"}`, spec.Modern},
		{spec.MethodPromptsGet, `{"name":"docs__x"}`, spec.Legacy},
		{spec.MethodToolsCall, `{"name":"x"}`, spec.Unknown},
		{spec.MethodResourcesRead, `{"uri":"files__x"}`, spec.Unknown},
	} {
		if got := r.eraOf(request(tt.method, tt.params)); got != tt.want {
			t.Errorf("EraOf(%s %s) = %v, want %v", tt.method, tt.params, got, tt.want)
		}
	}
	docs.era = spec.Modern
	if got := r.eraOf(request(spec.MethodResourcesRead, `{"uri":"x"}`)); got != spec.Modern {
		t.Errorf("where all are modern: %v", got)
	}
	docs.change(func(f *fake) { f.gone = true })
	if got := r.eraOf(request(spec.MethodToolsCall, `{"name":"docs__x"}`)); got != spec.Unknown {
		t.Errorf("of a member that is away: %v", got)
	}
}

func TestG16Completion(t *testing.T) {
	files, docs := newFake("files"), newFake("docs")
	files.capabilities, docs.capabilities = `{"completions":{},"prompts":{},"resources":{}}`, `{"completions":{},"prompts":{},"resources":{}}`
	files.pages[spec.MethodResourcesList] = [][]string{resourceItems("file:///a")}
	docs.pages[spec.MethodResourcesTemplates] = [][]string{{`{"uriTemplate":"doc:///{name}","name":"d"}`}}
	r := newRig(t, nil, files, docs)
	const rest = `,"argument":{"name":"n","value":"docs__ask"}`
	for _, tt := range []struct{ ref, sent, by string }{
		{`{"type":"ref/prompt","name":"docs__ask"}`, `{"type":"ref/prompt","name":"ask"}`, "docs"},
		{`{ "title":"files__ask", "name":"files__ask" ,"type":"ref/prompt"}`, `{ "title":"files__ask", "name":"ask" ,"type":"ref/prompt"}`, "files"},
		{`{"type":"ref/resource","uri":"file:///a"}`, `{"type":"ref/resource","uri":"file:///a"}`, "files"},
		{`{"type":"ref/resource","uri":"doc:///{name}"}`, `{"type":"ref/resource","uri":"doc:///{name}"}`, "docs"},
		{`{"type":"ref/resource","uri":"doc:///x"}`, `{"type":"ref/resource","uri":"doc:///x"}`, "docs"},
	} {
		got, err := r.call(t.Context(), request(spec.MethodComplete, `{"ref":`+tt.ref+rest+`}`))
		if err != nil || !strings.Contains(got, `"values":["`+tt.by+`"]`) {
			t.Errorf("%s = %s, %v, want %s", tt.ref, got, err, tt.by)
			continue
		}
		if sent := string(r.members[tt.by].last(t).Params); sent != `{"ref":`+tt.sent+rest+`}` {
			t.Errorf("%s: the member got %s", tt.ref, sent)
		}
	}
	for _, ref := range []string{
		`{"type":"ref/prompt","name":"ask"}`, `{"type":"ref/prompt","name":"Docs__ask"}`, `{"type":"ref/x"}`, `{}`, `7`,
		`{"type":"ref/prompt","Name":"docs__ask"}`,
	} {
		_, err := r.call(t.Context(), request(spec.MethodComplete, `{"ref":`+ref+rest+`}`))
		wantError(t, ref, err, spec.CodeInvalidParams, "")
	}
}
