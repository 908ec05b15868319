package router

import (
	"cmp"
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/legacytest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/settings"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/trust/auth"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	legacyback "github.com/mcpbridge/mcpbridge/legacy/back"
)

// A heldRig is a gateway before a server of 2025-11-25 with tasks.
type heldRig struct {
	*rig
	t  *testing.T
	ts *legacytest.TaskServer
	at string // the endpoint; empty for the server's
}

func newHeldRig(t *testing.T, set settings.Server) *heldRig {
	h := &heldRig{t: t, ts: &legacytest.TaskServer{Stages: []string{`"status":"working"`}, Result: `{"content":[]}`}}
	var running sync.WaitGroup
	t.Cleanup(running.Wait)
	h.rig = newRig(t, func(o *Options) {
		o.Auth = auth.Func(func(r *http.Request) (mcp.Principal, error) { return mcp.Principal(r.Header.Get(whoHeader)), nil })
		o.Servers = []ServerOptions{{Name: "peer", Settings: set, Open: func(c mcp.Changes) (mcp.Back, error) {
			return legacyback.New(legacyback.Options{
				Options: upstream.Options{Name: "peer", Changes: c, Logger: o.Logger, Settings: set, ClientInfo: []byte(`{"name":"mcpbridge","version":"test"}`)},
				Dial: func(context.Context) (transport.Conn, error) {
					near, far := transport.NewPipe()
					a := legacytest.NewServer(t, far)
					h.ts.Play(a)
					running.Go(a.Serve)
					return near, nil
				},
			})
		}}, {Name: "all", Group: groupOf("peer")}}
		o.Default = "peer"
	})
	return h
}

// ask sends a request of a principal with capabilities.
func (w *heldRig) ask(who, capabilities, method, rest string) answer {
	w.t.Helper()
	h := modernHeaders(method, "")
	if method == spec.MethodToolsCall {
		h = modernHeaders(method, w.tool())
	}
	h.Set(whoHeader, who)
	return w.sendTo(w.t, http.MethodPost, cmp.Or(w.at, "/mcp/peer"), askableBody("1", method, capabilities, rest), "", h)
}

// tool is what the tool is called.
func (w *heldRig) tool() string {
	if w.at != "" {
		return "peer__t"
	}
	return "t"
}

func (w *heldRig) make(who string) string {
	w.t.Helper()
	got := w.ask(who, withTasks, spec.MethodToolsCall, `"name":"`+w.tool()+`"`)
	m, err := wire.Parse([]byte(got.body), wire.Options{})
	id := string(wire.Get(m.Result, "taskId"))
	if err != nil || got.status != 200 || id == "" || !strings.Contains(got.body, `"resultType":"task"`) || !strings.Contains(got.body, spec.MetaServerInfo) {
		w.t.Fatalf("tools/call of %s = %d %s, want a task", who, got.status, got.body)
	}
	return id
}

// A task is its principal's, which others do not even learn: status 200, and one text.
func TestT11TasksHaveAPrincipal(t *testing.T) {
	t.Parallel()
	w := newHeldRig(t, settings.Server{})
	task := w.make(alice)
	bodies := make(map[string]bool)
	for _, method := range []string{spec.MethodTaskGet, spec.MethodTaskUpdate, spec.MethodTaskCancel} {
		for who, id := range map[string]string{bob: task, alice: `"t1"`, "": `"x"`} {
			got := w.ask(who, withTasks, method, `"taskId":`+id)
			if got.status != 200 || got.code() != spec.CodeInvalidParams {
				t.Errorf("%s of %q's %s = %d %s", method, who, id, got.status, got.body)
			}
			bodies[got.body] = true
		}
	}
	for _, bad := range []string{``, `"taskId":7`} {
		if got := w.ask(alice, withTasks, spec.MethodTaskGet, bad); got.status != 400 || got.code() != spec.CodeInvalidParams {
			t.Errorf("tasks/get with %q = %d %s", bad, got.status, got.body)
		}
	}
	if len(bodies) != 1 {
		t.Errorf("the answers are %v, want one", bodies)
	}
	if got := w.ask(alice, withTasks, spec.MethodTaskGet, `"taskId":`+task); got.status != 200 || !strings.Contains(got.body, `"resultType":"complete"`) || !strings.Contains(got.body, `"status":"working"`) || !strings.Contains(got.body, `"ttlMs":3600000`) {
		t.Errorf("tasks/get of her own = %d %s", got.status, got.body)
	}
}

