package router

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/mcpbridge/mcpbridge/gateway/internal/cache"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/settings"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/trust/auth"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	modernback "github.com/mcpbridge/mcpbridge/modern/back"
)

// A taskPeer is a server of 2026-07-28 with tasks, which it gives to whoever knows their
// ids.
type taskPeer struct {
	*httptest.Server
	lax bool // it answers for ids that it does not know, too

	mu    sync.Mutex
	tasks map[string]string // id -> status
	got   []wire.Message
}

func newTaskPeer(t *testing.T) *taskPeer {
	p := &taskPeer{tasks: make(map[string]string)}
	p.Server = httptest.NewServer(http.HandlerFunc(p.serve))
	t.Cleanup(p.Close)
	return p
}

func (p *taskPeer) serve(w http.ResponseWriter, r *http.Request) {
	m, ok := readMessage(w, r)
	if !ok {
		return
	}
	p.mu.Lock()
	p.got = append(p.got, m)
	p.mu.Unlock()
	if m.Method == spec.MethodListen {
		p.listen(w, r, m)
		return
	}
	result, e := p.answer(&m)
	w.Header().Set("Content-Type", "application/json")
	if e != nil {
		_, _ = w.Write(wire.AppendError(nil, m.ID, e))
		return
	}
	_, _ = w.Write(wire.AppendResult(nil, m.ID, []byte(result), nil))
}

func (p *taskPeer) answer(m *wire.Message) (string, *wire.Error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch m.Method {
	case spec.MethodDiscover:
		return `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true},"extensions":{"io.modelcontextprotocol/tasks":{}}},"ttlMs":0,"cacheScope":"private"}`, nil
	case spec.MethodToolsCall, spec.MethodToolsList:
		id := fmt.Sprintf("task \"%d\"", len(p.tasks))
		p.tasks[id] = "working"
		return fmt.Sprintf(`{"resultType":"task","taskId":%s,"status":"working","ttlMs":null,"cacheScope":"public"}`, wire.Quote(id)), nil
	}
	if !strings.Contains(string(m.Meta), spec.ExtensionTasks) {
		return "", &wire.Error{Code: spec.CodeMissingCapability, Message: "declare it", Data: []byte(`{"requiredCapabilities":{}}`)}
	}
	id, _ := wire.GetString(m.Params, "taskId")
	if p.tasks[id] == "" && !p.lax {
		return "", &wire.Error{Code: spec.CodeInvalidParams, Message: "there is no " + id + " here", Data: fmt.Appendf(nil, `{"id":%s}`, wire.Quote(id))}
	}
	if m.Method == spec.MethodTaskCancel {
		p.tasks[id] = "cancelled"
	}
	return fmt.Sprintf(`{"resultType":"complete","taskId":%s,"status":%q,"_meta":{}}`, wire.Quote(id), p.tasks[id]), nil
}

// listen acknowledges what it knows, and tells of it.
func (p *taskPeer) listen(w http.ResponseWriter, r *http.Request, m wire.Message) {
	w.Header().Set("Content-Type", "text/event-stream")
	meta := fmt.Sprintf(`"_meta":{"%s":%s}`, spec.MetaSubscriptionID, m.ID)
	fmt.Fprintf(w, `data: {"jsonrpc":"2.0","method":"%s","params":{"notifications":%s,%s}}`+"\n\n", spec.NotifyAcknowledged, wire.Get(m.Params, "notifications"), meta)
	for id := range wire.Elements(wire.Get(wire.Get(m.Params, "notifications"), "taskIds")) {
		fmt.Fprintf(w, `data: {"jsonrpc":"2.0","method":"notifications/tasks","params":{"taskId":%s,%s}}`+"\n\n", id, meta)
	}
	_ = http.NewResponseController(w).Flush()
	<-r.Context().Done()
}

// sent returns what arrived of a method.
func (p *taskPeer) sent(method string) (params []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range p.got {
		if m.Method == method {
			params = append(params, string(m.Params))
		}
	}
	return params
}

// A taskRig is a gateway before a taskPeer.
type taskRig struct {
	*rig
	t *testing.T
	p *taskPeer
}

const withTasks = `{"extensions":{"io.modelcontextprotocol/tasks":{}}}`

func newTaskRig(t *testing.T, p *taskPeer, keep ...string) *taskRig {
	r := newRig(t, func(o *Options) {
		o.Auth = auth.Func(func(r *http.Request) (mcp.Principal, error) { return mcp.Principal(r.Header.Get(whoHeader)), nil })
		o.Servers = []ServerOptions{{Name: "peer", Settings: settings.Server{Cache: public(keep...)}, Open: func(c mcp.Changes) (mcp.Back, error) {
			return modernback.New(modernback.Options{Options: upstream.Options{Name: "peer", URL: p.URL, Changes: c, Logger: o.Logger, ClientInfo: []byte(`{"name":"mcpbridge","version":"test"}`)}})
		}}}
	})
	return &taskRig{r, t, p}
}

