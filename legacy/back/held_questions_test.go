package back

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/budget"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/backtest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/legacytest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/settings"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// question is the params of an elicitation that belongs to the task.
func question(text string) string {
	return fmt.Sprintf(`{"message":%q,"elicitationId":"x",%s}`, text, legacytest.RelatedTask)
}

// While the server wants input, tasks/result is open once; its questions stand in the map until they
// are answered, in part and in any order, and the answers go up with the task.
func TestT13Questions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var answers sync.Map // by question
		ts := &legacytest.TaskServer{Stages: []string{`"status":"input_required"`}, Result: said("done")}
		ts.Begin = func() {
			var asking sync.WaitGroup
			for _, text := range []string{"one", "two"} {
				asking.Go(func() {
					m := ts.Server.Ask("elicitation/create", question(text))
					answers.Store(text, string(m.Result))
				})
			}
			asking.Wait()
		}
		r := newHolder(t, ts, settings.Server{})
		id := r.create()
		got := r.get(id)
		wants(t, got, `"status":"input_required"`, `{"method":"elicitation/create","params":{"message":"one"}}`, `{"method":"elicitation/create","params":{"message":"two"}}`)
		asked := wire.Get([]byte(got), "inputRequests")
		keys := make(map[string]string)
		for k, q := range wire.Members(asked) {
			text, _ := wire.GetString(wire.Get(q, "params"), "message")
			keys[text] = k.String()
		}
		if len(keys) != 2 {
			t.Fatalf("inputRequests = %s, want two", asked)
		}
		update := func(key, response string) {
			t.Helper()
			if got := r.serve("tasks/update", `{"taskId":"`+id+`","inputResponses":{"`+key+`":`+response+`}}`); got != `{"resultType":"complete"}` {
				t.Errorf("tasks/update = %s", got)
			}
			synctest.Wait()
		}
		update("q99", `{"action":"accept"}`)
		update(keys["two"], `{"action":"maybe"}`)
		update(keys["two"], `{"action":"accept","content":{"n":2}}`)
		update(keys["two"], `{"action":"decline"}`)
		if a, _ := answers.Load("two"); !strings.Contains(fmt.Sprint(a), `"content":{"n":2}`) || !strings.Contains(fmt.Sprint(a), `"io.modelcontextprotocol/related-task":{"taskId":"t1"}`) {
			t.Errorf("the server heard %v, want the answer with its task", a)
		}
		got = r.get(id)
		wants(t, got, `"status":"input_required"`, `"message":"one"`)
		if strings.Contains(got, `"message":"two"`) {
			t.Errorf("tasks/get = %s, want the question that is open", got)
		}
		update(keys["one"], `{"action":"cancel"}`)
		wants(t, r.get(id), `"status":"completed"`, "done")
		if n := ts.Count("tasks/result"); n != 1 {
			t.Errorf("tasks/result was called %d times, want once", n)
		}
	})
}

// A question under the id of one that is open is refused, saying why; the first one is asked.
func TestT13QuestionsWithOneID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ts := &legacytest.TaskServer{Stages: []string{`"status":"input_required"`}, Result: said("done")}
		refused := make(chan string, 1)
		ts.Begin = func() {
			ts.Server.SendRequest("elicitation/create", question("one"))
			ts.Server.ReuseIDs()
			_, second := ts.Server.SendRequest("elicitation/create", question("two"))
			refused <- fmt.Sprint((<-second).Error)
			time.Sleep(time.Minute)
		}
		r := newHolder(t, ts, settings.Server{})
		got := r.get(r.create())
		wants(t, got, `"message":"one"`)
		if strings.Contains(got, `"message":"two"`) {
			t.Errorf("tasks/get = %s, want the first question alone", got)
		}
		wants(t, <-refused, "the same id")
	})
}

