package front

import (
	"context"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/moderntest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

const canBeAsked = `{"elicitation":{},"sampling":{},"roots":{}}`

// modernScript returns a script that stands for a modern upstream: it answers with
// body, and notes what it was asked.
func modernScript(body string) (s *moderntest.Script, asked chan *mcp.Request) {
	s, asked = moderntest.NewScript(), make(chan *mcp.Request, 10)
	s.OnServe = func(_ context.Context, req *mcp.Request, _ mcp.Caller) (*mcp.Result, error) {
		asked <- req
		res := mcp.NewResult([]byte(body), nil)
		res.Era, res.ServerInfo = spec.Modern, []byte(`{"name":"up","version":"1"}`)
		return res, nil
	}
	return s, asked
}

func behind(era spec.Era) func(*Options) {
	return func(o *Options) { o.Upstream = func() spec.Era { return era } }
}

// A modern server's questions are its own affair: they reach the client as they came,
// and so do the answers the server.
func TestS01QuestionsPass(t *testing.T) {
	const round = `{ "inputRequests" : {"k":{"method":"elicitation/create","params":{"message":null}}},"resultType":"input_required", "requestState":"theirs","x":null}`
	s, asked := modernScript(round)
	f := frontOf(t, s, behind(spec.Modern))
	params := `,"name":"x","arguments":{"big":9007199254740993},"inputResponses":{"k":{"action":"maybe"}},"requestState":"not\u0020ours"`
	for _, rest := range []string{`,"name":"x"`, params} {
		text := moderntest.Request(`"a"`, "tools/call", canBeAsked, rest)
		w := moderntest.OverHTTP(t, f, text, nil)
		if got, want := w.Body.String(), `{"jsonrpc":"2.0","id":"a","result":`+round+`}`; w.Code != 200 || got != want {
			t.Errorf("answer = %d %s, want 200 %s", w.Code, got, want)
		}
		m, _ := wire.Parse([]byte(text), wire.Options{})
		if got := <-asked; string(got.Params) != string(m.Params) {
			t.Errorf("params = %s, want %s", got.Params, m.Params)
		}
	}
	if n := len(f.parked.byID); n != 0 {
		t.Errorf("%d calls wait, want none", n)
	}
}

// Only of a _meta that has nothing more than an envelope may have it is said so: groups do not look
// into it then.
func TestBareMeta(t *testing.T) {
	s, asked := modernScript(`{"resultType":"complete","content":[]}`)
	f := frontOf(t, s, behind(spec.Modern))
	for member, want := range map[string]bool{
		``: true, `"progressToken":1,`: true, `"io.modelcontextprotocol/logLevel":"info",`: true,
		`"x":1,`: false, `"` + spec.MetaRelatedTasks + `":[],`: false, `"io.modelcontextprotocol\/related\u0054askIds":[],`: false,
	} {
		call := strings.Replace(moderntest.Request("1", "tools/call", "{}", `,"name":"x"`), `"_meta":{`, `"_meta":{`+member, 1)
		w := moderntest.OverHTTP(t, f, call, nil)
		select {
		case req := <-asked:
			if req.BareMeta != want {
				t.Errorf("BareMeta = %v with %s, want %v", req.BareMeta, member, want)
			}
		default:
			t.Errorf("%s was answered with %d %s", call, w.Code, w.Body)
		}
	}
}

// A complete result keeps the server's own stamps, and gets those that it lacks.
func TestS01StampsPass(t *testing.T) {
	s, _ := modernScript(`{"resultType":"complete","tools":[],"ttlMs":5,"cacheScope":"public","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"own"}}}`)
	got := moderntest.OverHTTP(t, frontOf(t, s, behind(spec.Modern)), moderntest.Request("1", "tools/list", "{}", ""), nil).Body.String()
	for _, want := range []string{`"ttlMs":5`, `"cacheScope":"public"`, `{"name":"own"}`} {
		if strings.Count(got, want) != 1 {
			t.Errorf("answer = %s, want %s once", got, want)
		}
	}
	if strings.Contains(got, `"up"`) {
		t.Errorf("answer = %s, want the server's own account of itself", got)
	}
}

// Headers that mirror parameters are held against a schema that is known; what can't
// be judged here is the server's to judge.
func TestS01ParamHeaders(t *testing.T) {
	s, asked := modernScript(`{"resultType":"complete","content":[]}`)
	f := frontOf(t, s, behind(spec.Modern))
	call := moderntest.Request("1", "tools/call", "{}", `,"name":"x","arguments":{"region":"eu"}`)
	other := map[string]string{"Mcp-Param-Region": "us"}
	if w := moderntest.OverHTTP(t, f, call, other); w.Code != 200 || len(asked) != 1 {
		t.Errorf("answer of an unknown tool = %d %s, want 200", w.Code, w.Body)
	}
	f.schemas.Learn("s/0", []byte(`[{"name":"x","inputSchema":{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}}]`))
	if w := moderntest.OverHTTP(t, f, call, other); w.Code != 400 || !strings.Contains(w.Body.String(), `"code":-32020`) || len(asked) != 1 {
		t.Errorf("answer of a known tool = %d %s, want 400 and -32020", w.Code, w.Body)
	}
}

// As long as a server's era is not known a state may be the server's: the verdict is
// awaited. Without one, or before a legacy server, it has to be one of ours.
func TestParksByEra(t *testing.T) {
	for _, tt := range []struct {
		name           string
		before, after  spec.Era
		passes         bool
		wantDescribing int
	}{
		{"modern", spec.Modern, spec.Modern, true, 0},
		{"found to be modern", spec.Unknown, spec.Modern, true, 1},
		{"found to be legacy", spec.Unknown, spec.Legacy, false, 1},
		{"not found out", spec.Unknown, spec.Unknown, false, 1},
		{"legacy", spec.Legacy, spec.Legacy, false, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, asked := modernScript(`{"resultType":"complete","content":[]}`)
			era, described := tt.before, 0
			s.OnDescribe = func() { era = tt.after; described++ }
			f := frontOf(t, s, func(o *Options) { o.Upstream = func() spec.Era { return era } })
			w := moderntest.OverHTTP(t, f, moderntest.Request("1", "tools/call", "{}", `,"name":"x","requestState":"s"`), nil)
			if passed := len(asked) == 1; passed != tt.passes || (w.Code == 200) != tt.passes || described != tt.wantDescribing {
				t.Errorf("passed = %v with %d %s after %d looks, want %v after %d", passed, w.Code, w.Body, described, tt.passes, tt.wantDescribing)
			}
		})
	}
}

// A call that began before the verdict is answered as the server answers.
func TestS01QuestionsPassBeforeTheVerdict(t *testing.T) {
	const round = `{"inputRequests":{},"resultType":"input_required","requestState":"theirs"}`
	s, _ := modernScript(round)
	w := moderntest.OverHTTP(t, frontOf(t, s, behind(spec.Unknown)), moderntest.Request("1", "tools/call", canBeAsked, `,"name":"x"`), nil)
	if got, want := w.Body.String(), `{"jsonrpc":"2.0","id":1,"result":`+round+`}`; got != want {
		t.Errorf("answer = %s, want %s", got, want)
	}
}
