package back

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/backtest"
	"github.com/mcpbridge/mcpbridge/internal/limits"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/requeststate"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// of sends a request about a task that nobody is asked for.
func of(t *testing.T, b *Back, method, id string) (string, error) {
	t.Helper()
	return upBody(b.Serve(t.Context(), heldRequest(method, id), &backtest.Caller{}))
}

// idIn returns the params that name the task of a call's result.
func idIn(t *testing.T, body string) string {
	t.Helper()
	id := wire.Get(wire.Get([]byte(body), "task"), "taskId")
	if id == nil {
		t.Fatalf("the call = %s, want a task", body)
	}
	return `{"taskId":` + string(id) + `}`
}

// What the server asks before it makes a task is asked on the call, of which the question is a part.
func TestT20RoundsBeforeTheTask(t *testing.T) {
	p := newUpPeer(t)
	p.on["tools/call"] = func(w http.ResponseWriter, _ *http.Request, m wire.Message) {
		if wire.Get(m.Params, "inputResponses") == nil {
			upAnswer(w, m.ID, `{"resultType":"input_required","inputRequests":{`+questionA+`},"requestState":"s"}`)
			return
		}
		upAnswer(w, m.ID, `{"resultType":"task","taskId":"t/1","status":"working","ttlMs":null}`)
	}
	x := &backtest.Caller{Ask: answers(willing)}
	body, err := upBody(p.back(holding()).Serve(t.Context(), heldRequest("tools/call", `{"name":"x","task":{}}`), x))
	if err != nil || !strings.Contains(body, `{"task":{`) {
		t.Fatalf("the call = %s, %v, want a task", body, err)
	}
	if asked := x.Asked(); len(asked) != 1 || strings.Contains(string(asked[0][0].Params), spec.MetaRelatedTask) {
		t.Errorf("the client was asked %s, want one question, of no task", asked)
	}
	seen := p.requests("tools/call")
	if len(seen) != 2 || !strings.Contains(seen[1].params, `"requestState":"s"`) || !strings.Contains(seen[1].params, `"action":"accept"`) {
		t.Fatalf("the server got %+v, want the answer in a second round", seen)
	}
	for _, s := range seen {
		if !strings.Contains(s.params, spec.ExtensionTasks) || strings.Contains(s.params, `"task":`) {
			t.Errorf("the server got %s, want the extension declared, and no task", s.params)
		}
	}
}

// At a limit a call is answered as if its client could hold no task: it is run.
func TestT20AtALimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &taskServer{looks: sequence(stillWorking, done)}
		opts, m := holding(), &backtest.Metrics{}
		opts.Limits, opts.Metrics = limits.Set{"tasks": 1}, m
		b, end := s.back(t, opts)
		defer end()
		id := holdOne(t, b)
		if body, err := upBody(b.Serve(t.Context(), heldRequest("tools/call", `{"name":"x","task":{}}`), &backtest.Caller{})); err != nil || body != doneIs || m.Count("limit tasks") != 1 {
			t.Errorf("the second call = %s, %v, and a limit was met %d times, want the result, and once", body, err, m.Count("limit tasks"))
		}
		if len(s.calls) != 3 || strings.Contains(s.calls[1], "extensions") {
			t.Errorf("the server got the calls %q, want that the second declares nothing at first", s.calls)
		}
		if body, err := of(t, b, spec.MethodTaskResult, id); err != nil || !strings.Contains(body, `"text":"done"`) {
			t.Errorf("the first task = %s, %v, want its result", body, err)
		}
	})
}

