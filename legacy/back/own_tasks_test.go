package back

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/backtest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/legacytest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/settings"
	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// An ownRig is a client of 2025-11-25 that holds tasks of a legacy server through a group, as the
// server has them. It keeps what it is asked on the streams of its requests, and beside them.
type ownRig struct {
	*holderRig
	on, aside asked
}

// asked are questions, which are accepted.
type asked struct {
	backtest.Caller
	texts []string
}

func (a *asked) accept(_ context.Context, qs []mcp.InputRequest) ([]mcp.InputResponse, error) {
	a.texts = append(a.texts, string(qs[0].Params))
	return []mcp.InputResponse{{Result: []byte(`{"action":"accept"}`)}}, nil
}

func newOwn(t *testing.T, ts *legacytest.TaskServer) *ownRig {
	r := &ownRig{holderRig: newHolder(t, ts, settings.Server{})}
	r.on.Ask, r.aside.Ask = r.on.accept, r.aside.accept
	return r
}

func (r *ownRig) ask(method, params string) string {
	r.t.Helper()
	req := ask(method, params)
	req.Era, req.Revision, req.Session, req.HoldsTasks, req.Aside = spec.Legacy, spec.Rev20251125, "s", true, &r.aside.Caller
	req.Profile.Capabilities = []byte(`{"elicitation":{}}`)
	got, err := body(r.Serve(r.t.Context(), req, &r.on.Caller))
	if err != nil {
		return err.Error()
	}
	return got
}

const ownQuestion = `{"message":"which?",` + legacytest.RelatedTask + `}`

// The task that such a client asks for is the server's, as are the answers about it. What the server
// asks about it reaches the client on the stream of tasks/result while that is open, beside its requests
// else, and the answer names the task; once the task is over nobody is asked.
func TestG12OwnTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ts := &legacytest.TaskServer{Stages: []string{`"status":"working"`}, Result: said("done")}
		answers := make(chan string, 1)
		pose := func() func() { // sends a question, and returns what waits for the answer
			_, answer := ts.Server.SendRequest("elicitation/create", ownQuestion)
			return func() {
				m := <-answer
				if m.Error != nil {
					answers <- m.Error.Message
					return
				}
				answers <- string(m.Result)
			}
		}
		question := func() { pose()() }
		ts.Called = func() { go pose()() } // before the client knows of the task
		r := newOwn(t, ts)
		if got, want := r.ask("tools/call", `{"name":"t","arguments":{},"task":{"ttl":60000}}`), `{"task":{"taskId":"t1","status":"working","pollInterval":1000}}`; got != want {
			t.Fatalf("tools/call = %s, want %s", got, want)
		}
		if got := string(ts.CallParams()); !strings.Contains(got, `"task":{"ttl":60000}`) {
			t.Errorf("the server was called with %s", got)
		}
		answered := func(by *asked) {
			t.Helper()
			if got, want := <-answers, `{"action":"accept",`+legacytest.RelatedTask+`}`; got != want {
				t.Errorf("the answer is %s, want %s", got, want)
			}
			if len(by.texts) != 1 || by.texts[0] != ownQuestion {
				t.Errorf("asked %q, want %s", by.texts, ownQuestion)
			}
			by.texts = nil
		}
		answered(&r.aside)
		if got, want := r.ask("tasks/get", `{"taskId":"t1"}`), `{"taskId":"t1","pollInterval":1000,"status":"working"}`; got != want {
			t.Errorf("tasks/get = %s, want %s", got, want)
		}
		go question()
		answered(&r.aside)
		ts.Begin = question
		if got := r.ask("tasks/result", `{"taskId":"t1"}`); got != said("done") {
			t.Errorf("tasks/result = %s", got)
		}
		answered(&r.on)
		go question()
		if got := <-answers; strings.Contains(got, "accept") || len(r.aside.texts)+len(r.on.texts) > 0 {
			t.Errorf("after its end the server heard %s, and %q, %q was asked", got, r.on.texts, r.aside.texts)
		}
	})
}

// A task that is found to be over is forgotten, but not one that a look or a wait has failed for.
func TestG12OwnTasksEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ts := &legacytest.TaskServer{Stages: []string{`"status":"working"`}, Result: said("done")}
		r := newOwn(t, ts)
		r.ask("tools/call", `{"name":"t","arguments":{},"task":{}}`)
		known := func() bool {
			s, release, err := r.session(t.Context(), ask("", "").Profile, false)
			if err != nil {
				t.Fatal(err)
			}
			defer release()
			return s.tasks.Find("t1") != nil
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		ts.Begin = func() { cancel(errors.New("gone")); synctest.Wait() }
		req := ask("tasks/result", `{"taskId":"t1"}`)
		req.Era, req.HoldsTasks, req.Aside = spec.Legacy, true, &r.aside.Caller
		if _, err := r.Serve(ctx, req, &r.on.Caller); err == nil || !known() {
			t.Errorf("after a wait that came to nothing, %v, the task is known: %v", err, known())
		}
		if r.ask("tasks/get", `{"taskId":"t1"}`); !known() {
			t.Error("a task that works is not known")
		}
		ts.SetStages(`"status":"cancelled"`)
		if r.ask("tasks/get", `{"taskId":"t1"}`); known() {
			t.Error("a task that is over is known")
		}
	})
}

// A session with such a task lasts as long as its server keeps it, though its client asks for nothing
// for minutes: it ends with its session.
func TestG12OwnTasksOutliveAPause(t *testing.T) {
	for _, tt := range []struct {
		pause time.Duration
		stays bool
	}{{50 * time.Minute, true}, {90 * time.Minute, false}} {
		synctest.Test(t, func(t *testing.T) {
			ts := &legacytest.TaskServer{Stages: []string{`"status":"working"`}, Result: said("done")}
			r := &ownRig{holderRig: newHolder(t, ts, settings.Server{Idle: 5 * time.Minute})}
			r.ask("tools/call", `{"name":"t","arguments":{},"task":{"ttl":3600000}}`)
			time.Sleep(tt.pause)
			if alive := len(r.sessions("test/1")) == 1; alive != tt.stays {
				t.Errorf("after %v its session is there: %v, want %v", tt.pause, alive, tt.stays)
			}
		})
	}
}
