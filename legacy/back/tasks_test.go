package back

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/backtest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/legacytest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/settings"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wake"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// newTaskBack returns a Back whose server is ts.
func newTaskBack(t *testing.T, ts *legacytest.TaskServer, opts Options) *Back {
	return newAsker(t, opts, ts.Play)
}

func TestM2L07TasksAreAnsweredLikeCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ts := &legacytest.TaskServer{
			Stages: []string{`"status":"working","statusMessage":"one"`, `"status":"working","statusMessage":"one"`, `"status":"working","statusMessage":"two"`, `"status":"completed"`},
			Result: `{"content":[{"type":"text","text":"done"}],` + legacytest.RelatedTask + `}`,
		}
		b := newTaskBack(t, ts, Options{Options: upstream.Options{Settings: settings.Server{Timeouts: settings.Timeouts{Request: 2 * time.Second, Max: time.Hour}}}})
		req := ask("tools/call", `{"name":"t","task":{"ttl":1},"_meta":{"progressToken":"mine"}}`)
		req.ProgressToken = json.RawMessage(`"mine"`)
		x := &backtest.Client{Answer: backtest.NeverAnswers}
		begin := time.Now()
		got, err := body(b.Serve(t.Context(), req, x))
		if err != nil || got != said("done") {
			t.Errorf("Serve = %s, %v, want the result without the task", got, err)
		}
		if took := time.Since(begin); took != 4*time.Second {
			t.Errorf("it took %v, want 4 looks at the server's pollInterval, though a request has 2s", took)
		}
		if ttl := string(wire.Get(wire.Get(ts.CallParams(), "task"), "ttl")); ttl != "3600000" {
			t.Errorf("ttl = %s, want the call's hard maximum in ms", ttl)
		}
		notes := x.Heard()
		if len(notes) != 3 {
			t.Fatalf("progress = %q, want one for each change", notes)
		}
		last := ""
		for _, n := range notes {
			value := string(wire.Get([]byte(strings.TrimPrefix(n, "notifications/progress ")), "progress"))
			if value <= last || !strings.Contains(n, `"progressToken":"mine"`) {
				t.Errorf("progress %s after %q, want it to grow, under the client's token", n, last)
			}
			last = value
		}
		if !strings.Contains(notes[0], `"message":"one"`) || !strings.Contains(notes[1], `"message":"two"`) {
			t.Errorf("progress = %q, want the server's messages", notes)
		}
		if n := ts.Count("tools/call"); n != 1 {
			t.Errorf("the tool was called %d times", n)
		}
	})
}

// The server's own progress is told under the token of the call, as long as the
// task runs, and is not hidden by what the gateway makes up.
func TestM2L07ProgressOfTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ts := &legacytest.TaskServer{Stages: []string{`"status":"working","statusMessage":"a"`, `"status":"completed"`}, Result: said("done")}
		ts.Begin = func() {
			token := wire.Get(wire.Get(ts.CallParams(), "_meta"), "progressToken")
			ts.Send(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":0.5,"total":1}}`, token)
		}
		b := newTaskBack(t, ts, Options{})
		req := ask("tools/call", `{"name":"t"}`)
		req.ProgressToken = json.RawMessage(`7`)
		x := &backtest.Client{Answer: backtest.NeverAnswers}
		if _, err := body(b.Serve(t.Context(), req, x)); err != nil {
			t.Fatal(err)
		}
		if all := strings.Join(x.Heard(), "\n"); !strings.Contains(all, `"progress":0.5,"total":1`) {
			t.Errorf("heard %s, want the server's progress", all)
		}
	})
}

