package tasks

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/legacytest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A client is told of its task with the time of its creation, as long as the gateway holds it, and with
// what the server adds, but not the server's id.
func TestT10Created(t *testing.T) {
	for _, tt := range []struct{ name, meta, want string }{
		{"nothing more", ``, ``},
		{"its id alone", `,` + legacytest.RelatedTask, ``},
		{"no object", `,"_meta":"t1"`, ``},
		{"a text to go on with", `,"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t1"},"io.modelcontextprotocol/model-immediate-response":"wait"}`, `,"_meta":{"io.modelcontextprotocol/model-immediate-response":"wait"}`},
	} {
		bridgetest.RunBubble(t, "T-10 "+tt.name, func(t *testing.T) {
			r := newHolder(t, &legacytest.TaskServer{})
			r.told = func(created []byte) []byte { return []byte(strings.TrimSuffix(string(created), "}") + tt.meta + "}") }
			h := r.hold()
			want := `{"resultType":"task","taskId":"` + h.Task().ID + `","status":"working","createdAt":"2000-01-01T00:00:00.000Z","lastUpdatedAt":"2000-01-01T00:00:00.000Z","ttlMs":3600000,"pollIntervalMs":1000` + tt.want + `}`
			if got := string(h.Created()); got != want {
				t.Errorf("Created = %s, want %s", got, want)
			}
		})
	}
}

// A task that is made after the gateway has begun to end is nobody's; whoever has called has the session.
func TestTasksThatComeTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHolder(t, &legacytest.TaskServer{})
		r.told = func(created []byte) []byte { r.Tasks.Close(); return created }
		if h := r.hold(); h != nil || r.at.released.Load() != 0 {
			t.Errorf("Hold = %v, and the session was let go %d times", h, r.at.released.Load())
		}
	})
}

// The answer to tasks/result decides what the task came to; that is kept, and the session let go. What
// was mended of a result is counted once.
func TestT12Outcomes(t *testing.T) {
	const times = `"createdAt":"2000-01-01T00:00:00.000Z","lastUpdatedAt":"2000-01-01T00:00:00.000Z"`
	const life = `,"ttlMs":3600000,"pollIntervalMs":1000`
	for _, tt := range []struct{ name, stage, result, want, met string }{
		{"a result", `"status":"completed"`, `{"resultType":"odd","content":[{"type":"text","text":"hi","annotations":null}],` + legacytest.RelatedTask + `}`, `"status":"completed",` + times + life + `,"result":{"resultType":"complete","content":[{"type":"text","text":"hi"}]}}`, "[{null-members  1}]"},
		{"a tool that failed", `"status":"failed"`, `{"isError":true,"content":null}`, `"status":"completed",` + times + life + `,"result":{"resultType":"complete","content":[],"isError":true}}`, "[{list-missing  1}]"},
		{"a member that is null", `"status":"completed"`, `{"content":[],"isError":null,"structuredContent":{"a":null},"com.example/x":null}`, `"status":"completed",` + times + life + `,"result":{"resultType":"complete","content":[],"structuredContent":{"a":null},"com.example/x":null}}`, "[{null-members  1}]"},
		{"an error", `"status":"failed","statusMessage":"no"`, `{"code":-32005,"message":"rate limit"}`, `"status":"failed","statusMessage":"no",` + times + life + `,"error":{"code":-32005,"message":"rate limit"}}`, "[]"},
		{"an error that is called a success", `"status":"completed"`, `{"code":-32042,"message":"odd"}`, `"status":"failed",` + times + life + `,"error":{"code":-32603,"message":"odd","data":{"code":-32042}}}`, "[]"},
		{"failed, with an empty result", `"status":"failed","statusMessage":"no disk"`, `{"_meta":{}}`, `"status":"failed","statusMessage":"no disk",` + times + life + `,"error":{"code":-32603,"message":"no disk"}}`, "[]"},
		{"failed, and nobody says why", `"status":"failed"`, `{}`, `"status":"failed",` + times + life + `,"error":{"code":-32603,"message":"the server says that the task has failed, and not why"}}`, "[]"},
		{"cancelled", `"status":"cancelled","statusMessage":"an operator did"`, `{"code":-1,"message":"not asked"}`, `"status":"cancelled","statusMessage":"an operator did",` + times + life + `}`, "[]"},
		{"forgotten", `{"code":-32602,"message":"Task has expired"}`, ``, `"status":"failed",` + times + life + `,"error":{"code":-32603,"message":"server \"scripted\" did not return the state of the task that runs the tool: Task has expired; it may have taken effect"}}`, "[]"},
	} {
		bridgetest.RunBubble(t, "T-12 "+tt.name, func(t *testing.T) {
			ts := &legacytest.TaskServer{Stages: []string{tt.stage}, Result: tt.result}
			r := newHolder(t, ts)
			id := r.create()
			got := r.get(id)
			if want := `{"resultType":"complete","taskId":"` + id + `",` + tt.want; got != want {
				t.Errorf("tasks/get = %s\nwant %s", got, want)
			}
			if n := r.at.released.Load(); n != 1 {
				t.Errorf("the session was let go %d times, want once", n)
			}
			looks, fetches := ts.Count(MethodGet), ts.Count(MethodResult)
			if again := r.get(id); again != got || ts.Count(MethodGet) != looks || ts.Count(MethodResult) != fetches {
				t.Errorf("again it is %s, after another request upstream", again)
			}
			if met := fmt.Sprint(r.Quirks.Meetings()); met != tt.met {
				t.Errorf("met %s, want %s", met, tt.met)
			}
		})
	}
}