// Over HTTP a question belongs to the task on whose stream it comes, though it names none; the answer
// goes up with the task.
func TestT13QuestionsThatNameNoTask(t *testing.T) {
	p := legacytest.NewHTTPServer(t)
	p.Capabilities = `{"tools":{},"tasks":{"requests":{"tools":{"call":{}}}}}`
	answered := make(chan string, 1)
	p.On["tools/list"] = func(w http.ResponseWriter, _ *http.Request, m wire.Message) {
		legacytest.AnswerJSON(w, m.ID, `{"tools":[{"name":"t","execution":{"taskSupport":"required"}}]}`)
	}
	p.On["tools/call"] = func(w http.ResponseWriter, _ *http.Request, m wire.Message) {
		legacytest.AnswerJSON(w, m.ID, `{"task":{"taskId":"t1","status":"working"}}`)
	}
	p.On["tasks/get"] = func(w http.ResponseWriter, _ *http.Request, m wire.Message) {
		legacytest.AnswerJSON(w, m.ID, `{"taskId":"t1","status":"input_required"}`)
	}
	p.On["tasks/result"] = func(w http.ResponseWriter, r *http.Request, m wire.Message) {
		send := legacytest.StartSSE(w)
		answer, _ := p.Ask(r.Context(), send, "elicitation/create", `{"message":"who?"}`)
		answered <- string(answer.Result)
		send(`{"jsonrpc":"2.0","id":%s,"result":{"content":[]}}`, m.ID)
	}
	r := &holderRig{newTestBack(t, Options{Options: upstream.Options{URL: p.URL}}), t, nil}
	id := r.create()
	wants(t, r.get(id), `"status":"input_required"`, "who?")
	r.serve("tasks/update", `{"taskId":"`+id+`","inputResponses":{"q1":`+accepted+`}}`)
	wants(t, <-answered, "Ada", `"io.modelcontextprotocol/related-task":{"taskId":"t1"}`)
}

// A question that the server takes back leaves the map, and its key is not used again.
func TestT13WithdrawnQuestions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ts := &legacytest.TaskServer{Stages: []string{`"status":"input_required"`}, Result: said("done")}
		ts.Begin = func() {
			id, _ := ts.SendRequest("elicitation/create", question("one"))
			time.Sleep(10 * time.Second)
			ts.Send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, id)
			time.Sleep(10 * time.Second)
			ts.Server.Ask("elicitation/create", question("two"))
		}
		r := newHolder(t, ts, settings.Server{})
		id := r.create()
		wants(t, r.get(id), `"q1":`, "one")
		time.Sleep(15 * time.Second)
		if got := r.get(id); strings.Contains(got, "inputRequests") || !strings.Contains(got, `"status":"working"`) {
			t.Errorf("tasks/get = %s, want no question", got)
		}
		time.Sleep(10 * time.Second)
		wants(t, r.get(id), `"inputRequests":{"q2":`, "two")
	})
}

// A question beyond what the client declared is refused; if the task fails, the client reads why.
func TestT13UndeclaredQuestions(t *testing.T) {
	for name, tt := range map[string]struct{ result, want string }{
		"and fails": {`{"isError":true,"content":[{"type":"text","text":"no model"}]}`, `"status":"failed"`},
		"an error":  {`{"code":-32000,"message":"no model"}`, `"status":"failed"`},
		"and works": {said("without"), `"status":"completed"`},
	} {
		bridgetest.RunBubble(t, "T-13 "+name, func(t *testing.T) {
			ts := &legacytest.TaskServer{Stages: []string{`"status":"input_required"`}, Result: tt.result}
			ts.Begin = func() {
				if m := ts.Server.Ask("sampling/createMessage", `{"messages":[],`+legacytest.RelatedTask+`}`); m.Error == nil {
					t.Errorf("the server was answered %s", m.Result)
				}
				ts.SetStages(`"status":"completed"`)
			}
			r := newHolder(t, ts, settings.Server{})
			id := r.create()
			got := r.get(id)
			wants(t, got, tt.want)
			if tt.want == `"status":"failed"` {
				wants(t, got, `"error":{"code":-32021`, `"requiredCapabilities":{"sampling":{}}`, "no model")
			}
		})
	}
}

// Questions of tasks wait within the client's part of memory; one that has no room is refused, and what
// the others had is given back.
func TestT13QuestionsWithoutMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const many = 200
		var refused, answered atomic.Int32
		ts := &legacytest.TaskServer{Stages: []string{`"status":"input_required"`}, Result: said("done")}
		ts.Begin = func() {
			var asking sync.WaitGroup
			for range many {
				asking.Go(func() {
					if m := ts.Server.Ask("elicitation/create", question(strings.Repeat("x", 4<<10))); m.Error != nil {
						refused.Add(1)
					} else {
						answered.Add(1)
					}
				})
			}
			asking.Wait()
		}
		r := newHolder(t, ts, settings.Server{Tasks: settings.Tasks{TTL: time.Minute}})
		memory := &scarce{budget.New(1 << 20)}
		req := holding("ada", "tools/call", `{"name":"t"}`)
		req.Memory, req.Share = memory, mcp.Share{Principal: "ada"}
		id, _ := wire.GetString([]byte(r.serveAs(req)), "taskId")
		wants(t, r.get(id), `"status":"input_required"`)
		synctest.Wait()
		if n := refused.Load(); n < many/4 || n == many {
			t.Errorf("%d of %d questions were refused, want what has no room", n, many)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if refused.Load()+answered.Load() != many || memory.Used() > 128<<10 {
			t.Errorf("%d are refused and %d answered at the end, %d bytes are lent", refused.Load(), answered.Load(), memory.Used())
		}
	})
}

