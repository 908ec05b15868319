package router

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/requeststate"
	"github.com/mcpbridge/mcpbridge/internal/settings"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/trust/auth"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	legacyback "github.com/mcpbridge/mcpbridge/legacy/back"
	modernback "github.com/mcpbridge/mcpbridge/modern/back"
)

// A taskHouse is a server of either era whose tool makes tasks, which it gives to whoever knows their
// ids. It notes what is asked.
type taskHouse struct {
	era spec.Era
	url string

	mu   sync.Mutex
	made int
	live map[string]bool // the tasks whose time is not up
	got  []string        // params, after their method
}

func newTaskHouse(t *testing.T, era spec.Era) *taskHouse {
	h := &taskHouse{era: era, live: make(map[string]bool)}
	if era == spec.Modern {
		s := httptest.NewServer(http.HandlerFunc(h.serve))
		t.Cleanup(s.Close)
		t.Cleanup(s.CloseClientConnections)
		h.url = s.URL
		return h
	}
	p := newPeer(t)
	t.Cleanup(p.CloseClientConnections)
	p.capabilities = `{"tools":{},"tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}}`
	for _, method := range []string{"tools/list", "tools/call", "tasks/get", "tasks/result", "tasks/cancel", "tasks/list"} {
		p.handle[method] = func(c *peerCall) string { return h.answer(&c.m) }
	}
	h.url = p.URL
	return h
}

// serve serves requests of 2026-07-28.
func (h *taskHouse) serve(w http.ResponseWriter, r *http.Request) {
	m, ok := readMessage(w, r)
	if !ok {
		return
	}
	if m.Method != spec.MethodListen {
		writeAnswer(w, m.ID, h.answer(&m))
		return
	}
	h.note(&m)
	filter := wire.Get(m.Params, "notifications")
	w.Header().Set("Content-Type", "text/event-stream")
	meta := fmt.Sprintf(`"_meta":{"%s":%s}`, spec.MetaSubscriptionID, m.ID)
	fmt.Fprintf(w, `data: {"jsonrpc":"2.0","method":"%s","params":{"notifications":%s,%s}}`+"\n\n", spec.NotifyAcknowledged, filter, meta)
	for id := range wire.Elements(wire.Get(filter, spec.FilterTaskIDs)) {
		fmt.Fprintf(w, `data: {"jsonrpc":"2.0","method":"notifications/tasks","params":{"taskId":%s,"statusMessage":"secret",%s}}`+"\n\n", id, meta)
	}
	_ = http.NewResponseController(w).Flush()
	<-r.Context().Done()
}

func (h *taskHouse) note(m *wire.Message) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.got = append(h.got, m.Method+" "+string(m.Params))
}

// answer returns the result of a request, or an error object. A task of "brief" is kept for a moment.
func (h *taskHouse) answer(m *wire.Message) string {
	h.note(m)
	h.mu.Lock()
	defer h.mu.Unlock()
	id, _ := wire.GetString(m.Params, "taskId")
	told := fmt.Sprintf(`"taskId":%s,"status":"working","statusMessage":"secret"`, wire.Quote(id))
	switch {
	case m.Method == spec.MethodDiscover:
		return `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"extensions":{"io.modelcontextprotocol/tasks":{}}},"ttlMs":0,"cacheScope":"private"}`
	case m.Method == spec.MethodToolsList:
		return `{"resultType":"complete","tools":[{"name":"t","inputSchema":{"type":"object"},"execution":{"taskSupport":"optional"}}],"ttlMs":0,"cacheScope":"private"}`
	case m.Method == spec.MethodToolsCall && h.era == spec.Legacy && wire.Get(m.Params, "task") == nil, m.Method == spec.MethodToolsCall && h.era == spec.Modern && !strings.Contains(string(m.Params), spec.ExtensionTasks):
		return `{"resultType":"complete","content":[]}`
	case m.Method == spec.MethodToolsCall:
		h.made++
		ttl := 3_600_000
		if wire.Get(wire.Get(m.Params, "arguments"), "brief") != nil {
			ttl = 1
		}
		h.live[fmt.Sprintf("job-%d", h.made)] = true
		if h.era == spec.Legacy {
			return fmt.Sprintf(`{"task":{"taskId":"job-%d","status":"working","ttl":%d}}`, h.made, ttl)
		}
		return fmt.Sprintf(`{"resultType":"task","taskId":"job-%d","status":"working","ttlMs":%d}`, h.made, ttl)
	case m.Method == "tasks/list":
		var all []string
		for n := range h.made {
			all = append(all, fmt.Sprintf(`{"taskId":"job-%d","status":"working"}`, n+1))
		}
		return `{"tasks":[` + strings.Join(all, ",") + `]}`
	case !h.live[id]:
		return `{"code":-32602,"message":` + string(wire.Quote("no task "+id)) + `}`
	case m.Method == "tasks/result":
		return `{"content":[{"type":"text","text":"secret"}]}`
	}
	return `{"resultType":"complete",` + told + `}`
}