// An error is the call's, and leaves its place to others.
func TestT20ErrorsAreTheCalls(t *testing.T) {
	p := newUpPeer(t)
	opts := holding()
	opts.Limits = limits.Set{"tasks": 1}
	b := p.back(opts)
	call := func() (string, error) {
		return upBody(b.Serve(t.Context(), heldRequest("tools/call", `{"name":"x","task":{}}`), &backtest.Caller{}))
	}
	p.on["tools/call"] = func(w http.ResponseWriter, _ *http.Request, m wire.Message) {
		upFail(w, http.StatusOK, m.ID, -32050, `{"n":1.0}`)
	}
	if _, err := call(); wireErr(t, err).Code != -32050 || string(wireErr(t, err).Data) != `{"n":1.0}` {
		t.Errorf("the call = %v, want the server's error", err)
	}
	p.says("tools/call", `{"resultType":"task","status":"working"}`)
	if _, err := call(); wireErr(t, err).Code != spec.CodeInternal || !strings.Contains(err.Error(), `server "scripted" made a task of tools/call that has no id`) {
		t.Errorf("the call = %v, want an error that names the server and what is wrong", err)
	}
	p.says("tools/call", said("at once"))
	body, err := call()
	if err != nil {
		t.Fatal(err)
	}
	idIn(t, body)
}

// A result at once for which there is no room is the call's.
func TestT20ResultsWithoutRoom(t *testing.T) {
	p := newUpPeer(t)
	p.says("tools/call", said("at once"))
	opts := holding()
	opts.Limits = limits.Set{"task_results": 1}
	body, err := upBody(p.back(opts).Serve(t.Context(), heldRequest("tools/call", `{"name":"x","task":{}}`), &backtest.Caller{}))
	if err != nil || body != said("at once") {
		t.Errorf("the call = %s, %v, want its result", body, err)
	}
}

// With configured keys an id is good in the next process; without, its client is told why it is not.
// A result that was kept went with its process.
func TestT21Restart(t *testing.T) {
	for name, keys := range map[string][]string{"keys": {"a key of all replicas"}, "no keys": nil} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &taskServer{looks: sequence(stillWorking, done)}
				start := func(serve func(http.ResponseWriter, *http.Request, wire.Message)) (*Back, func()) {
					opts := holding()
					var err error
					if opts.Sealer, err = requeststate.NewSealer(keys...); err != nil {
						t.Fatal(err)
					}
					return bubbleBack(t, opts, serve)
				}
				before, end := start(s.serve)
				id := holdOne(t, before)
				end()
				atOnce, end := start(func(w http.ResponseWriter, _ *http.Request, m wire.Message) { upAnswer(w, m.ID, said("at once")) })
				body, err := upBody(atOnce.Serve(t.Context(), heldRequest("tools/call", `{"name":"x","task":{}}`), &backtest.Caller{}))
				if err != nil {
					t.Fatal(err)
				}
				kept := idIn(t, body)
				end()

				after, end := start(s.serve)
				defer end()
				body, err = of(t, after, spec.MethodTaskResult, id)
				switch {
				case keys == nil && !isRestart(err):
					t.Errorf("the task = %s, %v, want -32602 that tells of a restart", body, err)
				case keys != nil && (err != nil || !strings.Contains(body, `"text":"done"`)):
					t.Errorf("the task = %s, %v, want its result", body, err)
				}
				if keys != nil {
					bobs := heldRequest(spec.MethodTaskGet, id)
					bobs.Principal = "bob"
					if _, err := after.Serve(t.Context(), bobs, &backtest.Caller{}); wireErr(t, err).Message != "Task not found" {
						t.Errorf("another principal gets %v, want what it gets for any id", err)
					}
				}
				if body, err := of(t, after, spec.MethodTaskGet, kept); !isRestart(err) {
					t.Errorf("the kept result = %s, %v, want -32602 that tells of a restart", body, err)
				}
			})
		})
	}
}

func isRestart(err error) bool {
	e := mcp.WireError(err)
	return err != nil && e.Code == spec.CodeInvalidParams && strings.Contains(e.Message, "restarted")
}

