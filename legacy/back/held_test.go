package back

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/backtest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/legacytest"
	"github.com/mcpbridge/mcpbridge/internal/limits"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/settings"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// holds are the capabilities of clients that hold tasks.
const holds = `{"elicitation":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}`

// holding returns a request of a client that holds tasks.
func holding(who, method, params string) *mcp.Request {
	r := ask(method, params)
	r.Principal, r.Capabilities = mcp.Principal(who), json.RawMessage(holds)
	r.Profile.Capabilities = json.RawMessage(`{"elicitation":{}}`)
	return r
}

// A holderRig is a Back of a TaskServer, with a client that holds tasks.
type holderRig struct {
	*Back
	t  *testing.T
	ts *legacytest.TaskServer
}

func newHolder(t *testing.T, ts *legacytest.TaskServer, set settings.Server) *holderRig {
	return &holderRig{newTaskBack(t, ts, Options{Options: upstream.Options{Settings: set}}), t, ts}
}

// serve returns the result of a request of ada's, or the error's text with its code.
func (r *holderRig) serve(method, params string) string {
	r.t.Helper()
	return r.serveAs(holding("ada", method, params))
}

func (r *holderRig) serveAs(req *mcp.Request) string {
	res, err := r.Serve(r.t.Context(), req, &backtest.Client{Answer: backtest.NeverAnswers})
	if err != nil {
		return fmt.Sprint(mcp.WireError(err))
	}
	if res.Era != spec.Modern {
		r.t.Errorf("%s is answered as by a server of %v", req.Method, res.Era)
	}
	got, _ := body(res, nil)
	return got
}

// create calls the tool, and returns the id of the task.
func (r *holderRig) create() string {
	r.t.Helper()
	got := r.serve("tools/call", `{"name":"t","arguments":{}}`)
	id, ok := wire.GetString([]byte(got), "taskId")
	if kind, _ := wire.GetString([]byte(got), "resultType"); !ok || kind != "task" {
		r.t.Fatalf("tools/call = %s, want a task", got)
	}
	return id
}

func (r *holderRig) get(id string) string {
	r.t.Helper()
	return r.serve("tasks/get", `{"taskId":"`+id+`"}`)
}

// wants fails the test unless a text has all parts.
func wants(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("got %s, want %s", text, part)
		}
	}
}

// The key is told exactly where tasks can be held, and tasks of 2025 are not.
func TestT05WhoIsTold(t *testing.T) {
	const key = `"extensions":{"io.modelcontextprotocol/tasks":{}}`
	for _, tt := range []struct {
		name, revision, caps string
		set                  settings.Server
		want                 bool
	}{
		{"by default", "2025-11-25", `{"tools":{},"tasks":{"requests":{"tools":{"call":{}}}}}`, settings.Server{}, true},
		{"on", "2025-11-25", `{"tools":{},"tasks":{"requests":{"tools":{"call":{}}}}}`, settings.Server{Tasks: settings.Tasks{Mode: "on"}}, true},
		{"run", "2025-11-25", `{"tools":{},"tasks":{"requests":{"tools":{"call":{}}}}}`, settings.Server{Tasks: settings.Tasks{Mode: "run"}}, false},
		{"off", "2025-11-25", `{"tools":{},"tasks":{"requests":{"tools":{"call":{}}}}}`, settings.Server{Tasks: settings.Tasks{Mode: "off"}}, false},
		{"no calls as tasks", "2025-11-25", `{"tools":{},"tasks":{"list":{}}}`, settings.Server{}, false},
		{"an earlier revision", "2025-06-18", `{"tools":{},"tasks":{"requests":{"tools":{"call":{}}}}}`, settings.Server{}, false},
		{"a key of the server's own", "2025-11-25", `{"tools":{},"extensions":{"io.modelcontextprotocol/tasks":{"x":1}}}`, settings.Server{}, false},
	} {
		t.Run("T-05 "+tt.name, func(t *testing.T) {
			b, peers := pipeBack(t, Options{Options: upstream.Options{Settings: tt.set}})
			var shaking sync.WaitGroup
			defer shaking.Wait()
			shaking.Go(func() {
				p := <-peers
				m := p.Want("initialize")
				if strings.Contains(string(m.Params), "tasks") {
					t.Errorf("the server is told %s", m.Params)
				}
				p.Result(m.ID, `{"protocolVersion":"`+tt.revision+`","capabilities":`+tt.caps+`,"serverInfo":{"name":"s","version":"1"}}`)
				p.Want("notifications/initialized")
			})
			d, err := b.Describe(t.Context(), holding("ada", "server/discover", ""))
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Contains(string(d.Capabilities), key); got != tt.want || strings.Contains(string(d.Capabilities), `"tasks":{"`) {
				t.Errorf("capabilities = %s, want the key: %v", d.Capabilities, tt.want)
			}
		})
	}
}

