package tasks

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/legacytest"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	"github.com/mcpbridge/mcpbridge/legacy/link"
)

// A linkedCall is a Call whose requests go to a TaskServer.
type linkedCall struct {
	*link.Link
	asked    func() bool // whether its client is being asked; nil for never
	restarts int
	progress []string
}

func (c *linkedCall) BeingAsked() bool { return c.asked != nil && c.asked() }
func (c *linkedCall) Restart()         { c.restarts++ }

func (c *linkedCall) Progress(value []byte, message string) {
	c.progress = append(c.progress, string(value)+" "+message)
}

// newCall returns a call at ts, which is played until the test ends.
func newCall(t *testing.T, ts *legacytest.TaskServer) *linkedCall {
	return &linkedCall{Link: newLink(t, ts, nobody{})}
}

// newLink returns a session at ts, which is played until the test ends.
func newLink(t *testing.T, ts *legacytest.TaskServer, sink link.Sink) *link.Link {
	near, far := transport.NewPipe()
	a := legacytest.NewServer(t, far)
	ts.Play(a)
	var running sync.WaitGroup
	running.Go(a.Serve)
	l := link.New(options(), sink)
	l.OverConn(t.Context(), near)
	t.Cleanup(func() {
		l.Close(context.Background())
		running.Wait()
	})
	return l
}

// options are those of the server.
func options() *upstream.Options {
	o := &upstream.Options{Name: "scripted"}
	o.Fill(spec.Legacy)
	return o
}

// nobody needs nothing that a server sends.
type nobody struct{}

func (nobody) Receive(context.Context, *wire.Message, *upstream.Call) {}
func (nobody) ListenChanged(bool, bool)                               {}

// newTable returns what has the tasks of a server, until the test ends.
func newTable(t *testing.T) *upstream.Tasks {
	table, err := options().Tasks()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(table.Close)
	return table
}