// A status that the gateway does not know is no end.
func TestT12UnknownStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ts := &legacytest.TaskServer{Stages: []string{`"status":"paused"`, `"status":"completed"`}, Result: done}
		r := newHolder(t, ts)
		id := r.create()
		wants(t, r.get(id), `"status":"working"`)
		if n := r.at.released.Load(); n != 0 {
			t.Errorf("the session was let go %d times", n)
		}
		wants(t, r.get(id), `"status":"completed"`, "done")
	})
}

// An empty result that comes while the server still wants input is that of a task that has failed, if
// the next look says so.
func TestT12FailuresWhileAsking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ts := &legacytest.TaskServer{Stages: []string{`"status":"input_required"`, `"status":"failed","statusMessage":"no disk"`}, Result: `{` + legacytest.RelatedTask + `}`}
		r := newHolder(t, ts)
		id := r.create()
		r.get(id)
		synctest.Wait()
		wants(t, r.get(id), `"status":"failed"`, `"error":{"code":-32603,"message":"no disk"}`)
	})
}

// What can't be found out now leaves the task as it was.
func TestT12UnreachableServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ts := &legacytest.TaskServer{Stages: []string{`{"code":-32000,"message":"busy"}`, `"status":"completed"`}, Result: done}
		r := newHolder(t, ts)
		id := r.create()
		wants(t, r.get(id), "busy")
		wants(t, r.get(id), `"status":"completed"`, "done")
	})
}

// A server that wants input and does not say which leaves its client waiting, not asking.
func TestT13NothingIsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ts := &legacytest.TaskServer{Stages: []string{`"status":"input_required"`}, Result: done, Begin: func() { time.Sleep(time.Hour) }}
		r := newHolder(t, ts)
		r.life = 2 * time.Hour
		id := r.create()
		for _, want := range []time.Duration{time.Second, 0} {
			begin := time.Now()
			wants(t, r.get(id), `"status":"working"`)
			if took := time.Since(begin); took != want {
				t.Errorf("tasks/get took %v, want %v", took, want)
			}
		}
		if n := ts.Count(MethodResult); n != 1 {
			t.Errorf("tasks/result was called %d times, want once", n)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		wants(t, r.get(id), `"status":"completed"`)
	})
}