// scarce is a small memory.
type scarce struct{ *budget.Budget }

// Account and Refuse implement [mcp.Memory].
func (m *scarce) Account(s mcp.Share) *budget.Account { return m.Budget.Account(s) }
func (*scarce) Refuse() error                         { return mcp.RefuseForNow("no memory") }

// A question that names its task is the task's before the answer that creates it has come, and while
// another call might be asked.
func TestT13QuestionsBeforeTheTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var answer atomic.Pointer[wire.Message]
		ts := &legacytest.TaskServer{Stages: []string{`"status":"input_required"`}, SlowCall: time.Second}
		var asked sync.WaitGroup
		ts.Begin = asked.Wait
		ts.Called = func() {
			asked.Go(func() {
				m := ts.Server.Ask("elicitation/create", question("early"))
				answer.Store(&m)
			})
		}
		ts.Result = said("done")
		r := newHolder(t, ts, settings.Server{})
		id := r.create()
		wants(t, r.get(id), `"status":"input_required"`, "early")
		r.serve("tasks/update", `{"taskId":"`+id+`","inputResponses":{"q1":`+accepted+`}}`)
		wants(t, r.get(id), `"status":"completed"`)
		if m := answer.Load(); m == nil || !strings.Contains(string(m.Result), "Ada") {
			t.Errorf("the server heard %v", m)
		}
	})
}

// As long as no session can be opened, the task is as it was.
func TestT16ServerThatStaysAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var running sync.WaitGroup
		t.Cleanup(running.Wait)
		away := false
		var last *legacytest.TaskServer
		b := newTestBack(t, Options{Eager: true, Dial: func(context.Context) (transport.Conn, error) {
			if away {
				return nil, errors.New("no route")
			}
			near, far := transport.NewPipe()
			last = &legacytest.TaskServer{Stages: []string{`"status":"working"`}}
			a := legacytest.NewServer(t, far)
			last.Play(a)
			running.Go(a.Serve)
			return near, nil
		}})
		r := &holderRig{b, t, nil}
		id := r.create()
		last.CloseConn()
		away = true
		synctest.Wait()
		wants(t, r.get(id), "-32603", "scripted", "no route")
		away = false
		time.Sleep(time.Minute)
		wants(t, r.get(id), `"status":"working"`)
	})
}

// Each task that is the client's own is acknowledged, told at once and at every change, and ends no
// stream; sooner if the server says that it has changed.
func TestT18Listen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ts := &legacytest.TaskServer{Stages: []string{`"status":"working"`}, Result: said("done")}
		ts.Interval = 10_000
		r := newHolder(t, ts, settings.Server{})
		id := r.create()
		x := &backtest.Client{Answer: backtest.NeverAnswers}
		ctx, leave := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			_, err := r.Serve(ctx, holding("ada", "subscriptions/listen", `{"notifications":{"taskIds":["`+id+`","x","`+id+`"]}}`), x)
			ended <- err
		}()
		synctest.Wait()
		heard := x.Heard()
		if len(heard) != 2 || heard[0] != `notifications/subscriptions/acknowledged {"notifications":{"taskIds":["`+id+`"]}}` {
			t.Fatalf("heard %q, want an acknowledgment and the state", heard)
		}
		wants(t, heard[1], `notifications/tasks {"taskId":"`+id+`","status":"working"`)
		time.Sleep(time.Minute)
		if n := ts.Count("tasks/get"); len(x.Heard()) != 2 || n < 6 || n > 8 {
			t.Errorf("heard %d messages, %d looks, in a minute without a change", len(x.Heard()), n)
		}
		ts.SetStages(`"status":"working","statusMessage":"half"`)
		ts.Send(`{"jsonrpc":"2.0","method":"notifications/tasks/status","params":{"taskId":"t1","status":"working"}}`)
		synctest.Wait()
		if heard = x.Heard(); len(heard) != 3 || !strings.Contains(heard[2], `"statusMessage":"half"`) {
			t.Errorf("heard %q after a notice", heard)
		}
		ts.SetStages(`"status":"completed"`)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if heard = x.Heard(); len(heard) != 4 || !strings.Contains(heard[3], `"status":"completed"`) || !strings.Contains(heard[3], `"result":{"resultType":"complete"`) {
			t.Errorf("heard %q at the end", heard)
		}
		time.Sleep(time.Minute)
		if len(ended) > 0 {
			t.Error("the stream has ended with the task")
		}
		leave()
		<-ended
	})
}