// sent returns what came of a method, or of all that begin so, since a number of requests.
func (h *taskHouse) sent(since int, method string) (all []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, text := range h.got[since:] {
		if strings.HasPrefix(text, method) {
			all = append(all, text)
		}
	}
	return all
}

func (h *taskHouse) requests() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.got)
}

// sealerOf returns the sealer of a replica, which has the keys of all; nil for a gateway that is alone.
func sealerOf(o *Options) *requeststate.Sealer {
	if o.Peers == nil {
		return nil
	}
	s, _ := requeststate.NewSealerOf(o.Peers.Self().Instance, "0123456789abcdef0123456789abcdef")
	return s
}

// taskSettings have both eras hold tasks.
var taskSettings = settings.Server{Tasks: settings.Tasks{Mode: settings.TasksOn}}

// open returns a server of a gateway that is the house.
func (h *taskHouse) open(name string, o *Options) ServerOptions {
	return ServerOptions{Name: name, Settings: taskSettings, OpenPeer: madeOf(name, o).OpenPeer, Open: func(c mcp.Changes) (mcp.Back, error) {
		up := memberOptions(name, h.url, o, c)
		up.Settings.Tasks = taskSettings.Tasks
		up.Sealer = sealerOf(o)
		if h.era == spec.Modern {
			return modernback.New(modernback.Options{Options: up})
		}
		return legacyback.New(legacyback.Options{Options: up})
	}}
}

// newHouseRig returns a gateway before a house, "peer", and a group of it, "all".
func newHouseRig(t *testing.T, h *taskHouse) *rig {
	return newRig(t, h.configure(t))
}

// configure returns what configures a gateway before the house.
func (h *taskHouse) configure(t *testing.T) func(*Options) {
	tokens, err := auth.NewTokens([]auth.StaticToken{{Name: alice, Token: tokenOf(alice)}, {Name: bob, Token: tokenOf(bob)}})
	if err != nil {
		t.Fatal(err)
	}
	return func(o *Options) {
		o.Auth = tokens
		o.Servers = []ServerOptions{h.open("peer", o), {Name: "all", Group: groupOf("peer")}}
	}
}

// A taskClient is a client of a principal that holds tasks.
type taskClient struct{ *visitor }

func (r *rig) taskClient(t *testing.T, era spec.Era, at, who string) taskClient {
	t.Helper()
	v := r.visitAs(t, era, at, who)
	if era == spec.Modern {
		v.capabilities = withTasks
	}
	return taskClient{v}
}

// methods are those of a client's tasks. The second changes something.
func (c taskClient) methods() []string {
	if c.era == spec.Legacy {
		return []string{"tasks/get", "tasks/cancel", "tasks/result"}
	}
	return []string{"tasks/get", "tasks/cancel", "tasks/update"}
}

// tool is what the tool is called.
func (c taskClient) tool() string {
	if strings.HasSuffix(c.path, "/all") {
		return "peer__t"
	}
	return "t"
}

// make has a task made, and returns its id.
func (c taskClient) make(arguments string) string {
	c.t.Helper()
	more, path := "", []string{"taskId"}
	if c.era == spec.Legacy {
		more, path = `,"task":{"ttl":3600000}`, []string{"task", "taskId"}
	}
	got := c.ask(spec.MethodToolsCall, c.tool(), `"name":"`+c.tool()+`","arguments":{`+arguments+`}`+more)
	at := []byte(got.result(c.t))
	for _, step := range path {
		at = wire.Get(at, step)
	}
	if len(at) < 3 || at[0] != '"' {
		c.t.Fatalf("a call of %s, %v = %d %s, want a task", c.who, c.era, got.status, got.body)
	}
	return wire.Unquote(at)
}

