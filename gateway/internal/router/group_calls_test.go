package router

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/mcpbridge/mcpbridge/gateway/internal/access"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/names"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/trust/audit"
	"github.com/mcpbridge/mcpbridge/internal/trust/auth"
	"github.com/mcpbridge/mcpbridge/internal/trust/policy"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	legacyback "github.com/mcpbridge/mcpbridge/legacy/back"
	modernback "github.com/mcpbridge/mcpbridge/modern/back"
)

// asksWho has the legacy member of a rig ask for a name during each call.
func (r *groupRig) asksWho() {
	r.old.mu.Lock()
	defer r.old.mu.Unlock()
	r.old.handle["tools/call"] = func(c *peerCall) string {
		return say(c.ask("elicitation/create", `{"message":"who?","requestedSchema":{"type":"object","properties":{}}}`))
	}
}

// What members of both eras ask reaches clients of both eras with the member's name, and the
// answer the member.
func TestG15QuestionsThroughGroups(t *testing.T) {
	t.Parallel()
	r := newGroupRig(t, nil)
	r.asksWho()
	for tool, member := range map[string]string{"old__a": "old", "new__ask": "new"} {
		t.Run(tool, func(t *testing.T) {
			v := r.visit(t, spec.Modern, "all")
			first := v.call(tool, "")
			rd := first.round(t)
			if q := string(rd.Requests[rd.key("elicitation/create")].Params); !strings.Contains(q, `"message":"`+member+`: who?"`) || !strings.Contains(first.body, `"dev.mcpbridge/server":"`+member+`"`) {
				t.Errorf("a modern client is asked %s", first.body)
			}
			answers := rd.retry(map[string]string{"elicitation/create": accept})
			other := map[string]string{"old__a": "new__ask", "new__ask": "old__a"}[tool]
			if got := v.call(other, answers); got.code() != spec.CodeInvalidParams {
				t.Errorf("the answer at another member = %d %s", got.status, got.body)
			}
			if got := v.call(tool, answers); !strings.Contains(got.body, "Ada") {
				t.Errorf("the answer of a modern client = %d %s", got.status, got.body)
			}
			l := r.visit(t, spec.Legacy, "all")
			res := l.open(spec.MethodToolsCall, tool, `"name":"`+tool+`","arguments":{}`)
			res.want(`"message":"` + member + `: who?"`)
			asked := res.seen[len(res.seen)-1]
			if !strings.Contains(asked, `"_meta":{"dev.mcpbridge/server":"`+member+`"}`) {
				t.Errorf("a legacy client is asked %s", asked)
			}
			l.post(`{"jsonrpc":"2.0","id":` + string(wire.Get([]byte(asked), "id")) + `,"result":` + accept + `}`)
			res.want("Ada")
		})
	}
}

// withOthers adds a second group of the same members, and authentication.
func withOthers(o *Options) {
	o.Auth = auth.Func(func(r *http.Request) (mcp.Principal, error) { return mcp.Principal(r.Header.Get(whoHeader)), nil })
	o.Servers = append(o.Servers, ServerOptions{Name: "others", Group: groupOf("old", "new")})
}

// as returns a modern client of a principal.
func (r *groupRig) as(t *testing.T, who, server string) *visitor {
	v := r.visit(t, spec.Modern, server)
	v.who, v.capabilities = who, strings.TrimSuffix(allQuestions, "}")+`,"extensions":{"io.modelcontextprotocol/tasks":{}}}`
	return v
}