// A listener hears of a question at once, and of its end.
func TestT18ListenersHearQuestions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ts := &legacytest.TaskServer{Stages: []string{`"status":"input_required"`}, Result: said("done")}
		ts.Interval = 10_000
		ts.Begin = func() {
			time.Sleep(5 * time.Second)
			ts.Server.Ask("elicitation/create", question("one"))
		}
		r := newHolder(t, ts, settings.Server{})
		id := r.create()
		x := &backtest.Client{Answer: backtest.NeverAnswers}
		ctx, leave := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			_, err := r.Serve(ctx, holding("ada", "subscriptions/listen", `{"notifications":{"taskIds":["`+id+`"]}}`), x)
			ended <- err
		}()
		time.Sleep(6 * time.Second)
		if heard := x.Heard(); len(heard) != 3 || !strings.Contains(heard[2], `"inputRequests":{"q1":`) {
			t.Errorf("heard %q, want the question", heard)
		}
		r.serve("tasks/update", `{"taskId":"`+id+`","inputResponses":{"q1":`+accepted+`}}`)
		synctest.Wait()
		if heard := x.Heard(); len(heard) < 4 || !strings.Contains(heard[len(heard)-1], `"status":"completed"`) {
			t.Errorf("heard %q, want the end", heard)
		}
		leave()
		<-ended
	})
}

// Progress of a task is dropped, and counted; its message stands in for a status message.
func TestT19Progress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		metrics := &backtest.Metrics{}
		ts := &legacytest.TaskServer{Stages: []string{`"status":"working"`}}
		r := &holderRig{newTaskBack(t, ts, Options{Options: upstream.Options{Metrics: metrics}}), t, ts}
		req := holding("ada", "tools/call", `{"name":"t","_meta":{"progressToken":"mine"}}`)
		req.ProgressToken = json.RawMessage(`"mine"`)
		x := &backtest.Client{Answer: backtest.NeverAnswers}
		got, err := body(r.Serve(t.Context(), req, x))
		if err != nil {
			t.Fatal(err)
		}
		id, _ := wire.GetString([]byte(got), "taskId")
		token := wire.Get(wire.Get(ts.CallParams(), "_meta"), "progressToken")
		ts.Send(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":1,"message":"a third"}}`, token)
		ts.Send(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","data":"x"}}`)
		synctest.Wait()
		wants(t, r.get(id), `"statusMessage":"a third"`)
		if n := metrics.Count("progress"); n != 1 || len(x.Heard()) != 0 || metrics.Count("log message") != 1 {
			t.Errorf("%d progress and %d log messages were counted as dropped, %q heard", n, metrics.Count("log message"), x.Heard())
		}
		ts.SetStages(`"status":"working","statusMessage":"the server's"`)
		wants(t, r.get(id), `"statusMessage":"the server's"`)
	})
}

// The server asks before it makes the task: the rounds come first.
func TestT09QuestionsBeforeCreation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ts := &legacytest.TaskServer{Stages: []string{`"status":"working"`}}
		ts.Called = func() {
			if m := ts.Server.Ask("elicitation/create", `{"message":"first?"}`); !strings.Contains(string(m.Result), "Ada") {
				t.Errorf("the server heard %s %v", m.Result, m.Error)
			}
		}
		r := newHolder(t, ts, settings.Server{})
		x := &backtest.Client{Answer: func(_ context.Context, q mcp.InputRequest) (mcp.InputResponse, error) {
			return mcp.InputResponse{Result: []byte(accepted)}, nil
		}}
		got, err := body(r.Serve(t.Context(), holding("ada", "tools/call", `{"name":"t"}`), x))
		if err != nil || !strings.Contains(got, `"resultType":"task"`) || strings.Contains(got, "inputRequests") {
			t.Errorf("tools/call = %s, %v, want a task once the question is answered", got, err)
		}
	})
}