// A server that answers tasks/result before the end, with nothing that the task could have come to, is
// asked again only once it wants input anew, or the task is over.
func TestT13AnswersBeforeTheEnd(t *testing.T) {
	for name, early := range map[string]string{"nothing": `{}`, "an error": `{"code":-32000,"message":"not yet"}`} {
		bridgetest.RunBubble(t, "T-13 "+name, func(t *testing.T) {
			ts := &legacytest.TaskServer{Result: early}
			ts.Begin = func() {
				if ts.Count(MethodResult) > 10 { // each answer would bring about another request
					time.Sleep(time.Hour)
				}
			}
			r := newHolder(t, ts)
			id := r.create()
			for i, stage := range []string{"input_required", "working", "input_required", "completed"} {
				if stage == "completed" {
					ts.Result = done
				}
				ts.SetStages(`"status":"` + stage + `"`)
				want := map[bool]string{true: `"status":"completed"`, false: `"status":"working"`}[stage == "completed"]
				for range 3 {
					wants(t, r.get(id), want)
					synctest.Wait()
				}
				if n, want := ts.Count(MethodResult), []int{1, 1, 2, 3}[i]; n != want {
					t.Errorf("while the task is %s, tasks/result was called %d times in all, want %d", stage, n, want)
				}
			}
		})
	}
}

// A question that the server takes long to ask is told once it is asked, with those that come soon after
// it, and a client that waits meanwhile can leave.
func TestT13QuestionsThatComeLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ts := &legacytest.TaskServer{Stages: []string{`"status":"input_required"`}, Result: done}
		ts.Begin = func() {
			time.Sleep(askTime / 2)
			ts.Server.SendRequest(spec.MethodElicit, `{"message":"one"}`)
			time.Sleep(gatherTime / 2)
			ts.Server.Ask(spec.MethodElicit, `{"message":"two"}`)
		}
		r := newHolder(t, ts)
		id := r.create()
		ctx, leave := context.WithCancelCause(t.Context())
		left := errors.New("the client has left")
		time.AfterFunc(askTime/4, func() { leave(left) })
		if _, err := r.Serve(ctx, r.request(spec.MethodTaskGet, `{"taskId":"`+id+`"}`), nil); err != left {
			t.Errorf("tasks/get of a client that has left = %v, want why", err)
		}
		wants(t, r.get(id), `"status":"input_required"`, `"inputRequests":{"q1":{"method":"elicitation/create","params":{"message":"one"}},"q2":{"method":"elicitation/create","params":{"message":"two"}}}`)
	})
}

// A task is cancelled upstream and acknowledged; what it is then is the server's.
func TestT15Cancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ts := &legacytest.TaskServer{Stages: []string{`"status":"working"`, `"status":"completed"`}, Result: done}
		r := newHolder(t, ts)
		id := r.create()
		if got := r.cancel(id); got != `{"resultType":"complete"}` {
			t.Errorf("tasks/cancel = %s", got)
		}
		if got := <-ts.Cancelled; got != `{"taskId":"t1"}` {
			t.Errorf("the server got tasks/cancel %s", got)
		}
		wants(t, r.get(id), `"status":"working"`)
		wants(t, r.get(id), `"status":"completed"`)
		if got := r.cancel(id); got != `{"resultType":"complete"}` || len(ts.Cancelled) != 0 {
			t.Errorf("tasks/cancel of one that is over = %s, with %d requests", got, len(ts.Cancelled))
		}
	})
}

// A server that can't cancel is not asked to, also when the task's time is up; one that does not want
// to is as good as one that does; one that is gone is an error that says so.
func TestT15CancelInVain(t *testing.T) {
	for name, tt := range map[string]struct {
		how  func(r *holder)
		want string
	}{
		"can't":     {func(r *holder) { r.at.cancels = false }, `{"resultType":"complete"}`},
		"refuses":   {func(r *holder) { r.ts.Server.On[MethodCancel] = refuse }, `{"resultType":"complete"}`},
		"has ended": {func(r *holder) { r.ts.CloseConn(); synctest.Wait() }, `scripted`},
	} {
		bridgetest.RunBubble(t, "T-15 a server that "+name, func(t *testing.T) {
			r := newHolder(t, &legacytest.TaskServer{Stages: []string{`"status":"working"`}})
			id := r.create()
			tt.how(r)
			got := r.cancel(id)
			if tt.want == "scripted" {
				wants(t, got, "scripted", "-32603")
			} else if got != tt.want {
				t.Errorf("tasks/cancel = %s, want %s", got, tt.want)
			}
			if name != "has ended" {
				wants(t, r.get(id), `"status":"working"`)
			}
			time.Sleep(r.life)
			synctest.Wait()
			if n := r.at.released.Load(); n != 1 || len(r.ts.Cancelled) > 0 || r.Len() > 0 {
				t.Errorf("at the end of its time the session was let go %d times, %d requests came, and %d tasks are held", n, len(r.ts.Cancelled), r.Len())
			}
		})
	}
}

