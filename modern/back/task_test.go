package back

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
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

// A taskServer runs its tool as a task alone: looks answers the looks at it, one after the other.
type taskServer struct {
	looks func(n int) string // the members of the task, or the empty text for no answer
	ttl   string             // of the task, in ms; null if empty

	mu       sync.Mutex
	n        int
	begun    time.Time
	at       []time.Duration // of the looks
	calls    []string        // the params of calls
	updates  []string        // inputResponses
	canceled int
}

func (s *taskServer) serve(w http.ResponseWriter, _ *http.Request, m wire.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	declared := strings.Contains(string(wire.Get(m.Params, "_meta")), `"io.modelcontextprotocol/tasks":{}`)
	id, _ := wire.GetString(m.Params, "taskId")
	switch {
	case m.Method == "tools/call" && !declared:
		s.calls = append(s.calls, string(m.Params))
		upFail(w, http.StatusBadRequest, m.ID, spec.CodeMissingCapability, needs)
	case m.Method == "tools/call":
		s.calls, s.begun = append(s.calls, string(m.Params)), time.Now()
		upAnswer(w, m.ID, `{"resultType":"task","taskId":"t/1","status":"working","ttlMs":`+cmp.Or(s.ttl, "null")+`,"pollIntervalMs":400,"createdAt":"2026-11-01T00:00:00Z","lastUpdatedAt":"2026-11-01T00:00:00Z"}`)
	case !declared || id != "t/1":
		upFail(w, http.StatusOK, m.ID, spec.CodeInvalidParams, "")
	case m.Method == spec.MethodTaskUpdate:
		s.updates = append(s.updates, string(wire.Get(m.Params, "inputResponses")))
		upAnswer(w, m.ID, `{"resultType":"complete"}`)
	case m.Method == spec.MethodTaskCancel:
		s.canceled++
		upAnswer(w, m.ID, `{"resultType":"complete"}`)
	default:
		s.n++
		s.at = append(s.at, time.Since(s.begun))
		task := s.looks(s.n)
		if task == "" {
			panic(http.ErrAbortHandler)
		}
		upAnswer(w, m.ID, `{"resultType":"complete","taskId":"t/1","ttlMs":null,"pollIntervalMs":400,`+task+`}`)
	}
}

// back returns a Back of the server, for a test in a bubble.
func (s *taskServer) back(t *testing.T, opts Options) (*Back, func()) {
	return bubbleBack(t, opts, s.serve)
}

const (
	stillWorking = `"status":"working"`
	done         = `"status":"completed","result":{"content":[{"type":"text","text":"done"}],"isError":false}`
	doneIs       = `{"content":[{"type":"text","text":"done"}],"isError":false}`
)

// sequence answers looks with tasks, the last one again and again.
func sequence(tasks ...string) func(int) string {
	return func(n int) string { return tasks[min(n, len(tasks))-1] }
}

func TestT07ToolsThatDemandATaskAreRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &taskServer{looks: sequence(done)}
		b, end := s.back(t, Options{})
		defer end()
		call := func() {
			t.Helper()
			if body, err := upBody(b.Serve(t.Context(), upRequest("tools/call", `{"name":"x","arguments":{"n":1.0},"task":{"ttl":1}}`), &backtest.Caller{})); err != nil || body != doneIs {
				t.Errorf("Serve = %s, %v, want the outcome of the task", body, err)
			}
		}
		want := func(n int) {
			t.Helper()
			if len(s.calls) != n || strings.Contains(s.calls[0], "extensions") || strings.Contains(s.calls[n-1], `"task":`) || !strings.Contains(s.calls[n-1], `"arguments":{"n":1.0}`) {
				t.Errorf("the server got the calls %q, want %d of them", s.calls, n)
			}
		}
		call()
		want(2) // the first one was refused unseen
		call()
		want(3) // the tool is known
		other := upRequest("tools/call", `{"name":"x"}`)
		other.Profile.Scope = "scripted/2"
		if _, err := upBody(b.Serve(t.Context(), other, &backtest.Caller{})); err != nil || len(s.calls) != 5 {
			t.Errorf("another profile: %v after %d calls, want 5: what one was told is not the other's", err, len(s.calls))
		}
		b.toolsChanged("scripted/1")
		call()
		if len(s.calls) != 7 {
			t.Errorf("the server got %d calls, want 7: its list has changed", len(s.calls))
		}
		if _, err := upBody(b.Serve(t.Context(), other, &backtest.Caller{})); err != nil || len(s.calls) != 8 {
			t.Errorf("another profile: %v after %d calls, want 8: its list has not", err, len(s.calls))
		}
	})
}