// A task is that of its group, member and principal, and so is the state of a call.
func TestG12TasksAndStatesOfGroups(t *testing.T) {
	t.Parallel()
	r := newGroupRig(t, withOthers)
	ada := r.as(t, "ada", "all")
	made := ada.call("new__task", "")
	id, _ := wire.GetString(made.result(t), "taskId")
	if !strings.HasPrefix(id, "new:task-1") {
		t.Fatalf("the task is %s", made.body)
	}
	get := func(v *visitor, id string) answer {
		return v.ask(spec.MethodTaskGet, id, `"taskId":`+string(wire.Quote(id)))
	}
	if got := get(ada, id); !strings.Contains(got.body, `"status":"working"`) || !strings.Contains(got.body, string(wire.Quote(id))) {
		t.Errorf("the task = %d %s", got.status, got.body)
	}
	l := ada.open(spec.MethodListen, "", `"notifications":{"toolsListChanged":true,"taskIds":["task-1","`+id+`"]}`)
	l.want(`"notifications":{"toolsListChanged":true,"taskIds":["` + id + `"]}`)
	first := ada.call("new__ask", "")
	answers := first.round(t).retry(map[string]string{"elicitation/create": accept})
	for what, v := range map[string]*visitor{"another principal": r.as(t, "bob", "all"), "another group": r.as(t, "ada", "others"), "the member's endpoint": r.as(t, "ada", "new")} {
		if got := get(v, id); got.code() != spec.CodeInvalidParams || strings.Contains(got.body, "working") {
			t.Errorf("the task at %s = %d %s", what, got.status, got.body)
		}
		tool := "new__ask"
		if what == "the member's endpoint" {
			tool = "ask"
		}
		if got := v.call(tool, answers); got.code() != spec.CodeInvalidParams {
			t.Errorf("the state at %s = %d %s", what, got.status, got.body)
		}
	}
	if got := get(ada, "task-1"); got.code() != spec.CodeInvalidParams || !strings.Contains(got.body, "Task not found") {
		t.Errorf("the member's own id = %d %s", got.status, got.body)
	}
	own := r.as(t, "ada", "new").call("ask", "").round(t).retry(map[string]string{"elicitation/create": accept})
	if got := ada.call("new__ask", own); got.code() != spec.CodeInvalidParams {
		t.Errorf("the member's own state = %d %s", got.status, got.body)
	}
	if got := ada.call("new__ask", answers); !strings.Contains(got.body, "done for state-") {
		t.Errorf("the state = %d %s", got.status, got.body)
	}
}

// A bare name of an app is no way around the policies of the group and of the member.
func TestG06PoliciesOfGroups(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"nobody", "all", "old"} {
		r := newGroupRig(t, func(o *Options) {
			o.Servers[0].Access.Policy = policy.New(true, []policy.Rule{{Deny: at == "old", Tools: []string{"a"}}})
			o.Servers[2].Access.Policy = policy.New(true, []policy.Rule{{Deny: at == "all", Tools: []string{"old__a"}}})
		})
		r.old.answer("tools/list", `{"tools":[{"name":"a","inputSchema":{"type":"object"},"_meta":{"ui":{"resourceUri":"ui://a"}}},{"name":"b","inputSchema":{"type":"object"}}]}`)
		for _, era := range bothEras {
			v := r.visit(t, era, "all")
			for _, name := range []string{"old__a", "a"} {
				got := v.call(name, "")
				denied := at == "all" && strings.Contains(got.body, `the policy of server \"all\" denies`) || at == "old" && got.code() != 0
				if at == "nobody" && !strings.Contains(got.body, "of old") || at != "nobody" && !denied {
					t.Errorf("%v, denied at %s: %s = %d %s", era, at, name, got.status, got.body)
				}
			}
			if got := v.call("b", ""); got.code() != spec.CodeInvalidParams {
				t.Errorf("%v: a tool that is not for apps = %d %s", era, got.status, got.body)
			}
		}
		if n := len(r.old.sent("tools/call")); at != "nobody" && n > 0 {
			t.Errorf("denied at %s: the member got %d calls", at, n)
		}
	}
}