// A task whose time is up is unknown, listed or not, and also to who waits for it; the server is not
// asked any more.
func TestT21Expiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &taskServer{looks: sequence(stillWorking), ttl: "60000"}
		opts := holding()
		opts.Sealer, _ = requeststate.NewSealer("a key of all replicas")
		b, end := s.back(t, opts)
		defer end()
		other, endOther := s.back(t, opts)
		defer endOther()
		id := holdOne(t, b)
		if body, err := of(t, b, spec.MethodTaskGet, id); err != nil || !strings.Contains(body, `"status":"working"`) {
			t.Fatalf("tasks/get = %s, %v, want the task", body, err)
		}
		begun := time.Now()
		if body, err := of(t, b, spec.MethodTaskResult, id); err == nil || wireErr(t, err).Message != "Task not found" || time.Since(begun) != time.Minute {
			t.Errorf("tasks/result = %s, %v after %v, want that it is unknown after a minute", body, err, time.Since(begun))
		}
		time.Sleep(time.Second) // ids have whole seconds
		n := s.n
		for name, b := range map[string]*Back{"listed": b, "never listed": other} {
			for _, method := range []string{spec.MethodTaskGet, spec.MethodTaskResult, spec.MethodTaskCancel} {
				if body, err := of(t, b, method, id); err == nil || wireErr(t, err).Code != spec.CodeInvalidParams || wireErr(t, err).Message != "Task not found" {
					t.Errorf("%s, %s = %s, %v, want one text", name, method, body, err)
				}
			}
		}
		if s.n != n || s.canceled != 0 {
			t.Errorf("the server was asked %d times more, and %d times to cancel", s.n-n, s.canceled)
		}
	})
}

// A look that comes to nothing is an error, and the task is as before; what the server does not know is
// unknown.
func TestT22LooksThatFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &taskServer{}
		unknown := false
		b, end := bubbleBack(t, holding(), func(w http.ResponseWriter, r *http.Request, m wire.Message) {
			if m.Method == spec.MethodTaskGet && unknown {
				upFail(w, http.StatusOK, m.ID, spec.CodeInvalidParams, "")
				return
			}
			s.serve(w, r, m)
		})
		defer end()
		s.looks = sequence("", "", `"status":"paused","tempo":3`)
		id := holdOne(t, b)
		if body, err := of(t, b, spec.MethodTaskGet, id); err == nil || !strings.Contains(wireErr(t, err).Message, "scripted") {
			t.Errorf("tasks/get = %s, %v, want an error that names the server", body, err)
		}
		if body, err := of(t, b, spec.MethodTaskGet, id); err != nil || !strings.Contains(body, `"status":"working"`) || !strings.Contains(body, `"tempo":3`) {
			t.Errorf("tasks/get = %s, %v, want the task, working, with what nobody knows", body, err)
		}
		unknown = true
		if _, err := of(t, b, spec.MethodTaskGet, id); err == nil || wireErr(t, err).Message != "Task not found" {
			t.Errorf("tasks/get = %v, want that it is unknown", err)
		}
	})
}

// What a task came to that has no result is an error of tasks/result, each time.
func TestT23Errors(t *testing.T) {
	for name, c := range map[string]struct {
		task, status, text string
		code               int64
	}{
		"an error":  {`"status":"failed","error":{"code":-32050,"message":"it broke","data":{"n":1.0}}`, `"status":"failed"`, "it broke", -32050},
		"cancelled": {`"status":"cancelled","statusMessage":"no time"`, `"status":"cancelled"`, "no time", spec.CodeInternal},
		"nothing":   {`"status":"completed"`, `"status":"failed"`, "does not say what it came to", spec.CodeInternal},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &taskServer{looks: sequence(c.task)}
				b, end := s.back(t, holding())
				defer end()
				id := holdOne(t, b)
				for range 2 {
					body, err := of(t, b, spec.MethodTaskResult, id)
					if e := wireErr(t, err); e.Code != c.code || !strings.Contains(e.Message, c.text) {
						t.Errorf("tasks/result = %s, %v, want %d %s", body, err, c.code, c.text)
					}
				}
				if body, err := of(t, b, spec.MethodTaskGet, id); err != nil || !strings.Contains(body, c.status) || strings.Contains(body, `"error"`) {
					t.Errorf("tasks/get = %s, %v, want %s alone", body, err, c.status)
				}
				if s.n != 1 {
					t.Errorf("the server was looked at %d times, want once: what the task came to is kept", s.n)
				}
			})
		})
	}
}