func TestM2L07QuestionsOfATask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var answer atomic.Pointer[wire.Message]
		ts := &legacytest.TaskServer{Stages: []string{`"status":"input_required"`, `"status":"working"`}, Result: said("done")}
		ts.Begin = func() {
			m := ts.Server.Ask("elicitation/create", `{"message":"which?",`+legacytest.RelatedTask+`}`)
			answer.Store(&m)
			time.Sleep(5 * time.Second)
		}
		b := newTaskBack(t, ts, Options{Options: upstream.Options{Settings: settings.Server{Timeouts: settings.Timeouts{Request: 10 * time.Second}}}})
		req := askable("ada")
		var question string
		x := &backtest.Client{Answer: func(ctx context.Context, q mcp.InputRequest) (mcp.InputResponse, error) {
			question = string(q.Params)
			return mcp.InputResponse{Result: []byte(accepted)}, wake.Wait(ctx, time.Hour)
		}}
		var other sync.WaitGroup
		other.Go(func() {
			time.Sleep(10 * time.Second)
			r := askable("other")
			r.Params = json.RawMessage(`{"name":"plain"}`)
			begin := time.Now()
			if _, err := body(b.Serve(t.Context(), r, &backtest.Client{Answer: backtest.NeverAnswers})); err != nil || time.Since(begin) > 0 {
				t.Errorf("another call took %v, %v: a task needs no lane", time.Since(begin), err)
			}
		})
		if got, err := body(b.Serve(t.Context(), req, x)); err != nil || got != said("done") {
			t.Errorf("Serve = %s, %v", got, err)
		}
		other.Wait()
		if question != `{"message":"which?"}` {
			t.Errorf("the client was asked %s, want no task in it", question)
		}
		if m := answer.Load(); !strings.Contains(string(m.Result), `"taskId":"t1"`) || !strings.Contains(string(m.Result), "Ada") {
			t.Errorf("the server heard %s, want the answer with the task's id", m.Result)
		}
		if n := ts.Count("tasks/result"); n != 1 {
			t.Errorf("tasks/result was called %d times, want once", n)
		}
	})
}

func TestM2L07TasksAreCancelled(t *testing.T) {
	for _, tt := range []struct {
		name  string
		after time.Duration // when the client leaves
		times settings.Timeouts
	}{
		{"by the client", 5 * time.Second, settings.Timeouts{}},
		{"at the hard maximum", time.Hour, settings.Timeouts{Request: time.Minute, Max: 2 * time.Minute}},
	} {
		bridgetest.RunBubble(t, "M2L-07 "+tt.name, func(t *testing.T) {
			ts := &legacytest.TaskServer{Stages: []string{`"status":"working"`}}
			b := newTaskBack(t, ts, Options{Options: upstream.Options{Settings: settings.Server{Timeouts: tt.times}}})
			ctx, cancel := context.WithTimeout(t.Context(), tt.after)
			defer cancel()
			if _, err := body(b.Serve(ctx, ask("tools/call", `{"name":"t"}`), &backtest.Client{Answer: backtest.NeverAnswers})); err == nil {
				t.Error("the call was answered")
			}
			if got := <-ts.Cancelled; got != `{"taskId":"t1"}` {
				t.Errorf("tasks/cancel %s", got)
			}
		})
	}
}

// The list of tools is read when a call needs it, or taken from what passes by,
// and anew once it has changed.
func TestM2L07WhichToolsNeedATask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ts := &legacytest.TaskServer{Stages: []string{`"status":"completed"`}, Result: said("done")}
		b := newTaskBack(t, ts, Options{})
		serve := func(method, params string) string {
			got, err := body(b.Serve(t.Context(), ask(method, params), &backtest.Client{Answer: backtest.NeverAnswers}))
			if err != nil {
				t.Error(err)
			}
			return got
		}
		for range 3 {
			serve("tools/call", `{"name":"t"}`)
			serve("tools/call", `{"name":"unknown"}`)
		}
		for _, name := range []string{"plain", "either"} {
			if got := serve("tools/call", `{"name":"`+name+`"}`); !strings.Contains(got, "requires") {
				t.Errorf("%s was run as a task", name)
			}
		}
		if ts.Pages() != 2 {
			t.Errorf("%d pages were read, want the 2 pages once", ts.Pages())
		}
		ts.Send(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
		synctest.Wait()
		serve("tools/list", `{"cursor":"2"}`)
		if got := serve("tools/call", `{"name":"t"}`); got != said("done") || ts.Pages() != 3 {
			t.Errorf("after a list that passed by: %s with %d pages read, want 3", got, ts.Pages())
		}
	})
}