// about asks for a task, and returns the answer with the id taken out.
func (c taskClient) about(method, id string) string {
	c.t.Helper()
	c.ids = 0
	got := c.ask(method, id, `"taskId":`+string(wire.Quote(id))+`,"inputResponses":{}`)
	if i := strings.LastIndex(got.body, "data: "); i >= 0 {
		got.body = strings.TrimSpace(got.body[i+len("data: "):])
	}
	return fmt.Sprint(got.status, " ", strings.ReplaceAll(got.body, id, "ID"))
}

// follow opens a listen stream for tasks, and returns the filter that is acknowledged.
func (c taskClient) follow(ids ...string) string {
	c.t.Helper()
	var filter []byte
	for _, id := range ids {
		filter = append(wire.AppendString(filter, id), ',')
	}
	l := c.open(spec.MethodListen, "", `"notifications":{"taskIds":[`+strings.TrimSuffix(string(filter), ",")+`]}`)
	defer l.res.Body.Close()
	l.want(spec.NotifyAcknowledged)
	return string(wire.Get(wire.Get([]byte(l.seen[len(l.seen)-1]), "params"), "notifications"))
}

// mangled returns an id with another last character that counts.
func mangled(id string) string {
	last := "!"
	if strings.HasSuffix(id, last) {
		last = "?"
	}
	return id[:len(id)-1] + last
}

// everyTaskPair runs a test for clients and servers of all eras.
func everyTaskPair(t *testing.T, run func(t *testing.T, front spec.Era, h *taskHouse)) {
	for _, back := range bothEras {
		for _, front := range bothEras {
			t.Run(front.String()+" "+back.String(), func(t *testing.T) {
				t.Parallel()
				run(t, front, newTaskHouse(t, back))
			})
		}
	}
}

// An id that is not of a task of one's own has one answer, whatever is asked, in each pair of eras: one
// of another principal, mangled, unknown, or of a task whose time is up. The other's task is as before,
// and the server never hears its id.
func TestT11OneAnswerInEachPair(t *testing.T) {
	t.Parallel()
	everyTaskPair(t, func(t *testing.T, front spec.Era, h *taskHouse) {
		r := newHouseRig(t, h)
		a, b := r.taskClient(t, front, "peer", alice), r.taskClient(t, front, "peer", bob)
		hers, own, over := a.make(""), b.make(""), b.make(`"brief":true`)
		bad := map[string]string{"of another": hers, "mangled": mangled(own), "unknown": "nobody-has-this", "whose time is up": over}
		if h.era == front { // it is the server that says so
			h.mu.Lock()
			delete(h.live, "job-3")
			h.mu.Unlock()
		}
		r.eventually(t, "its time is up", func() bool { return strings.Contains(b.about("tasks/get", over), "-32602") })
		since := h.requests()
		for round, what := range []string{"", ", forgotten"} {
			for _, method := range b.methods() {
				want := b.about(method, "nobody-has-that")
				for kind, id := range bad {
					if got := b.about(method, id); got != want || !strings.Contains(got, "-32602") {
						t.Errorf("%s of one %s%s = %s, want %s", method, kind, what, got, want)
					}
				}
			}
			if round == 0 {
				for _, text := range h.sent(since, "tasks/") {
					if strings.Contains(text, `"job-1"`) || h.era != front && !strings.Contains(text, `"job-3"`) { // which is cancelled at its end
						t.Errorf("the server was asked of no task of one's own: %s", text)
					}
				}
			}
			if got := a.about("tasks/get", hers); !strings.Contains(got, "secret") || !strings.Contains(got, "working") {
				t.Errorf("the other's task%s = %s, want it as before", what, got)
			}
			if front == spec.Modern {
				followed := b.follow(hers, mangled(own), over, "nobody-has-this", own)
				if strings.Contains(followed, hers) || !strings.Contains(followed, own) || h.era != front && followed != `{"taskIds":["`+own+`"]}` {
					t.Errorf("a stream%s follows %s, want one's own", what, followed)
				}
			}
			if h.era == front {
				break // it is the gateway's memory alone that knows whose a task is
			}
			r.g.now().servers["peer"].owners.Close() // as after many others
		}
	})
}

