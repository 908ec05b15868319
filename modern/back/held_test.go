package back

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/backtest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/settings"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

func holding() Options {
	return Options{Options: upstream.Options{Settings: settings.Server{Tasks: settings.Tasks{Mode: settings.TasksOn}}}}
}

// heldRequest returns a request of a session that was told of tasks.
func heldRequest(method, params string) *mcp.Request {
	r := askedCall(params)
	r.Method, r.HoldsTasks, r.Principal = method, true, "ada"
	return r
}

// holdOne has a task made, and returns its id for params, with the braces.
func holdOne(t *testing.T, b *Back) string {
	t.Helper()
	body, err := upBody(b.Serve(t.Context(), heldRequest("tools/call", `{"name":"x","task":{"ttl":1}}`), &backtest.Caller{}))
	task := wire.Get([]byte(body), "task")
	if err != nil || !strings.Contains(string(task), `"status":"working"`) || !strings.Contains(string(task), `"ttl":`) || strings.Contains(body, "resultType") || strings.Contains(body, "t/1") {
		t.Fatalf("the call = %s, %v, want a task", body, err)
	}
	return `{"taskId":` + string(wire.Get(task, "taskId")) + `}`
}

func TestT20CallsBecomeTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &taskServer{looks: sequence(done)}
		b, end := s.back(t, holding())
		defer end()
		holdOne(t, b)
		if len(s.calls) != 1 || strings.Contains(s.calls[0], `"task":`) {
			t.Errorf("the server got %q, want one call that declares the extension", s.calls)
		}
		other := heldRequest("tools/call", `{"name":"x","task":{"ttl":1}}`)
		if other.HoldsTasks = false; true {
			if body, err := upBody(b.Serve(t.Context(), other, &backtest.Caller{})); err != nil || body != doneIs {
				t.Errorf("in another session = %s, %v, want the call's result", body, err)
			}
		}
	})
}

func TestT21IDsAreThePrincipals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &taskServer{looks: sequence(stillWorking)}
		b, end := s.back(t, holding())
		defer end()
		id := holdOne(t, b)
		other := heldRequest(spec.MethodTaskGet, id)
		other.Session = "s2"
		if body, err := upBody(b.Serve(t.Context(), other, &backtest.Caller{})); err != nil || !strings.Contains(body, `"status":"working"`) {
			t.Errorf("another session = %s, %v, want the task", body, err)
		}
		for _, c := range []struct{ who, id string }{{"bob", id}, {"ada", `{"taskId":"t/1"}`}, {"ada", strings.Replace(id, `"}`, `A"}`, 1)}, {"ada", `{}`}} {
			for _, method := range []string{spec.MethodTaskGet, spec.MethodTaskResult, spec.MethodTaskCancel} {
				req := heldRequest(method, c.id)
				req.Principal = mcp.Principal(c.who)
				_, err := b.Serve(t.Context(), req, &backtest.Caller{})
				if e := wireErr(t, err); e.Code != spec.CodeInvalidParams || e.Message != "Task not found" {
					t.Errorf("%s of %s by %s = %v, want one text", method, c.id, c.who, err)
				}
			}
		}
	})
}

func TestT22Looks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failed := `"status":"completed","result":{"content":[{"type":"text","text":"no disk"}],"isError":true}`
		s := &taskServer{looks: sequence(asks(questionA), failed)}
		b, end := s.back(t, holding())
		defer end()
		id := holdOne(t, b)
		for n, want := range []string{`"status":"input_required"`, `"status":"failed"`} {
			body, err := upBody(b.Serve(t.Context(), heldRequest(spec.MethodTaskGet, id), &backtest.Caller{}))
			if err != nil || !strings.Contains(body, want) || strings.Contains(body, "inputRequests") || strings.Contains(body, `"result"`) || n == 1 && !strings.Contains(body, `"statusMessage":"no disk"`) || s.n != n+1 {
				t.Errorf("look %d = %s, %v after %d upstream, want %s alone", n, body, err, s.n, want)
			}
		}
	})
}

func TestT23ResultsAreWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &taskServer{looks: sequence(stillWorking, stillWorking, stillWorking, done)}
		b, end := s.back(t, holding())
		defer end()
		id := holdOne(t, b)
		time.Sleep(time.Minute)
		if s.n != 0 {
			t.Errorf("%d looks while nobody waits", s.n)
		}
		var all []<-chan outcome
		for range 3 {
			all = append(all, upServe(t.Context(), b, heldRequest(spec.MethodTaskResult, id), &backtest.Caller{}))
		}
		for _, c := range all {
			if got := <-c; got.err != nil || !strings.Contains(got.body, `"text":"done"`) || !strings.Contains(got.body, spec.MetaRelatedTask) {
				t.Errorf("tasks/result = %s, %v, want the result", got.body, got.err)
			}
		}
		if s.n != 4 {
			t.Errorf("%d looks for three that wait, want 4", s.n)
		}
	})
}