// Modern clients read it, too; see TestT01WhoDoesNotDeclareIsRefusedByTheServer.
func TestT07OthersReadTheRefusal(t *testing.T) {
	off := settings.Server{Tasks: settings.Tasks{Mode: settings.TasksOff}}
	for name, c := range map[string]struct {
		req  *mcp.Request
		opts Options
		data string
	}{
		"tasks: off":      {upRequest("tools/call", `{"name":"x"}`), Options{Options: upstream.Options{Settings: off}}, needs},
		"another request": {upRequest("prompts/get", `{"name":"x"}`), Options{}, needs},
		"another need":    {upRequest("tools/call", `{"name":"x"}`), Options{}, `{"requiredCapabilities":{"sampling":{}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			p := newUpPeer(t)
			refuse := func(w http.ResponseWriter, _ *http.Request, m wire.Message) {
				upFail(w, http.StatusBadRequest, m.ID, spec.CodeMissingCapability, c.data)
			}
			p.on["tools/call"], p.on["prompts/get"] = refuse, refuse
			_, err := p.back(c.opts).Serve(t.Context(), c.req, &backtest.Caller{})
			if e := wireErr(t, err); e.Code != spec.CodeMissingCapability || len(p.requests(c.req.Method)) != 1 {
				t.Errorf("Serve = %v after %d requests, want the server's -32021 after one", err, len(p.requests(c.req.Method)))
			}
		})
	}
}

// The pauses double from 50 ms to what the server asks for, and begin anew after an answer.
func TestT24LooksAndProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		changed := `"status":"working","statusMessage":"half \"way\""`
		s := &taskServer{looks: sequence(stillWorking, stillWorking, changed, changed, "", stillWorking, done)}
		b, end := s.back(t, Options{})
		defer end()
		req := upRequest("tools/call", `{"name":"x","_meta":{"progressToken":"p"}}`)
		req.ProgressToken = json.RawMessage(`"p"`)
		x := &backtest.Caller{}
		if body, err := upBody(b.Serve(t.Context(), req, x)); err != nil || body != doneIs {
			t.Fatalf("Serve = %s, %v, want the outcome of the task", body, err)
		}
		var pauses []time.Duration
		for i, at := range s.at {
			if i > 0 {
				at -= s.at[i-1]
			}
			pauses = append(pauses, at)
		}
		if want := []time.Duration{50, 100, 200, 400, 400}; !slices.Equal(pauses[:5], mapped(want)) {
			t.Errorf("the looks came after pauses of %v, want %vms", pauses, want)
		}
		heard := x.Heard()
		if len(heard) < 3 || !strings.Contains(heard[0], `{"progressToken":"p","progress":0.001}`) || !strings.Contains(heard[1], `"progress":0.002,"message":"half \"way\""`) {
			t.Errorf("the client heard %q, want progress for each change", heard)
		}
	})
}

func mapped(ms []time.Duration) (out []time.Duration) {
	for _, d := range ms {
		out = append(out, d*time.Millisecond)
	}
	return out
}

// A long task outlives the time-out of requests, and not the most that a call may take.
func TestT24TimeLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &taskServer{looks: sequence(stillWorking)}
		b, end := s.back(t, Options{Options: upstream.Options{Settings: settings.Server{Timeouts: settings.Timeouts{Request: time.Minute, Max: time.Hour}}}})
		defer end()
		start := time.Now()
		_, err := b.Serve(t.Context(), upRequest("tools/call", `{"name":"x"}`), &backtest.Caller{})
		if took := time.Since(start).Round(time.Second); took != time.Hour || !strings.Contains(wireErr(t, err).Message, "timeouts.max") || s.canceled != 1 {
			t.Errorf("Serve = %v after %v and %d cancellations, want a failure that names timeouts.max after 1h, and one", err, took, s.canceled)
		}
	})
}

func TestT24Outcomes(t *testing.T) {
	for name, c := range map[string]struct{ task, code, text string }{
		"error":         {`"status":"failed","error":{"code":-32050,"message":"it broke","data":{"n":1.0}}`, "-32050", "it broke"},
		"cancelled":     {`"status":"cancelled","statusMessage":"no time"`, "-32603", `server "scripted" cancelled the task that ran the tool: no time`},
		"nothing":       {`"status":"completed"`, "-32603", `server "scripted" has a task that is completed, and does not say what it came to: it gave no reason`},
		"unknown state": {`"status":"paused"`, "-32603", "did not return the state of the task"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &taskServer{}
				s.looks = func(n int) string {
					if n > 1 {
						panic(http.ErrAbortHandler) // and then it does not answer at all
					}
					return c.task
				}
				if name == "unknown state" {
					s.looks = sequence(c.task, c.task, done)
				}
				b, end := s.back(t, Options{})
				defer end()
				body, err := upBody(b.Serve(t.Context(), upRequest("tools/call", `{"name":"x"}`), &backtest.Caller{}))
				if name == "unknown state" { // is as good as working
					if body != doneIs || err != nil {
						t.Errorf("Serve = %s, %v, want the outcome", body, err)
					}
					return
				}
				if e := wireErr(t, err); fmt.Sprint(e.Code) != c.code || !strings.Contains(e.Message, c.text) {
					t.Errorf("Serve = %v, want %s %s", err, c.code, c.text)
				}
				if s.canceled != 0 {
					t.Error("a task that is over was cancelled")
				}
			})
		})
	}
}

// The task that the server has lost fails the call, and says that it may have taken effect.
func TestT24LostTask(t *testing.T) {
	p := newUpPeer(t)
	p.says("tools/call", `{"resultType":"task","taskId":"t/1","status":"working","ttlMs":null}`)
	p.on[spec.MethodTaskGet] = func(w http.ResponseWriter, _ *http.Request, m wire.Message) {
		upFail(w, http.StatusOK, m.ID, spec.CodeInvalidParams, "")
	}
	p.says(spec.MethodTaskCancel, `{}`)
	b := p.back(Options{})
	b.taskTools.tools.Add(taskTool{"scripted/1", "x"}, struct{}{})
	_, err := b.Serve(t.Context(), upRequest("tools/call", `{"name":"x"}`), &backtest.Caller{})
	if e := wireErr(t, err); e.Code != spec.CodeInternal || !strings.Contains(e.Message, "may have taken effect") {
		t.Errorf("Serve = %v, want -32603 that says so", err)
	}
}

// A call that its client cancels has its task cancelled.
func TestT24CancelledCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &taskServer{looks: sequence(stillWorking)}
		b, end := s.back(t, Options{})
		defer end()
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		if _, err := b.Serve(ctx, upRequest("tools/call", `{"name":"x"}`), &backtest.Caller{}); err == nil || s.canceled != 1 {
			t.Errorf("Serve = %v, and the server got %d cancellations, want one", err, s.canceled)
		}
	})
}

const (
	questionA = `"\u0061":{"method":"elicitation/create","params":{"message":"a","requestedSchema":{}}}`
	questionB = `"b":{"method":"roots/list"}`
)

// asks is a task that asks.
func asks(questions ...string) string {
	return `"status":"input_required","inputRequests":{` + strings.Join(questions, ",") + `}`
}

// Each key is asked once, and each answer goes up alone, under its key; the next looks still have
// the questions.
func TestT24Questions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, answered := &taskServer{}, 0
		s.looks = func(n int) string { // it takes a look until it knows of an answer
			defer func() { answered = len(s.updates) }()
			return []string{asks(questionA, questionB), asks(questionA), done}[answered]
		}
		b, end := s.back(t, Options{})
		defer end()
		x := &backtest.Caller{Ask: func(ctx context.Context, qs []mcp.InputRequest) ([]mcp.InputResponse, error) {
			time.Sleep(map[string]time.Duration{spec.MethodElicit: 600 * time.Millisecond, spec.MethodRootsList: 70 * time.Millisecond}[qs[0].Method])
			return answers(willing)(ctx, qs)
		}}
		if body, err := upBody(b.Serve(t.Context(), askedCall(`{"name":"x"}`), x)); err != nil || body != doneIs {
			t.Fatalf("Serve = %s, %v, want the outcome of the task", body, err)
		}
		if want := []string{`{"b":{"roots":[]}}`, `{"\u0061":{"action":"accept","content":{"n":1.0}}}`}; !slices.Equal(s.updates, want) {
			t.Errorf("the server got %q, want %q", s.updates, want)
		}
		if n := len(x.Asked()); n != 2 {
			t.Errorf("the client was asked %d times, want twice", n)
		}
	})
}

// A question that the server takes back is withdrawn, and a client that does not answer fails the
// call; while it is asked, its time stands still.
func TestT24QuestionsWithoutAnswer(t *testing.T) {
	var withdrawn time.Time
	never := &backtest.Caller{Ask: func(ctx context.Context, _ []mcp.InputRequest) ([]mcp.InputResponse, error) {
		<-ctx.Done()
		withdrawn = time.Now()
		return nil, context.Cause(ctx)
	}}
	brief := Options{Options: upstream.Options{Settings: settings.Server{Timeouts: settings.Timeouts{Request: time.Second, Max: 2 * time.Second}}}}
	synctest.Test(t, func(t *testing.T) {
		s := &taskServer{looks: sequence(asks(questionA), asks(questionA), stillWorking, stillWorking, done)}
		b, end := s.back(t, Options{})
		defer end()
		if body, err := upBody(b.Serve(t.Context(), askedCall(`{"name":"x"}`), never)); err != nil || body != doneIs || len(s.updates) != 0 {
			t.Errorf("Serve = %s, %v with the answers %q, want the outcome, and no answer", body, err, s.updates)
		}
		if at := withdrawn.Sub(s.begun); at != s.at[2] {
			t.Errorf("the question was withdrawn after %v, want %v, by the third look", at, s.at[2])
		}
	})
	synctest.Test(t, func(t *testing.T) {
		s := &taskServer{looks: sequence(asks(questionA))}
		b, end := s.back(t, brief)
		defer end()
		start := time.Now()
		_, err := b.Serve(t.Context(), askedCall(`{"name":"x"}`), never)
		if took := time.Since(start).Round(time.Second); took != roundTimeout || !strings.Contains(wireErr(t, err).Message, "did not answer in time") || s.canceled != 1 {
			t.Errorf("Serve = %v after %v and %d cancellations, want a failure after %v, and one", err, took, s.canceled, roundTimeout)
		}
	})
}

// A server that stays away fails the call, which may have taken effect.
func TestT24ServerThatStaysAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &taskServer{looks: sequence(stillWorking, "")}
		b, end := s.back(t, Options{Options: upstream.Options{Settings: settings.Server{Timeouts: settings.Timeouts{Request: 30 * time.Second, Max: time.Hour}}}})
		defer end()
		start := time.Now()
		_, err := b.Serve(t.Context(), upRequest("tools/call", `{"name":"x"}`), &backtest.Caller{})
		if took := time.Since(start).Round(time.Second); took < 29*time.Second || took > 35*time.Second || !strings.Contains(wireErr(t, err).Message, "taken effect") && !strings.Contains(wireErr(t, err).Message, "did not answer") {
			t.Errorf("Serve = %v after %v, want a failure after 30s", err, took)
		}
	})
}

// A look that the server does not answer keeps no answer of the client from it.
func TestT24LooksThatHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &taskServer{}
		b, end := bubbleBack(t, Options{}, func(w http.ResponseWriter, r *http.Request, m wire.Message) {
			s.mu.Lock()
			hangs := m.Method == spec.MethodTaskGet && s.n > 0 && len(s.updates) == 0
			s.mu.Unlock()
			if hangs {
				<-r.Context().Done()
				return
			}
			s.serve(w, r, m)
		})
		defer end()
		s.looks = sequence(asks(questionA), done)
		x := &backtest.Caller{Ask: func(ctx context.Context, qs []mcp.InputRequest) ([]mcp.InputResponse, error) {
			time.Sleep(time.Minute)
			return answers(willing)(ctx, qs)
		}}
		if body, err := upBody(b.Serve(t.Context(), askedCall(`{"name":"x"}`), x)); err != nil || body != doneIs || len(s.updates) != 1 {
			t.Errorf("Serve = %s, %v with the answers %q, want the outcome, and one answer", body, err, s.updates)
		}
	})
}

// A question beyond what the client declared fails the call, and the task is cancelled.
func TestT24QuestionsThatTheClientCantAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &taskServer{looks: sequence(asks(questionA))}
		b, end := s.back(t, Options{})
		defer end()
		x := &backtest.Caller{}
		_, err := b.Serve(t.Context(), upRequest("tools/call", `{"name":"x"}`), x)
		if e := wireErr(t, err); e.Code != spec.CodeMissingCapability || !strings.Contains(e.Message, "elicitation") || s.canceled != 1 || len(x.Asked()) != 0 {
			t.Errorf("Serve = %v after %d cancellations, want -32021 that names elicitation, and one", err, s.canceled)
		}
	})
}