// begin calls the tool as a task.
func (c *linkedCall) begin(t *testing.T) *Run {
	t.Helper()
	created, err := c.Request(t.Context(), spec.MethodToolsCall, Params([]byte(`{"name":"t"}`), time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	return NewRun(newTable(t), "scripted", slog.New(slog.DiscardHandler), c, created)
}

func TestM2L07TasksThatFail(t *testing.T) {
	for _, tt := range []struct{ name, stage, result, want string }{
		{"failed, with a result", `"status":"failed"`, `{"isError":true,"content":[{"type":"text","text":"no luck"}]}`, "no luck"},
		{"failed, with an error", `"status":"failed","statusMessage":"rate limit"`, `{"code":-32005,"message":"rate limit hit"}`, "rate limit hit (code -32005)"},
		{"failed, with an empty result", `"status":"failed","statusMessage":"no disk"`, `{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t1"}}}`, "no disk (code -32603)"},
		{"cancelled", `"status":"cancelled","statusMessage":"an operator did"`, ``, `server "scripted" cancelled the task that ran the tool: an operator did`},
		{"forgotten", `{"code":-32602,"message":"Task has expired"}`, ``, "Task has expired; it may have taken effect"},
	} {
		bridgetest.RunBubble(t, "M2L-07 "+tt.name, func(t *testing.T) {
			ts := &legacytest.TaskServer{Stages: []string{tt.stage}, Result: tt.result}
			got, err := newCall(t, ts).begin(t).Await(t.Context())
			if !strings.Contains(fmt.Sprint(string(got), err), tt.want) {
				t.Errorf("Await = %s, %v, want %q", got, err, tt.want)
			}
		})
	}
}

// A task is over with its server, or its caller, and is cancelled unless it had ended.
func TestM2L07TasksThatAreGivenUp(t *testing.T) {
	for _, tt := range []struct {
		name   string
		giveUp func(ts *legacytest.TaskServer, leave context.CancelFunc)
		lost   bool
	}{
		{"its caller left", func(_ *legacytest.TaskServer, leave context.CancelFunc) { leave() }, false},
		{"its server is gone", func(ts *legacytest.TaskServer, _ context.CancelFunc) { ts.CloseConn() }, true},
	} {
		bridgetest.RunBubble(t, "M2L-07 "+tt.name, func(t *testing.T) {
			ts := &legacytest.TaskServer{Stages: []string{`"status":"working"`}}
			task := newCall(t, ts).begin(t)
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			time.AfterFunc(90*time.Second, func() { tt.giveUp(ts, leave) })
			_, err := task.Await(ctx)
			if f := upstream.AsFailure(err); err == nil || (f != nil && f.Lost) != tt.lost {
				t.Errorf("Await = %v, want an error, and that the session is lost: %v", err, tt.lost)
			}
			if got := string(task.CancelParams()); got != `{"taskId":"t1"}` {
				t.Errorf("CancelParams = %s", got)
			}
			task.task.state.status = "completed"
			if got := task.CancelParams(); got != nil {
				t.Errorf("CancelParams of a task that is over = %s", got)
			}
		})
	}
}

// While its client is being asked nothing is asked of the server, and the client hears nothing.
func TestM2L07TasksWhoseClientIsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ts := &legacytest.TaskServer{Stages: []string{`"status":"working","statusMessage":"m"`, `"status":"completed"`}, Result: `{"content":[]}`}
		c := newCall(t, ts)
		begin := time.Now()
		c.asked = func() bool { return time.Since(begin) < time.Minute }
		got, err := c.begin(t).Await(t.Context())
		if err != nil || string(got) != `{"content":[]}` || time.Since(begin) < time.Minute {
			t.Errorf("Await = %s, %v after %v, want the result once nobody is asked any more", got, err, time.Since(begin))
		}
		if n := ts.Count(MethodGet); n != 2 || c.restarts != 2 || fmt.Sprint(c.progress) != "[0.001 m 0.002 ]" {
			t.Errorf("%d looks, %d restarts of the time limit and the progress %q, want 2 of each", n, c.restarts, c.progress)
		}
	})
}

// A client that waits for long hears of it, though the task's state is the same.
func TestM2L07ProgressOfAQuietTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ts := &legacytest.TaskServer{Result: `{"content":[],"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t1"},"k":1}}`}
		for range 24 {
			ts.Stages = append(ts.Stages, `"status":"working","statusMessage":"m"`)
		}
		ts.Stages = append(ts.Stages, `"status":"completed","statusMessage":"m"`)
		c := newCall(t, ts)
		got, err := c.begin(t).Await(t.Context())
		if err != nil || string(got) != `{"content":[],"_meta":{"k":1}}` {
			t.Errorf("Await = %s, %v, want the result without the task", got, err)
		}
		if want := "[0.001 m 0.002 m 0.003 m 0.004 m]"; fmt.Sprint(c.progress) != want {
			t.Errorf("progress = %v, want %s: each 10s, and at the end", c.progress, want)
		}
		if c.restarts != 25 {
			t.Errorf("the time limit was restarted %d times, want with each of 25 looks", c.restarts)
		}
	})
}

func TestM2L07ServerThatCreatedNoTask(t *testing.T) {
	for _, text := range []string{`{"content":[]}`, `{"task":{}}`, `{"task":{"taskId":1}}`} {
		if id, ok := IDOf([]byte(text)); ok {
			t.Errorf("IDOf(%s) = %q", text, id)
		}
	}
}

func TestTableKeepsTheLatestOfAnID(t *testing.T) {
	var table Table[*string]
	one, two := new("ada"), new("bob")
	table.Add("t", one)
	table.Add("t", two)
	table.Remove("t", one) // its id is another's by now
	if got := table.Find("t"); got != two {
		t.Errorf("Find = %v, want bob's", got)
	}
	table.Remove("t", two)
	if table.Find("t") != nil {
		t.Error("Find of what was removed = a task")
	}
}
