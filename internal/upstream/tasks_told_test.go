package upstream

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/status"
)

// A breakable is a job that can be cancelled, unless err says why not.
type breakable struct {
	job
	cancelled int
	err       error
}

// Cancel is as those of tasks that clients hold.
func (b *breakable) Cancel(context.Context) (TaskState, error) {
	b.cancelled++
	return TaskState{}, b.err
}

// A gauge counts tasks that are not over.
type gauge struct {
	mcp.NoMetrics
	n int
}

// Held implements [mcp.Metrics].
func (g *gauge) Held(_ string, what mcp.Held, delta int) {
	if what == mcp.HeldTasks {
		g.n += delta
	}
}

// What is told of tasks is whose they are, how old, looked at when and what they wait for, without their
// ids, as long as they are not over. Each can be cancelled by its key.
func TestT14TasksAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, g := newTasksRig(t, nil), new(gauge)
		r.opts.Metrics = g
		begin := time.Now()
		asks := TaskState{Status: TaskInputRequired, Pause: time.Second,
			Text: []byte(`{"inputRequests":{"a":{"method":"elicitation/create"},"b":{"method":"elicitation/create"},"c":{"method":"roots/list"}}}`)}
		first, second := &breakable{job: job{state: working(time.Second)}}, &breakable{job: job{state: asks}, err: errors.New("it is away")}
		hold := func(who, tool string, j TaskSource, s TaskState, life time.Duration) *Task {
			req := r.request(who)
			req.Params = []byte(`{"name":"` + tool + `"}`)
			task := r.Take(req)
			if task == nil || !task.Hold(j, s, life) {
				t.Fatal("the task is not held")
			}
			return task
		}
		one := hold("ada", "dig", first, first.state, time.Hour)
		time.Sleep(time.Minute)
		two := hold("bob", "fill", second, asks, 2*time.Hour)
		hold("bob", "done", &job{}, completed(`{}`), time.Hour)
		if _, err := one.Get(t.Context()); err != nil {
			t.Fatal(err)
		}
		told := r.TellTasks()
		if r.Live() != 2 || g.n != 2 || len(told.List) != 2 || told.Left != 0 {
			t.Fatalf("%d live, %d counted, told %+v, want two", r.Live(), g.n, told)
		}
		want := status.Task{Key: told.List[0].Key, Principal: "ada", Tool: "dig", Status: TaskWorking, Made: begin, Until: begin.Add(time.Hour), Looked: begin.Add(time.Minute)}
		if got := told.List[0]; got.Key == "" || strings.Contains(one.ID, got.Key) || !same(got, want) {
			t.Errorf("the first is %+v, want %+v, without its id", got, want)
		}
		if got := told.List[1]; got.Principal != "bob" || !got.Looked.IsZero() || strings.Join(got.Asks, " ") != "elicitation/create roots/list" {
			t.Errorf("the second is %+v, want bob's, what it asks, and that nobody has looked", got)
		}
		if task, err := r.CancelTask(t.Context(), told.List[0].Key); err != nil || first.cancelled != 1 || second.cancelled != 0 || task.Principal != "ada" {
			t.Errorf("CancelTask = %+v, %v, and %d of the first", task, err, first.cancelled)
		}
		if _, err := r.CancelTask(t.Context(), told.List[1].Key); err == nil || !strings.Contains(err.Error(), "it is away") {
			t.Errorf("CancelTask of a server that is away = %v", err)
		}
		first.set(completed(`{}`))
		if _, err := one.Get(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, key := range []string{told.List[0].Key, one.ID, two.ID, ""} {
			if _, err := r.CancelTask(t.Context(), key); err == nil || !strings.Contains(err.Error(), "no such task any more") || first.cancelled != 1 {
				t.Errorf("CancelTask(%s) = %v after %d", key, err, first.cancelled)
			}
		}
		if r.Live() != 1 || g.n != 1 || len(r.TellTasks().List) != 1 {
			t.Errorf("%d live, %d counted, after the end of one", r.Live(), g.n)
		}
		time.Sleep(3 * time.Hour)
		synctest.Wait()
		if r.Live() != 0 || g.n != 0 || len(r.TellTasks().List) != 0 {
			t.Errorf("%d live, %d counted, at the end of their time", r.Live(), g.n)
		}
		for range status.MaxTasks + 3 {
			hold("eve", "many", &job{}, working(time.Second), time.Hour)
		}
		if told := r.TellTasks(); len(told.List) != status.MaxTasks || told.Left != 3 {
			t.Errorf("%d are listed, and %d left out", len(told.List), told.Left)
		}
		r.Close()
		if g.n != 0 {
			t.Errorf("%d are counted after Close", g.n)
		}
	})
}

func same(a, b status.Task) bool {
	return a.Key == b.Key && a.Principal == b.Principal && a.Tool == b.Tool && a.Status == b.Status && a.Made.Equal(b.Made) && a.Until.Equal(b.Until) && a.Looked.Equal(b.Looked) && a.Followers == b.Followers
}