// Headers follow the member: its own name, and what its schema repeats.
func TestG11HeadersFollowTheMember(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var heads []http.Header
	odd := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		m, ok := readMessage(w, q)
		if !ok {
			return
		}
		if m.Method == spec.MethodToolsCall {
			mu.Lock()
			heads = append(heads, q.Header.Clone())
			mu.Unlock()
		}
		writeAnswer(w, m.ID, map[string]string{
			spec.MethodDiscover:  `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":60000,"cacheScope":"public"}`,
			spec.MethodToolsList: `{"resultType":"complete","tools":[{"name":"dö","inputSchema":{"type":"object","properties":{"to":{"type":"string","x-mcp-header":"To"}}}}],"ttlMs":0,"cacheScope":"private"}`,
			spec.MethodToolsCall: `{"resultType":"complete","content":[]}`,
		}[m.Method])
	}))
	t.Cleanup(odd.Close)
	r := newGroupRig(t, func(o *Options) {
		o.Servers[2].Group = groupOf("old", "odd")
		o.Servers = append(o.Servers, ServerOptions{Name: "odd", Open: func(c mcp.Changes) (mcp.Back, error) {
			return modernback.New(modernback.Options{Options: memberOptions("odd", odd.URL, o, c)})
		}})
	})
	for _, era := range bothEras {
		v := r.visit(t, era, "all")
		list := v.ask(spec.MethodToolsList, "", "")
		_, rest, _ := strings.Cut(list.body, `"name":"odd__`)
		name, _, _ := strings.Cut(rest, `"`)
		name = "odd__" + name
		body, h := v.body(spec.MethodToolsCall, `"name":"`+name+`","arguments":{"to":"Ulm"}`), v.headers(spec.MethodToolsCall, name)
		if era == spec.Modern {
			h.Set("Mcp-Param-To", "Ulm")
		}
		if got := r.sendTo(t, http.MethodPost, v.path, body, "", h); got.status != 200 || got.code() != 0 {
			t.Fatalf("%v: a call of %s = %d %s", era, name, got.status, got.body)
		}
		mu.Lock()
		last := heads[len(heads)-1]
		mu.Unlock()
		if got := fmt.Sprint(last["Mcp-Name"], last["Mcp-Param-To"]); got != "[=?base64?ZMO2?=] [Ulm]" {
			t.Errorf("%v: the member got the headers %s", era, got)
		}
		if era == spec.Modern {
			h.Set("Mcp-Param-To", "Bonn")
			if got := r.sendTo(t, http.MethodPost, v.path, body, "", h); got.code() != spec.CodeHeaderMismatch {
				t.Errorf("a header that differs = %d %s", got.status, got.body)
			}
		}
	}
}

// A URI that a member has handed out is read from it, whichever era it is of.
func TestG05URIsThroughGroups(t *testing.T) {
	t.Parallel()
	older := newPeer(t)
	r := newGroupRig(t, func(o *Options) {
		o.Servers = append(o.Servers, ServerOptions{Name: "older", Open: func(c mcp.Changes) (mcp.Back, error) {
			return legacyback.New(legacyback.Options{Options: memberOptions("older", older.URL, o, c)})
		}}, ServerOptions{Name: "olds", Group: groupOf("old", "older")})
	})
	t.Cleanup(older.CloseClientConnections)
	r.old.answer("resources/list", `{"resources":[{"uri":"x:/listed","name":"l"}]}`)
	r.old.answer("tools/call", `{"content":[{"type":"resource_link","uri":"x:/made","name":"m"}]}`)
	r.old.answer("resources/read", `{"contents":[{"uri":"x:/y","text":"from old"}]}`)
	for _, era := range bothEras {
		v := r.visit(t, era, "all")
		v.call("old__a", "")
		for _, uri := range []string{"x:/listed", "x:/made"} {
			if got := v.ask(spec.MethodResourcesRead, uri, `"uri":"`+uri+`"`); !strings.Contains(got.body, "from old") {
				t.Errorf("%v: %s = %d %s", era, uri, got.status, got.body)
			}
		}
	}
	for _, p := range []*scriptedPeer{r.old, older} {
		p.answer("resources/read", `{"code":-32002,"message":"gone"}`)
	}
	for era, code := range map[spec.Era]int64{spec.Modern: spec.CodeInvalidParams, spec.Legacy: spec.CodeResourceNotFound} {
		if got := r.visit(t, era, "olds").ask(spec.MethodResourcesRead, "x:/nobody", `"uri":"x:/nobody"`); int64(got.code()) != code {
			t.Errorf("%v: what nobody has = %d %s", era, got.status, got.body)
		}
	}
}