// Tools that run as tasks do, for who declares the key; the client's own task counts for nothing.
func TestT09WhatBecomesATask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ts := &legacytest.TaskServer{Stages: []string{`"status":"completed"`}, Result: said("done")}
		r := newHolder(t, ts, settings.Server{Tasks: settings.Tasks{TTL: 2 * time.Hour}})
		for name, want := range map[string]string{"t": `"resultType":"task"`, "either": `"resultType":"task"`, "plain": "requires task augmentation", "unknown": "requires task augmentation"} {
			res, err := body(r.Serve(t.Context(), holding("ada", "tools/call", `{"name":"`+name+`","task":{"ttl":1},"arguments":{"a":1}}`), &backtest.Client{Answer: backtest.NeverAnswers}))
			if err != nil || !strings.Contains(res, want) {
				t.Errorf("%s = %s, %v, want %s", name, res, err, want)
			}
			task := string(wire.Get(ts.CallParams(), "task"))
			if asked := strings.Contains(want, "task\""); asked && task != `{"ttl":7200000}` || !asked && task != "" {
				t.Errorf("%s was called with the task %s", name, task)
			}
		}
		plain := ask("tools/call", `{"name":"t"}`)
		if got, err := body(r.Serve(t.Context(), plain, &backtest.Client{Answer: backtest.NeverAnswers})); err != nil || got != said("done") {
			t.Errorf("a client without the key gets %s, %v", got, err)
		}
	})
}

func TestT08OptionalToolsAreCalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ts := &legacytest.TaskServer{Stages: []string{`"status":"working"`}}
		r := newHolder(t, ts, settings.Server{Tasks: settings.Tasks{Optional: "call"}})
		r.create()
		if got, err := body(r.Serve(t.Context(), holding("ada", "tools/call", `{"name":"either"}`), &backtest.Client{})); err != nil || !strings.Contains(got, "requires") {
			t.Errorf("an optional tool = %s, %v, want it called", got, err)
		}
	})
}

// A server that makes a task of a call which asked for none has no result for anybody.
func TestT09TasksThatNobodyAskedFor(t *testing.T) {
	for _, name := range []string{"plain", "t"} {
		bridgetest.RunBubble(t, "T-09 "+name, func(t *testing.T) {
			ts := &legacytest.TaskServer{Unasked: true, Stages: []string{`"status":"completed"`}, Result: said("done")}
			r := newHolder(t, ts, settings.Server{})
			got, err := body(r.Serve(t.Context(), ask("tools/call", `{"name":"`+name+`"}`), &backtest.Client{Answer: backtest.NeverAnswers}))
			if asked := name == "t"; asked != (err == nil) || !asked && !strings.Contains(err.Error(), "asked for none") {
				t.Errorf("%s = %s, %v", name, got, err)
			}
		})
	}
}

// Over the limits calls are answered as if nothing had been declared.
func TestT09OverTheLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ts := &legacytest.TaskServer{Stages: []string{`"status":"completed"`}, Result: said("done")}
		r := &holderRig{newTaskBack(t, ts, Options{Options: upstream.Options{Limits: limits.Set{"tasks": 1}}}), t, ts}
		r.create()
		if got, err := body(r.Serve(t.Context(), holding("ada", "tools/call", `{"name":"t"}`), &backtest.Client{Answer: backtest.NeverAnswers})); err != nil || got != said("done") {
			t.Errorf("the tool that must run as a task = %s, %v, want it run", got, err)
		}
		if got, err := body(r.Serve(t.Context(), holding("ada", "tools/call", `{"name":"either"}`), &backtest.Client{})); err != nil || !strings.Contains(got, "requires") {
			t.Errorf("the optional tool = %s, %v, want it called", got, err)
		}
	})
}

func TestT12OneLookForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ts := &legacytest.TaskServer{Stages: []string{`"status":"working"`}}
		ts.Slow = time.Second
		r := newHolder(t, ts, settings.Server{})
		id := r.create()
		var asking sync.WaitGroup
		for range 20 {
			asking.Go(func() { wants(t, r.get(id), `"status":"working"`) })
		}
		asking.Wait()
		if n := ts.Count("tasks/get"); n != 1 {
			t.Errorf("%d looks upstream, want 1", n)
		}
	})
}

// One text for all that is not the client's own task; nothing of it reaches the server.
func TestT11ForeignIDs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ts := &legacytest.TaskServer{Stages: []string{`"status":"working"`}}
		r := newHolder(t, ts, settings.Server{Tasks: settings.Tasks{TTL: time.Minute}})
		id := r.create()
		other := newHolder(t, &legacytest.TaskServer{Stages: []string{`"status":"working"`}}, settings.Server{}).create()
		texts := make(map[string]bool)
		for _, method := range []string{"tasks/get", "tasks/update", "tasks/cancel"} {
			for _, bad := range []string{"t1", "", id[:len(id)-1] + "!"} {
				texts[r.serve(method, `{"taskId":"`+bad+`"}`)] = true
			}
			texts[r.serveAs(holding("bob", method, `{"taskId":"`+id+`"}`))] = true
			wants(t, r.serve(method, `{"taskId":"`+other+`"}`), "the gateway was restarted", "-32602")
		}
		if ts.Count("tasks/get") != 0 {
			t.Error("the server was asked")
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		texts[r.get(id)] = true
		if len(texts) != 1 || !texts["Task not found (code -32602)"] {
			t.Errorf("the texts are %v, want one", texts)
		}
	})
}