// What names another's task beside a request does not reach the server: a filter, the tasks that are
// said to have to do with a call, the task that a request is said to belong to. What lists tasks leaves
// it out.
func TestT03NamesOfOthersTasks(t *testing.T) {
	t.Parallel()
	everyTaskPair(t, func(t *testing.T, front spec.Era, h *taskHouse) {
		r := newHouseRig(t, h)
		a, b := r.taskClient(t, front, "peer", alice), r.taskClient(t, front, "peer", bob)
		hers, own := a.make(""), b.make("")
		if h.era == spec.Modern && front == spec.Legacy { // of modern clients legacy ones could know the server's id
			hers = r.taskClient(t, spec.Modern, "peer", alice).make("")
		}
		var named []string
		for _, key := range []string{`io.modelcontextprotocol/relatedTaskIds`, `io.modelcontextprotocol\/related\u0054askIds`} {
			named = append(named, `"`+key+`":["`+own+`","`+hers+`","nobodys"]`)
		}
		if front == spec.Legacy && h.era == spec.Legacy {
			named = []string{`"io.modelcontextprotocol/related-task":{"taskId":"` + hers + `"}`, `"io.modelcontextprotocol\/related-task":{"t\u0061skId":"` + hers + `"}`}
		}
		for _, meta := range named {
			since := h.requests()
			body := b.body(spec.MethodToolsCall, `"name":"t","arguments":{"related":true}`)
			if front == spec.Modern {
				body = strings.Replace(body, `"_meta":{`, `"_meta":{`+meta+`,`, 1)
			} else {
				body = strings.Replace(body, `"params":{`, `"params":{"_meta":{"x":1,`+meta+`},`, 1)
			}
			if got := r.sendTo(t, http.MethodPost, b.path, body, "", b.headers(spec.MethodToolsCall, "t")); got.status != 200 || got.code() != 0 {
				t.Errorf("a call = %d %s", got.status, got.body)
			}
			sent := h.sent(since, spec.MethodToolsCall)
			if len(sent) == 0 || !strings.Contains(sent[len(sent)-1], `"related":true`) || strings.Contains(sent[len(sent)-1], `"`+hers+`"`) {
				t.Errorf("with %s the server got %q, want no %s", meta, sent, hers)
			}
			if strings.Contains(meta, "nobodys") && !strings.Contains(fmt.Sprint(sent), `["`+own+`","nobodys"]`) {
				t.Errorf("with %s the server got %q, want what is not another's", meta, sent)
			}
		}
	})
}

// Through a group tasks are those of their principal, too, and of their member: its own ids are nobody's
// there.
func TestG12TasksInEachPair(t *testing.T) {
	t.Parallel()
	everyTaskPair(t, func(t *testing.T, front spec.Era, h *taskHouse) {
		r := newHouseRig(t, h)
		a, b := r.taskClient(t, front, "all", alice), r.taskClient(t, front, "all", bob)
		hers, own := a.make(""), b.make("")
		bare := r.taskClient(t, front, "peer", bob).make("")
		since := h.requests()
		for _, method := range b.methods() {
			want := b.about(method, "nobody-has-that")
			for kind, id := range map[string]string{"of another": hers, "mangled": mangled(own), "of the member": bare} {
				if got := b.about(method, id); got != want || !strings.HasPrefix(got, "200 ") || !strings.Contains(got, "-32602") {
					t.Errorf("%s of one %s = %s, want %s", method, kind, got, want)
				}
			}
		}
		for _, text := range h.sent(since, "tasks/") {
			if strings.Contains(text, `"job-1"`) {
				t.Errorf("the server was asked for another's task: %s", text)
			}
		}
		if front == spec.Modern {
			if got := b.follow(hers, bare, mangled(own), own); strings.Contains(got, bare) || !strings.Contains(got, own) || strings.Contains(got, hers) {
				t.Errorf("a stream follows %s, want one's own", got)
			}
		}
		for c, id := range map[taskClient]string{a: hers, b: own} {
			if got := c.about("tasks/get", id); !strings.Contains(got, "secret") || !strings.Contains(got, `"taskId":"ID"`) {
				t.Errorf("tasks/get of the task of %s = %s", c.who, got)
			}
		}
	})
}