// An early session notes what is known of its task when it begins.
type earlySession struct {
	*heldLink
	of    *Holding
	who   *mcp.Identity
	found bool
}

func (s *earlySession) Begin(h *Held) {
	s.heldLink.Begin(h)
	_, err := s.of.Find("ada", h.Task().ID)
	s.who, s.found = h.Identity(), err == nil
}

// A session knows its task, and who has made it, before anybody finds it and before its time can be up:
// some servers keep tasks for a millisecond.
func TestT14SessionKnowsItsTaskFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHolder(t, &legacytest.TaskServer{Stages: []string{`"status":"working"`}})
		at := &earlySession{heldLink: r.at, of: r.Holding}
		req := r.request(spec.MethodToolsCall, `{"name":"t"}`)
		who := &mcp.Identity{Principal: "ada"}
		h := r.Hold(r.Take(req), at, []byte(`{"task":{"taskId":"t1","status":"working","ttl":1}}`), &Maker{Principal: "ada", Identity: who}, r.life, r.open)
		if at.found || at.who != who || at.held.Load() != h {
			t.Errorf("it began when the task was found: %v, made by %v, as %v, want it before, by %v, as %v", at.found, at.who, at.held.Load(), who, h)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if got := <-r.ts.Cancelled; got != `{"taskId":"t1"}` || at.released.Load() != 1 {
			t.Errorf("tasks/cancel %s, the session let go %d times", got, at.released.Load())
		}
	})
}

// Open questions of a task are answered when it is cancelled, and when its time is up.
func TestT15QuestionsOfCancelledTasks(t *testing.T) {
	for name, end := range map[string]func(r *holder, id string){
		"T-15 cancelled": func(r *holder, id string) { r.cancel(id) },
		"T-14 expired":   func(*holder, string) { time.Sleep(time.Minute) },
	} {
		bridgetest.RunBubble(t, name, func(t *testing.T) {
			answer := make(chan string, 1)
			ts := &legacytest.TaskServer{Stages: []string{`"status":"input_required"`}, Result: done}
			ts.Begin = func() {
				m := ts.Server.Ask(spec.MethodElicit, `{"message":"one"}`)
				answer <- string(m.Result)
			}
			r := newHolder(t, ts)
			r.life = time.Minute
			id := r.create()
			wants(t, r.get(id), "inputRequests")
			end(r, id)
			begin := time.Now()
			wants(t, <-answer, `"action":"cancel"`)
			if took := time.Since(begin); took > 0 {
				t.Errorf("the server was answered %v later", took)
			}
			if got := <-ts.Cancelled; got != `{"taskId":"t1"}` {
				t.Errorf("tasks/cancel %s", got)
			}
		})
	}
}

// The server hears of the cancellation before the answers, with which its tool could end well; but one
// that waits for its tool gets them after a second.
func TestT15CancelledBeforeAnswered(t *testing.T) {
	for name, tt := range map[string]struct{ takes, after time.Duration }{
		"T-15 soon": {300 * time.Millisecond, 300 * time.Millisecond},
		"T-15 late": {time.Minute, time.Second},
	} {
		bridgetest.RunBubble(t, name, func(t *testing.T) {
			answered := make(chan time.Time, 1)
			ts := &legacytest.TaskServer{Stages: []string{`"status":"input_required"`}, Result: done, SlowCancel: tt.takes}
			ts.Begin = func() {
				ts.Server.Ask(spec.MethodElicit, `{"message":"one"}`)
				answered <- time.Now()
			}
			r := newHolder(t, ts)
			id := r.create()
			wants(t, r.get(id), "inputRequests")
			begin := time.Now()
			r.cancel(id)
			if after := (<-answered).Sub(begin); after != tt.after {
				t.Errorf("the question was answered %v after the cancellation, want %v", after, tt.after)
			}
		})
	}
}