// A question goes to who waits, or beside its requests; the answer goes up once.
func TestT25QuestionsOfHeldTasks(t *testing.T) {
	for name, waits := range map[string]bool{"tasks/result": true, "beside": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &taskServer{}
				late := 0 // it takes looks until the server knows of an answer
				s.looks = func(int) string {
					if late += len(s.updates); late > 2 {
						return done
					}
					return asks(questionA)
				}
				b, end := s.back(t, holding())
				defer end()
				id := holdOne(t, b)
				x := &backtest.Caller{Ask: answers(willing)}
				if waits {
					if _, err := upBody(b.Serve(t.Context(), heldRequest(spec.MethodTaskResult, id), x)); err != nil {
						t.Error(err)
					}
				} else {
					for range 4 {
						req := heldRequest(spec.MethodTaskGet, id)
						req.Aside = x
						if _, err := upBody(b.Serve(t.Context(), req, &backtest.Caller{})); err != nil {
							t.Error(err)
						}
						synctest.Wait()
					}
				}
				if len(s.updates) != 1 || len(x.Asked()) != 1 || !strings.Contains(string(x.Asked()[0][0].Params), spec.MetaRelatedTask) {
					t.Errorf("%d answers and the questions %v, want one of each, that names the task", len(s.updates), x.Asked())
				}
			})
		})
	}
}

func TestT26CancelledTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &taskServer{looks: sequence(stillWorking)}
		b, end := s.back(t, holding())
		defer end()
		id := holdOne(t, b)
		waits := upServe(context.Background(), b, heldRequest(spec.MethodTaskResult, id), &backtest.Caller{})
		synctest.Wait()
		if body, err := upBody(b.Serve(t.Context(), heldRequest(spec.MethodTaskCancel, id), &backtest.Caller{})); err != nil || !strings.Contains(body, `"status":"cancelled"`) || s.canceled != 1 {
			t.Errorf("tasks/cancel = %s, %v after %d upstream, want it cancelled", body, err, s.canceled)
		}
		if got := <-waits; got.err == nil || wireErr(t, got.err).Code != spec.CodeInternal {
			t.Errorf("who waits gets %s, %v, want -32603", got.body, got.err)
		}
		_, err := b.Serve(t.Context(), heldRequest(spec.MethodTaskCancel, id), &backtest.Caller{})
		if e := wireErr(t, err); e.Code != spec.CodeInvalidParams || !strings.Contains(e.Message, "over") {
			t.Errorf("a second tasks/cancel = %v, want -32602", err)
		}
	})
}

func TestT27ChangesAreToldToWhoWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &taskServer{looks: sequence(stillWorking, stillWorking, `"status":"working","statusMessage":"half"`, done)}
		b, end := s.back(t, holding())
		defer end()
		x := &backtest.Caller{}
		if _, err := upBody(b.Serve(t.Context(), heldRequest(spec.MethodTaskResult, holdOne(t, b)), x)); err != nil {
			t.Fatal(err)
		}
		if got := x.Heard(); len(got) != 1 || !strings.HasPrefix(got[0], spec.NotifyTaskStatus) || !strings.Contains(got[0], "half") {
			t.Errorf("who waits heard %q, want the change", got)
		}
	})
}

// A server that answers at once has made no task: its result is kept.
func TestT20ResultsAtOnceAreKept(t *testing.T) {
	p := newUpPeer(t)
	p.says("tools/call", said("at once"))
	b := p.back(holding())
	body, err := upBody(b.Serve(t.Context(), heldRequest("tools/call", `{"name":"x","task":{}}`), &backtest.Caller{}))
	id := `{"taskId":` + string(wire.Get(wire.Get([]byte(body), "task"), "taskId")) + `}`
	if err != nil || !strings.Contains(body, `"status":"working"`) || strings.Contains(body, "at once") {
		t.Fatalf("the call = %s, %v, want a task", body, err)
	}
	for method, want := range map[string]string{spec.MethodTaskGet: `"status":"completed"`, spec.MethodTaskResult: "at once"} {
		if body, err := upBody(b.Serve(t.Context(), heldRequest(method, id), &backtest.Caller{})); err != nil || !strings.Contains(body, want) {
			t.Errorf("%s = %s, %v, want %s", method, body, err, want)
		}
	}
}