// A kept result is the same until its time is up.
func TestT23KeptUntilItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts := holding()
		opts.Settings.Tasks.TTL = 10 * time.Minute
		b, end := bubbleBack(t, opts, func(w http.ResponseWriter, _ *http.Request, m wire.Message) {
			upAnswer(w, m.ID, `{"resultType":"complete","content":[{"type":"text","text":"no disk"}],"isError":true}`)
		})
		defer end()
		body, err := upBody(b.Serve(t.Context(), heldRequest("tools/call", `{"name":"x","task":{}}`), &backtest.Caller{}))
		if err != nil || !strings.Contains(body, `"ttl":600000`) {
			t.Fatalf("the call = %s, %v, want a task with a time", body, err)
		}
		id := idIn(t, body)
		for range 2 {
			time.Sleep(4 * time.Minute)
			if body, err := of(t, b, spec.MethodTaskResult, id); err != nil || !strings.Contains(body, "no disk") || !strings.Contains(body, spec.MetaRelatedTask) {
				t.Errorf("tasks/result = %s, %v, want the result, with its task", body, err)
			}
			if body, err := of(t, b, spec.MethodTaskGet, id); err != nil || !strings.Contains(body, `"status":"failed"`) || !strings.Contains(body, `"statusMessage":"no disk"`) {
				t.Errorf("tasks/get = %s, %v, want it failed, and why", body, err)
			}
		}
		time.Sleep(3 * time.Minute)
		if _, err := of(t, b, spec.MethodTaskResult, id); err == nil || wireErr(t, err).Message != "Task not found" {
			t.Errorf("after its time tasks/result = %v, want that it is unknown", err)
		}
	})
}

// A result for which there is no room is fetched again for each who asks.
func TestT23FetchedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &taskServer{looks: sequence(done)}
		opts, m := holding(), &backtest.Metrics{}
		opts.Limits, opts.Metrics = limits.Set{"task_results": 1}, m
		b, end := s.back(t, opts)
		defer end()
		id := holdOne(t, b)
		for range 3 {
			n := s.n
			if body, err := of(t, b, spec.MethodTaskResult, id); err != nil || !strings.Contains(body, `"text":"done"`) || s.n == n {
				t.Errorf("tasks/result = %s, %v after %d looks, want the result after one more", body, err, s.n)
			}
		}
		if m.Count("limit task_results") == 0 {
			t.Error("the limit was not counted")
		}
	})
}

// Who leaves leaves the task alone, which nobody looks at then.
func TestT23WhoLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &taskServer{looks: func(n int) string {
			if n > 3 {
				return done
			}
			return stillWorking
		}}
		b, end := s.back(t, holding())
		defer end()
		id := holdOne(t, b)
		ctx, leave := context.WithCancel(t.Context())
		waits := upServe(ctx, b, heldRequest(spec.MethodTaskResult, id), &backtest.Caller{})
		synctest.Wait()
		leave()
		if got := <-waits; got.err == nil {
			t.Errorf("who left got %s", got.body)
		}
		time.Sleep(time.Hour)
		if s.n != 1 || s.canceled != 0 {
			t.Errorf("%d looks and %d cancellations, want one look of who waited", s.n, s.canceled)
		}
		if body, err := of(t, b, spec.MethodTaskResult, id); err != nil || !strings.Contains(body, `"text":"done"`) {
			t.Errorf("the next one got %s, %v, want the result", body, err)
		}
	})
}

// Who waits for a task when its Back is closed hears of that: the call that it runs, and the client that
// holds it, whose task may go on elsewhere.
func TestT23ClosedWhileWaiting(t *testing.T) {
	for name, held := range map[string]bool{"held": true, "run": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &taskServer{looks: sequence(stillWorking)}
				b, end := s.back(t, holding())
				req := askedCall(`{"name":"x"}`)
				if held {
					req = heldRequest(spec.MethodTaskResult, holdOne(t, b))
				}
				got := upServe(t.Context(), b, req, &backtest.Caller{})
				time.Sleep(time.Second)
				end()
				if got := <-got; got.err == nil || !strings.Contains(mcp.WireError(got.err).Message, mcp.ErrShutdown.Error()) {
					t.Errorf("who waited got %s, %v, want that the gateway is shutting down", got.body, got.err)
				}
			})
		})
	}
}