// Who does not declare the key reads that it would help; where there are no tasks, nothing exists.
func TestT17WithoutTheKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, method := range []string{"tasks/get", "tasks/update", "tasks/cancel", "subscriptions/listen"} {
			for mode, want := range map[settings.TaskMode]int64{"auto": spec.CodeMissingCapability, "run": spec.CodeMethodNotFound} {
				r := newHolder(t, &legacytest.TaskServer{Stages: []string{`"status":"working"`}}, settings.Server{Tasks: settings.Tasks{Mode: mode}})
				_, err := r.Serve(t.Context(), ask(method, `{"taskId":"x","notifications":{"taskIds":["x"]}}`), &backtest.Client{})
				var refusal *mcp.Refusal
				refusal, _ = err.(*mcp.Refusal)
				if refusal == nil || refusal.Err.Code != want || want == spec.CodeMissingCapability && !strings.Contains(string(refusal.Err.Data), `{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}`) {
					t.Errorf("%s under %s = %v, want the refusal %d", method, mode, err, want)
				}
			}
		}
	})
}

// A task that is made after its caller left is cancelled, whoever was to hold it.
func TestT15TasksForNobody(t *testing.T) {
	for name, req := range map[string]*mcp.Request{"held": holding("ada", "tools/call", `{"name":"t"}`), "run": ask("tools/call", `{"name":"t"}`)} {
		bridgetest.RunBubble(t, "T-15 "+name, func(t *testing.T) {
			ts := &legacytest.TaskServer{Stages: []string{`"status":"working"`}, SlowCall: 10 * time.Second}
			r := newHolder(t, ts, settings.Server{})
			ctx, leave := context.WithTimeout(t.Context(), 5*time.Second)
			defer leave()
			if _, err := body(r.Serve(ctx, req, &backtest.Client{Answer: backtest.NeverAnswers})); err == nil {
				t.Error("the call was answered")
			}
			if got := <-ts.Cancelled; got != `{"taskId":"t1"}` {
				t.Errorf("tasks/cancel %s", got)
			}
			if r.holding.Len() != 0 || ts.Count("notifications/cancelled") != 1 {
				t.Errorf("%d tasks are held, the call was cancelled %d times before it was answered", r.holding.Len(), ts.Count("notifications/cancelled"))
			}
		})
	}
}

// So is one whose client has left before it could be told.
func TestT15TasksThatNobodyWasToldOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ts := &legacytest.TaskServer{Stages: []string{`"status":"working"`}}
		r := newHolder(t, ts, settings.Server{})
		res, err := r.Serve(t.Context(), holding("ada", "tools/call", `{"name":"t"}`), &backtest.Client{Answer: backtest.NeverAnswers})
		if err != nil {
			t.Fatal(err)
		}
		res.Lost()
		res.Release()
		begin := time.Now()
		if got := <-ts.Cancelled; time.Since(begin) > 0 || got != `{"taskId":"t1"}` || r.holding.Len() != 0 {
			t.Errorf("tasks/cancel %s, %d tasks are held", got, r.holding.Len())
		}
	})
}

// A live task keeps its session, and costs nothing; at the end of its time it is cancelled, and lets
// the session go.
func TestT14Lifetime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ts := &legacytest.TaskServer{Stages: []string{`"status":"working"`}}
		r := newHolder(t, ts, settings.Server{Idle: time.Minute, Tasks: settings.Tasks{TTL: time.Hour}})
		id := r.create()
		time.Sleep(time.Hour - time.Second)
		if n := ts.Count("tasks/get"); n != 0 || r.pool.Len() != 1 {
			t.Errorf("%d looks, %d sessions while nobody looks", n, r.pool.Len())
		}
		wants(t, r.get(id), `"status":"working"`)
		time.Sleep(time.Second)
		if got := <-ts.Cancelled; got != `{"taskId":"t1"}` {
			t.Errorf("tasks/cancel %s", got)
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if r.pool.Len() != 0 {
			t.Error("the session is open after the end of its only task")
		}
	})
}

// What a task came to is kept, and its session is not.
func TestT14OverTasksNeedNoSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ts := &legacytest.TaskServer{Stages: []string{`"status":"completed"`}, Result: said("done")}
		r := newHolder(t, ts, settings.Server{Idle: time.Minute})
		id := r.create()
		got := r.get(id)
		for _, s := range r.sessions("test/1") {
			if s.tasks.Find("t1") != nil {
				t.Error("the session has a task that is over")
			}
		}
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if r.pool.Len() != 0 {
			t.Error("the session is open")
		}
		if again := r.get(id); again != got || r.pool.Len() != 0 {
			t.Errorf("again it is %s, with %d sessions", again, r.pool.Len())
		}
	})
}