// No spelling, alias or other method is a way through a group to what a member hides, or calls
// otherwise: it is refused, and stands in the audit log.
func TestG11NoWayAround(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit")
	log, err := audit.Open(audit.Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() })
	shown, err := names.New(names.Options{
		Tools:   names.Part{Deny: []string{"secret*"}, Rename: map[string]string{"a": "alpha"}},
		Prompts: names.Part{Deny: []string{"hush"}}, Resources: names.Part{Deny: []string{"x:/secret/*"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	r := newGroupRig(t, func(o *Options) {
		for i := range o.Servers {
			o.Servers[i].Access.Audit = log
		}
		o.Servers[0].Access.Names = shown
		o.Servers = append(o.Servers, ServerOptions{Name: "olds", Group: groupOf("old"), Access: access.Options{Audit: log}})
	})
	const ui = `"inputSchema":{"type":"object"},"_meta":{"ui":{}}`
	r.old.answer("tools/list", `{"tools":[{"name":"a",`+ui+`},{"name":"secret",`+ui+`}]}`)
	r.old.answer("resources/templates/list", `{"resourceTemplates":[{"uriTemplate":"x:/{+all}","name":"x"}]}`)
	tried := 0
	for _, era := range bothEras {
		v := r.visit(t, era, "olds")
		for _, name := range []string{
			"old__secret", "old__SECRET", "old__ſecret", "old__secret_x", "old__secret%78", "old__secret ", "secret", "Secret", "old__a", "old__A", "a", "OLD__alpha", "old_alpha", "alpha", "olds__alpha",
		} {
			if got := v.ask(spec.MethodToolsCall, headerOf(name), `"name":`+string(wire.Quote(name))); got.code() == 0 && name != "alpha" { // which is for apps
				t.Errorf("%v: calling %q = %d %s", era, name, got.status, got.body)
			}
		}
		for _, name := range []string{"old__hush", "old__HUSH", "old__huſh", "old__hush ", "hush", "Hush", "OLD__x", "x"} {
			if got := v.ask(spec.MethodPromptsGet, headerOf(name), `"name":`+string(wire.Quote(name))); got.code() == 0 {
				t.Errorf("%v: getting %q = %d %s", era, name, got.status, got.body)
			}
		}
		tried += 14 + 8
		for _, uri := range []string{"x:/secret/a", "x:/SECRET/a", "X:/secret/a", "x:/%73ecret/a", "x:/secret%2Fa", "x:/b/../secret/a", "x:/./secret/a"} {
			if got := v.ask(spec.MethodResourcesRead, uri, `"uri":`+string(wire.Quote(uri))); got.code() == 0 {
				t.Errorf("%v: reading %q = %d %s", era, uri, got.status, got.body)
			}
			if got := v.ask(spec.MethodComplete, "", `"ref":{"type":"ref/resource","uri":`+string(wire.Quote(uri))+`},"argument":{"name":"a","value":""}`); got.code() == 0 {
				t.Errorf("%v: completing %q = %d %s", era, uri, got.status, got.body)
			}
			tried += 2
		}
		if got := v.ask(spec.MethodComplete, "", `"ref":{"type":"ref/prompt","name":"old__hush"},"argument":{"name":"a","value":""}`); got.code() == 0 {
			t.Errorf("%v: completing a prompt = %d %s", era, got.status, got.body)
		}
		tried++
		if got := v.call("old__alpha", ""); !strings.Contains(got.body, "of old") {
			t.Errorf("%v: what is shown = %d %s", era, got.status, got.body)
		}
	}
	for method, most := range map[string]int{"tools/call": 4, "prompts/get": 0, "resources/read": 0, "completion/complete": 0} {
		if got := r.old.sent(method); len(got) > most {
			t.Errorf("the member got %d of %s: %s", len(got), method, got)
		}
	}
	r.eventually(t, "all is in the audit log", func() bool {
		text, _ := os.ReadFile(path)
		n := 0
		for _, line := range groupLines(t, string(text)) {
			if strings.Contains(line, " deny ") || strings.HasSuffix(line, " error") {
				n++
			}
		}
		return n >= tried
	})
}

// headerOf returns a name as a client has it in a header.
func headerOf(name string) string {
	if strings.TrimSpace(name) != name || strings.ContainsFunc(name, func(r rune) bool { return r > '~' }) {
		return "=?base64?" + base64.StdEncoding.EncodeToString([]byte(name)) + "?="
	}
	return name
}