// ask sends a request of a principal with capabilities.
func (w *taskRig) ask(who, capabilities, method, rest string) answer {
	w.t.Helper()
	h := modernHeaders(method, "")
	if method == spec.MethodToolsCall {
		h = modernHeaders(method, "x")
	}
	h.Set(whoHeader, who)
	return w.send(w.t, http.MethodPost, askableBody("1", method, capabilities, rest), h)
}

// make has a task made for a principal, and returns its id as JSON.
func (w *taskRig) make(who string) string {
	w.t.Helper()
	got := w.ask(who, withTasks, spec.MethodToolsCall, `"name":"x"`)
	m, err := wire.Parse([]byte(got.body), wire.Options{})
	if err != nil || got.status != 200 || wire.Get(m.Result, "taskId") == nil {
		w.t.Fatalf("tools/call of %s = %d %s, want a task", who, got.status, got.body)
	}
	return string(wire.Get(m.Result, "taskId"))
}

// What another principal is told of a task is, to the byte, what the server says of one
// that does not exist, and the server never hears of the task.
func TestT03AnotherPrincipalsTask(t *testing.T) {
	t.Parallel()
	w := newTaskRig(t, newTaskPeer(t))
	task, missing := w.make(alice), `"task \"none\""`
	for _, who := range []string{bob, ""} {
		for _, capabilities := range []string{withTasks, `{}`} {
			for _, method := range []string{spec.MethodTaskGet, spec.MethodTaskUpdate, spec.MethodTaskCancel} {
				const answers = `,"inputResponses":{"k":{"action":"accept"}}`
				got, want := w.ask(who, capabilities, method, `"taskId":`+task+answers), w.ask(who, capabilities, method, `"taskId":`+missing+answers)
				inText := func(id string) string { return strings.ReplaceAll(id, `"task \`, `task \`) }
				mine := strings.ReplaceAll(want.body, strings.Trim(inText(missing), `"`), strings.Trim(inText(task), `"`))
				if got.status != want.status || got.body != mine {
					t.Errorf("%s of %q's = %d %s\nwant that of no task: %d %s", method, who, got.status, got.body, want.status, mine)
				}
				if wants := map[string]int64{withTasks: -32602, `{}`: -32021}[capabilities]; got.code() != wants {
					t.Errorf("%s of %q's = %s, want %d", method, who, got.body, wants)
				}
				for _, params := range w.p.sent(method) {
					if strings.Contains(params, task) {
						t.Errorf("the server got %s of a principal who has no part in it", params)
					}
				}
			}
		}
	}
	if got := w.ask(alice, withTasks, spec.MethodTaskGet, `"taskId":`+task); !strings.Contains(got.body, `"status":"working"`) {
		t.Errorf("tasks/get of the task's own principal = %s, want it at work", got.body)
	}
	if got := w.ask(alice, withTasks, spec.MethodTaskCancel, `"taskId":`+task); got.code() != 0 {
		t.Errorf("tasks/cancel of the task's own principal = %s", got.body)
	}
}

// No deviation that is tolerated is a way to another principal's task: its owner is judged by the
// request as it is served.
func TestQ02DeviationsHaveTheirOwner(t *testing.T) {
	t.Parallel()
	w := newTaskRig(t, newTaskPeer(t))
	task := w.make(alice)
	var deviations []http.Header
	for _, revision := range []string{"2026-07-28", "2025-11-25", "2024-11-05"} {
		for _, accept := range []string{"application/json", "text/event-stream", "*/*"} {
			for _, session := range []string{"", "1AAAAAAAA-0123456789abcdef"} {
				h := http.Header{spec.HeaderProtocolVersion: {revision}, "Accept": {accept}, spec.HeaderName: nil}
				if session != "" {
					h.Set(spec.HeaderSession, session)
				}
				deviations = append(deviations, h)
			}
		}
	}
	for _, method := range []string{spec.MethodTaskGet, spec.MethodTaskCancel} {
		for _, deviation := range deviations {
			ask := func(who string) answer {
				h := modernHeaders(method, "")
				maps.Copy(h, deviation)
				h.Set(whoHeader, who)
				return w.send(t, http.MethodPost, askableBody("1", method, withTasks, `"taskId":`+task), h)
			}
			if got := ask(bob); !strings.Contains(got.body, "-32602") || strings.Contains(got.body, "working") {
				t.Errorf("%s of bob with %v = %d %s, want -32602", method, deviation, got.status, got.body)
			}
			if method == spec.MethodTaskCancel && strings.Contains(strings.Join(w.p.sent(method), ""), task) { // of one that does not exist it is asked
				t.Fatalf("the server got %s with %v, which nobody but alice may send", method, deviation)
			}
			if method == spec.MethodTaskGet {
				if got := ask(alice); !strings.Contains(got.body, `"status":"working"`) {
					t.Errorf("%s of alice with %v = %d %s, want that it is tolerated", method, deviation, got.status, got.body)
				}
			}
		}
	}
}

// A server that does not look at ids gives nothing away.
func TestT03ServersThatAnswerForAnyID(t *testing.T) {
	t.Parallel()
	p := newTaskPeer(t)
	p.lax = true
	w := newTaskRig(t, p)
	task := w.make(alice)
	for _, method := range []string{spec.MethodTaskGet, spec.MethodTaskUpdate, spec.MethodTaskCancel} {
		if got := w.ask(bob, withTasks, method, `"taskId":`+task); got.status != 200 || got.code() != -32602 {
			t.Errorf("%s of bob's = %d %s, want 200 and -32602", method, got.status, got.body)
		}
	}
}

// From a filter others' tasks are taken before it goes up; what is not known stays.
func TestT03Filters(t *testing.T) {
	t.Parallel()
	w := newTaskRig(t, newTaskPeer(t))
	ofAlice, ofBob := w.make(alice), w.make(bob)
	for i, c := range []struct{ who, ids, want string }{
		{bob, ofAlice + `,"\u0075nknown",` + ofBob + `,7`, `"\u0075nknown",` + ofBob + `,7`},
		{bob, ofAlice, ``},
		{alice, ofAlice + ` , "x"`, ofAlice + ` , "x"`},
	} {
		h := modernHeaders(spec.MethodListen, "")
		h.Set(whoHeader, c.who)
		res := w.open(t, http.MethodPost, askableBody("5", spec.MethodListen, withTasks, `"notifications":{"toolsListChanged":true,"taskIds":[`+c.ids+`]}`), h)
		l := newLines(t, res)
		l.want(`"notifications":{"toolsListChanged":true,"taskIds":[` + c.want + `]}`)
		if c.want != "" {
			l.want(`"method":"notifications/tasks"`)
		}
		want := `"notifications":{"toolsListChanged":true,"taskIds":[` + c.want + `]}`
		if got := w.p.sent(spec.MethodListen); len(got) != i+1 || !strings.Contains(got[i], want) {
			t.Errorf("the server got %s, want %s", got, want)
		}
		res.Body.Close()
	}
}

// After a restart nobody knows whose a task is, and the server decides.
func TestT03UnknownTasksGoUp(t *testing.T) {
	t.Parallel()
	p := newTaskPeer(t)
	task := newTaskRig(t, p).make(alice)
	w := newTaskRig(t, p)
	if got := w.ask(bob, withTasks, spec.MethodTaskGet, `"taskId":`+task); got.code() != 0 || !strings.Contains(p.sent(spec.MethodTaskGet)[0], task) {
		t.Errorf("tasks/get = %s, want the server's answer", got.body)
	}
}

// A task is one principal's, one call's: it is not kept, whatever is kept of the method,
// and those who ask at once get one each.
func TestT03TasksAreNeitherKeptNorShared(t *testing.T) {
	t.Parallel()
	w := newTaskRig(t, newTaskPeer(t), everyList...)
	const n = 8
	bodies := make(chan string, 2*n)
	var wg sync.WaitGroup
	for _, who := range []string{alice, bob} {
		for range n {
			wg.Go(func() { bodies <- w.ask(who, withTasks, spec.MethodToolsList, "").body })
		}
	}
	wg.Wait()
	close(bodies)
	seen := make(map[string]bool)
	for body := range bodies {
		if !strings.Contains(body, `"resultType":"task"`) || seen[body] {
			t.Errorf("tools/list = %s, want a task of its own", body)
		}
		seen[body] = true
	}
	if got := w.g.Snapshot().Cache; got != (cache.Snapshot{}) {
		t.Errorf("cache = %+v, want it empty", got)
	}
}

// Clients that share the extension with their server share its streams with each other,
// in which it is declared.
func TestT01ProfilesHaveTasks(t *testing.T) {
	t.Parallel()
	w := newTaskRig(t, newTaskPeer(t))
	declared := func(capabilities string, n int) bool {
		h := modernHeaders(spec.MethodListen, "")
		res := w.open(t, http.MethodPost, askableBody("5", spec.MethodListen, capabilities, `"notifications":{"toolsListChanged":true}`), h)
		t.Cleanup(func() { res.Body.Close() })
		newLines(t, res).want(`"toolsListChanged":true`)
		got := w.p.sent(spec.MethodListen)
		if len(got) != n {
			t.Fatalf("%d streams upstream, want %d", len(got), n)
		}
		return strings.Contains(got[n-1], withTasks)
	}
	for range 2 {
		if !declared(withTasks, 1) {
			t.Error("a stream of clients with tasks does not declare them")
		}
	}
	if declared(`{}`, 2) {
		t.Error("a stream of clients without tasks declares them")
	}
}