// The key is in discovery where tasks are held; without it the statuses say what is wrong.
func TestT17Statuses(t *testing.T) {
	t.Parallel()
	for mode, want := range map[settings.TaskMode]struct {
		told    bool
		without int
	}{settings.TasksAuto: {true, 400}, settings.TasksRun: {false, 404}, settings.TasksOff: {false, 404}} {
		w := newHeldRig(t, settings.Server{Tasks: settings.Tasks{Mode: mode}})
		if got := w.ask(alice, `{}`, spec.MethodDiscover, ""); strings.Contains(got.body, `"extensions":{"io.modelcontextprotocol/tasks":{}}`) != want.told || strings.Contains(got.body, `"tasks":{"`) {
			t.Errorf("under %s discovery = %s", mode, got.body)
		}
		for _, method := range []string{spec.MethodTaskGet, spec.MethodTaskUpdate, spec.MethodTaskCancel} {
			if got := w.ask(alice, `{}`, method, `"taskId":"x"`); got.status != want.without {
				t.Errorf("%s without the key under %s = %d %s, want %d", method, mode, got.status, got.body, want.without)
			}
		}
		if got := w.ask(alice, `{}`, spec.MethodListen, `"notifications":{"taskIds":["x"]}`); got.status != want.without {
			t.Errorf("listen without the key under %s = %d %s, want %d", mode, got.status, got.body, want.without)
		}
	}
}

// Tasks are followed on the stream of everything else, with its id; one that is over ends nothing.
func TestT18ListenStream(t *testing.T) {
	t.Parallel()
	w := newHeldRig(t, settings.Server{})
	others, task := w.make(bob), w.make(alice) // hers is the last session, of which the server speaks
	h := modernHeaders(spec.MethodListen, "")
	h.Set(whoHeader, alice)
	res := w.open(t, http.MethodPost, askableBody(`"L"`, spec.MethodListen, withTasks, `"notifications":{"toolsListChanged":true,"taskIds":[`+others+`,`+task+`,"x"]}`), h)
	defer res.Body.Close()
	l := newLines(t, res)
	l.want(`"notifications":{"toolsListChanged":true,"taskIds":[` + task + `]}`)
	l.want(`{"jsonrpc":"2.0","method":"notifications/tasks","params":{"taskId":` + task + `,"status":"working"`)
	w.ts.SetStages(`"status":"completed"`)
	w.ts.Send(`{"jsonrpc":"2.0","method":"notifications/tasks/status","params":{"taskId":"t1","status":"completed"}}`)
	l.want(`"status":"completed"`)
	w.ts.Send(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
	l.want(`notifications/tools/list_changed`)
	for _, text := range l.seen {
		if !strings.Contains(text, `"io.modelcontextprotocol/subscriptionId":"L"`) {
			t.Errorf("the stream has %s, want its id", text)
		}
	}
}

// At a group the id is sealed with its member, in results, requests, filters and notifications; that of
// the member is nobody's there, nor the other way round.
func TestG12HeldTasksOfLegacyMembers(t *testing.T) {
	t.Parallel()
	w := newHeldRig(t, settings.Server{})
	bare := w.make(alice)
	w.at = "/mcp/all"
	task := w.make(alice)
	if !strings.HasPrefix(task, `"peer:1.`) {
		t.Errorf("the id is %s, want it sealed with its member", task)
	}
	if got := w.ask(alice, withTasks, spec.MethodTaskGet, `"taskId":`+task); got.status != 200 || !strings.Contains(got.body, `"taskId":`+task) || !strings.Contains(got.body, `"status":"working"`) {
		t.Errorf("tasks/get = %d %s", got.status, got.body)
	}
	for who, id := range map[string]string{alice: bare, bob: task} {
		if got := w.ask(who, withTasks, spec.MethodTaskGet, `"taskId":`+id); got.code() != spec.CodeInvalidParams {
			t.Errorf("tasks/get of %s's %s = %d %s", who, id, got.status, got.body)
		}
	}
	if got := w.ask(alice, `{}`, spec.MethodTaskGet, `"taskId":`+task); got.status != 400 || got.code() != spec.CodeMissingCapability {
		t.Errorf("tasks/get without the key = %d %s", got.status, got.body)
	}
	h := modernHeaders(spec.MethodListen, "")
	h.Set(whoHeader, alice)
	res := w.openAt(t, http.MethodPost, w.at, askableBody("7", spec.MethodListen, withTasks, `"notifications":{"taskIds":[`+bare+`,`+task+`]}`), h)
	defer res.Body.Close()
	l := newLines(t, res)
	l.want(`"taskIds":[` + task + `]`)
	l.want(`"method":"notifications/tasks","params":{"taskId":` + task)
}