// Three replicas know whose a task is that one of them has handed out, whichever is asked, also through
// a group. What a lost replica held is lost, and its client is told why; what the server or the client
// has is not.
func TestT11OwnersOnThreeReplicas(t *testing.T) {
	t.Parallel()
	everyTaskPair(t, func(t *testing.T, front spec.Era, h *taskHouse) {
		d := newDeployment(t, 3, h.configure(t))
		at := func(i int, endpoint, who string) taskClient { return d.all[i].taskClient(t, front, endpoint, who) }
		endpoints := []string{"peer", "all"}
		tasks := make(map[string]string)
		for _, endpoint := range endpoints {
			id := at(0, endpoint, alice).make("")
			tasks[endpoint] = id
			for i := range d.all {
				a, b := at(i, endpoint, alice), at(i, endpoint, bob)
				if got := a.about("tasks/get", id); !strings.Contains(got, "secret") {
					t.Errorf("at replica %d, %s: tasks/get of one's own = %s", i, endpoint, got)
				}
				for _, method := range b.methods() {
					if got := b.about(method, id); !strings.Contains(got, "-32602") || strings.Contains(got, "restart") {
						t.Errorf("at replica %d, %s: %s of another's = %s", i, endpoint, method, got)
					}
				}
			}
		}
		d.drain(t, d.all[0])
		d.end(t, d.all[0])
		for endpoint, id := range tasks {
			for i := range d.all {
				got := at(i, endpoint, alice).about("tasks/get", id)
				if lost := front == spec.Modern && h.era == spec.Legacy; lost != strings.Contains(got, "the gateway was restarted") || lost != strings.Contains(got, "-32602") || lost == strings.Contains(got, "secret") {
					t.Errorf("after a loss, at %d, %s: tasks/get = %s", i, endpoint, got)
				}
			}
		}
	})
}

// Tasks that are held across the eras are told of without their ids, and can be cancelled for their
// clients, who read what became of them.
func TestT14TasksAreToldAndCancelled(t *testing.T) {
	t.Parallel()
	everyTaskPair(t, func(t *testing.T, front spec.Era, h *taskHouse) {
		r := newHouseRig(t, h)
		a, b := r.taskClient(t, front, "peer", alice), r.taskClient(t, front, "peer", bob)
		id, other := a.make(""), b.make("")
		table := TasksOf(r.g, "peer")
		if table == nil {
			t.Fatal("the server tells of no tasks")
		}
		told := table.TellTasks()
		if h.era == front { // the gateway holds none
			if len(told.List) != 0 || table.Live() != 0 {
				t.Errorf("told of %+v, want none", told)
			}
			return
		}
		if len(told.List) != 2 || told.List[0].Principal != alice || told.List[0].Tool != "t" || told.List[0].Status != "working" || strings.Contains(fmt.Sprint(told), id) {
			t.Fatalf("told of %+v, want alice's and bob's, without ids", told)
		}
		if _, err := table.CancelTask(t.Context(), told.List[0].Key); err != nil {
			t.Errorf("CancelTask = %v", err)
		}
		if got := h.sent(0, "tasks/cancel"); len(got) != 1 || !strings.Contains(got[0], `"job-1"`) {
			t.Errorf("the server got %q, want alice's task cancelled", got)
		}
		if got := a.about("tasks/get", id); front == spec.Legacy && !strings.Contains(got, `"status":"cancelled"`) || !strings.Contains(got, `"status"`) {
			t.Errorf("alice reads %s", got)
		}
		if got := b.about("tasks/get", other); !strings.Contains(got, `"status":"working"`) {
			t.Errorf("bob reads %s", got)
		}
	})
	if g := newRig(t, nil).g; TasksOf(g, "none") != nil {
		t.Error("what is not served tells of tasks")
	}
}