// A task whose session is lost is looked for in a new one, once: it goes on, or has failed.
func TestT16LostSessions(t *testing.T) {
	for name, tt := range map[string]struct {
		after string // what the new session's server says of it
		want  []string
	}{
		"it goes on":    {`"status":"completed"`, []string{`"status":"completed"`, "done"}},
		"it is unknown": {`{"code":-32602,"message":"no such task"}`, []string{`"status":"failed"`, `"code":-32603`, `server \"scripted\" has lost the session`, "it may have taken effect"}},
	} {
		bridgetest.RunBubble(t, "T-16 "+name, func(t *testing.T) {
			next := &legacytest.TaskServer{Stages: []string{tt.after}, Result: done}
			r := newHolder(t, &legacytest.TaskServer{Stages: []string{`"status":"working"`}, Result: done})
			r.next = append(r.next, next)
			id := r.create()
			wants(t, r.get(id), `"status":"working"`)
			r.ts.CloseConn()
			synctest.Wait()
			for range 2 {
				wants(t, r.get(id), tt.want...)
			}
			if len(r.next) != 0 || next.Count(spec.MethodToolsCall) != 0 || next.Count(MethodGet) != 1 {
				t.Errorf("%d sessions are left to open, want that one is opened, and asked for the task once", len(r.next))
			}
			if n := r.at.released.Load(); n != 1 {
				t.Errorf("the session that was lost was let go %d times, want once", n)
			}
		})
	}
}

// If the time of a task whose session is lost is up while another one is opened, the task is cancelled
// there, and both are let go, once each.
func TestT16TimeIsUpWhileASessionIsOpened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHolder(t, &legacytest.TaskServer{Stages: []string{`"status":"working"`}})
		r.life = time.Minute
		next := &legacytest.TaskServer{Stages: []string{`"status":"working"`}}
		other := r.session(next)
		req := r.request(spec.MethodToolsCall, `{"name":"t"}`)
		created, err := r.at.Request(t.Context(), req.Method, Params(req.Params, r.life))
		if err != nil {
			t.Fatal(err)
		}
		h := r.Hold(r.Take(req), r.at, created, &Maker{Principal: req.Principal}, r.life, func(_ context.Context, h *Held) (Session, error) {
			time.Sleep(2 * r.life)
			other.Begin(h)
			return other, nil
		})
		r.ts.CloseConn()
		synctest.Wait()
		asked := make(chan string, 1)
		go func() { asked <- r.get(h.Task().ID) }() // ends with the look
		time.Sleep(3 * r.life)
		synctest.Wait()
		if n := len(asked); n != 1 {
			t.Errorf("%d answers to tasks/get, want one", n)
		}
		if lost, opened := r.at.released.Load(), other.released.Load(); lost != 1 || opened != 1 {
			t.Errorf("the session that was lost was let go %d times, the other %d times, want once each", lost, opened)
		}
		if len(next.Cancelled) != 1 || next.Count(MethodGet) != 0 {
			t.Errorf("%d of tasks/cancel and %d of tasks/get came in the new session, want one and none", len(next.Cancelled), next.Count(MethodGet))
		}
	})
}

// What names no task, or can't be described, is refused for that.
func TestRefusedRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHolder(t, &legacytest.TaskServer{Stages: []string{`"status":"working"`}})
		for _, params := range []string{``, `{}`, `{"taskId":1}`, `{"taskId":null}`} {
			if got, want := r.serve(spec.MethodTaskGet, params), "params.taskId is missing or not a string (code -32602)"; got != want {
				t.Errorf("tasks/get %s = %s, want %s", params, got, want)
			}
		}
		id := r.create()
		starting := errors.New("it is starting")
		r.Describe = func(context.Context, *mcp.Request) (*mcp.Description, error) { return nil, starting }
		plain := r.request(spec.MethodTaskGet, `{"taskId":"`+id+`"}`)
		plain.Capabilities = nil
		if _, err := r.Serve(t.Context(), plain, nil); err != starting {
			t.Errorf("tasks/get without the extension, of a server that can't be described = %v, want why", err)
		}
		res, err := r.Serve(t.Context(), r.request(spec.MethodTaskGet, `{"taskId":"`+id+`"}`), nil)
		if err != nil || res.ServerInfo != nil {
			t.Errorf("tasks/get of it by its client = %v, %v, want the task, which needs no description", res, err)
		}
	})
}

// refuse is how a server answers that wants to go on.
func refuse(wire.Message) string { return `{"code":-32602,"message":"cannot cancel"}` }
