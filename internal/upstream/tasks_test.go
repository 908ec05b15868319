package upstream

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/budget"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/backtest"
	"github.com/mcpbridge/mcpbridge/internal/limits"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/requeststate"
	"github.com/mcpbridge/mcpbridge/internal/wake"
)

// A job is a server with a task whose state is what the test says.
type job struct {
	mu      sync.Mutex
	state   TaskState
	err     error
	took    time.Duration // of a look
	looks   int
	within  int32 // looks at the same time
	left    int
	expired bool
	leaving *atomic.Int32 // of all: how many are being left; nil if that takes no time
}

func (j *job) set(s TaskState) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.state = s
}

// Look implements [TaskSource].
func (j *job) Look(ctx context.Context) (TaskState, error) {
	if atomic.AddInt32(&j.within, 1) > 1 {
		panic("looks overlap")
	}
	defer atomic.AddInt32(&j.within, -1)
	if err := wake.Wait(ctx, j.took); err != nil {
		return TaskState{}, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.looks++; j.err != nil {
		return TaskState{}, j.err
	}
	return j.state, nil
}

// Leave implements [TaskSource].
func (j *job) Leave(expired bool) {
	if j.leaving != nil && expired {
		j.leaving.Add(1)
		time.Sleep(10 * time.Second)
		j.leaving.Add(-1)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.left++
	j.expired = expired
}

func (j *job) counts() (looks, left int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.looks, j.left
}

func working(pause time.Duration) TaskState {
	return TaskState{Status: TaskWorking, Text: []byte(`{"status":"working"}`), Pause: pause}
}

func completed(result string) TaskState {
	return TaskState{Status: TaskCompleted, Text: []byte(`{"status":"completed"}`), Result: []byte(result), Pause: time.Second}
}

type tasksRig struct {
	*Tasks
	metrics *backtest.Metrics
	memory  *budget.Budget
}

// Account and Refuse implement [mcp.Memory].
func (r *tasksRig) Account(s mcp.Share) *budget.Account { return r.memory.Account(s) }
func (r *tasksRig) Refuse() error                       { return errors.New("no memory") }

func newTasksRig(t *testing.T, of limits.Set) *tasksRig {
	sealer, err := requeststate.NewSealerOf("AAAAAAAA")
	if err != nil {
		t.Fatal(err)
	}
	r := &tasksRig{metrics: &backtest.Metrics{}, memory: budget.New(1 << 30)}
	r.Tasks = NewTasks(TasksOptions{Server: "files", Sealer: sealer, Limits: of, Patience: time.Minute, Logger: slog.New(slog.DiscardHandler), Metrics: r.metrics})
	t.Cleanup(r.Close)
	return r
}

func (r *tasksRig) request(who string) *mcp.Request {
	return &mcp.Request{Principal: mcp.Principal(who), Share: mcp.Share{Principal: mcp.Principal(who)}, Memory: r}
}

// hold holds a task of a principal.
func (r *tasksRig) hold(t *testing.T, who string, j *job, life time.Duration) *Task {
	t.Helper()
	task := r.Take(r.request(who))
	if task == nil || !task.Hold(j, j.state, life) {
		t.Fatal("the task is not held")
	}
	return task
}

func TestT11IDsHaveAnOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTasksRig(t, nil)
		task := r.hold(t, "ada", &job{state: working(time.Second)}, time.Hour)
		if got, err := r.Find("ada", task.ID); got != task || err != nil {
			t.Errorf("Find = %v, %v", got, err)
		}
		other, _ := requeststate.NewSealerOf("BBBBBBBB")
		texts := make(map[string]bool)
		for _, tt := range []struct{ who, id, want string }{
			{"bob", task.ID, "Task not found"},
			{"ada", task.ID[:len(task.ID)-1], "Task not found"},
			{"ada", r.opts.Sealer.NewHandle(), "Task not found"},
			{"ada", "", "Task not found"},
			{"ada", other.NewHandle(), "the gateway was restarted"},
		} {
			_, err := r.Find(mcp.Principal(tt.who), tt.id)
			if e := mcp.WireError(err); e == nil || e.Code != -32602 || !strings.HasPrefix(e.Message, tt.want) {
				t.Errorf("Find(%s, %s) = %v, want %q", tt.who, tt.id, err, tt.want)
			} else {
				texts[e.Message] = true
			}
		}
		if len(texts) != 2 {
			t.Errorf("there are the texts %v, want one, and one of a restart", texts)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if _, err := r.Find("ada", task.ID); err == nil {
			t.Error("a task is known whose time is up")
		}
	})
}

// Those who ask at once get one look, which goes on without the first of them.
func TestT12LooksAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTasksRig(t, nil)
		j := &job{state: working(time.Second), took: time.Second}
		task := r.hold(t, "ada", j, time.Hour)
		first, leave := context.WithCancel(t.Context())
		var asking sync.WaitGroup
		for i := range 10 {
			asking.Go(func() {
				ctx := t.Context()
				if i == 0 {
					ctx = first
				}
				if s, err := task.Get(ctx); i > 0 && (err != nil || s.Status != TaskWorking) {
					t.Errorf("Get = %v, %v", s, err)
				}
			})
		}
		time.Sleep(500 * time.Millisecond)
		leave()
		asking.Wait()
		if looks, _ := j.counts(); looks != 1 {
			t.Errorf("%d looks, want 1 for all", looks)
		}
		j.err = errors.New("away")
		if _, err := task.Get(t.Context()); err == nil {
			t.Error("Get of a server that is away = no error")
		}
		j.err = nil
		j.set(completed(`{"content":[]}`))
		for range 3 {
			if s, err := task.Get(t.Context()); err != nil || string(s.Result) != `{"content":[]}` {
				t.Errorf("Get = %v, %v", s, err)
			}
		}
		if looks, left := j.counts(); looks != 3 || left != 1 {
			t.Errorf("%d looks and left %d times, want 3, since the outcome is kept, and once", looks, left)
		}
	})
}

// What tasks came to is kept within a number of bytes; beyond that it is fetched again.
func TestT14ResultsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTasksRig(t, limits.Set{"task_results": 2000})
		big := `{"a":"` + strings.Repeat("x", 1000) + `"}`
		var jobs []*job
		var all []*Task
		for range 3 {
			j := &job{state: working(time.Second)}
			all, jobs = append(all, r.hold(t, "ada", j, time.Hour)), append(jobs, j)
			j.set(completed(big))
		}
		for _, task := range all {
			for range 3 {
				if s, err := task.Get(t.Context()); err != nil || string(s.Result) != big {
					t.Errorf("Get = %.30s, %v", s.Result, err)
				}
			}
		}
		for i, want := range []string{"1 1", "3 0", "3 0"} {
			looks, left := jobs[i].counts()
			if got := fmt.Sprint(looks, left); got != want {
				t.Errorf("task %d: looks and times left = %s, want %s", i, got, want)
			}
		}
		told := 0
		if err := all[1].Follow(t.Context(), true, func(s TaskState, _ bool) error {
			if told++; string(s.Result) != big {
				t.Errorf("told %.30s, want the result", s.Result)
			}
			return nil
		}); err != nil || told != 1 {
			t.Errorf("Follow = %v, told %d times", err, told)
		}
		if n := r.metrics.Count("limit task_results"); n == 0 {
			t.Error("the limit was not counted")
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if r.bytes != 0 || r.Len() != 0 || r.places.Len() != 0 {
			t.Errorf("%d bytes, %d tasks and %d places are left", r.bytes, r.Len(), r.places.Len())
		}
		if _, left := jobs[2].counts(); left != 1 {
			t.Errorf("the server of a task whose result was not kept was left %d times", left)
		}
	})
}

func TestT14TasksAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTasksRig(t, limits.Set{"tasks": 3, "tasks_each": 2})
		var got []string
		var last *Task
		for _, who := range []string{"ada", "ada", "ada", "bob", "eve"} {
			if last = r.Take(r.request(who)); last != nil {
				got = append(got, who)
				last.Hold(&job{}, working(time.Second), time.Minute)
			}
		}
		if fmt.Sprint(got) != "[ada ada bob]" {
			t.Errorf("held are those of %v", got)
		}
		if each, all := r.metrics.Count("limit tasks_each"), r.metrics.Count("limit tasks"); each != 1 || all != 1 {
			t.Errorf("the limits were counted %d and %d times", each, all)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		for range 2 {
			task := r.Take(r.request("ada"))
			if task == nil {
				t.Fatal("there is no place after the end of all tasks")
			}
			task.Drop()
		}
		if used := r.memory.Used(); used > 3*64<<10 {
			t.Errorf("%d bytes of memory are lent after the end of all tasks", used)
		}
	})
}

// At the end of its time a live task is let go, whoever follows it.
func TestT14EndOfLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTasksRig(t, nil)
		j := &job{state: working(time.Second)}
		task := r.hold(t, "ada", j, time.Minute)
		begin := time.Now()
		if err := task.Follow(t.Context(), false, func(TaskState, bool) error { return nil }); err != nil || time.Since(begin) != time.Minute {
			t.Errorf("Follow = %v after %v, want its end with the task's time", err, time.Since(begin))
		}
		if looks, left := j.counts(); looks != 59 && looks != 60 || left != 1 || !j.expired {
			t.Errorf("%d looks, left %d times, expired %v", looks, left, j.expired)
		}
	})
}

// Each task ends at its own time, in whatever order they were made.
func TestT14EndsInAnyOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTasksRig(t, nil)
		lives := []int{7, 3, 9, 1, 3, 5, 2, 8}
		jobs := make([]*job, len(lives))
		var abandoned *Task
		for i, life := range lives {
			jobs[i] = &job{state: working(time.Second)}
			if task := r.hold(t, "ada", jobs[i], time.Duration(life)*time.Minute); life == 5 {
				abandoned = task
			}
		}
		abandoned.Abandon()
		for now := range 10 {
			synctest.Wait()
			live := 0
			for i, life := range lives {
				wants := life > now && life != 5
				if wants {
					live++
				}
				if _, left := jobs[i].counts(); (left == 0) != wants {
					t.Errorf("after %d min, the task of %d min was left %d times", now, life, left)
				}
			}
			if r.Len() != live {
				t.Errorf("after %d min %d tasks are held, want %d", now, r.Len(), live)
			}
			time.Sleep(time.Minute)
		}
	})
}

// Of many tasks whose time is up at once, the servers of some are told at a time. Close waits for
// those, and lets the others go.
func TestT14ManyEndAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTasksRig(t, nil)
		var leaving atomic.Int32
		jobs := make([]*job, 100)
		for i := range jobs {
			jobs[i] = &job{state: working(time.Second), leaving: &leaving}
			r.hold(t, "ada", jobs[i], time.Minute)
		}
		time.Sleep(time.Minute + time.Second)
		if n := leaving.Load(); n != partings || r.Len() != 0 {
			t.Errorf("%d are being left, and %d are known, want %d and none", n, r.Len(), partings)
		}
		time.Sleep(10 * time.Second)
		begin := time.Now()
		r.Close()
		expired := 0
		for i, j := range jobs {
			if _, left := j.counts(); left != 1 {
				t.Errorf("task %d was left %d times", i, left)
			}
			if j.expired {
				expired++
			}
		}
		if expired != 2*partings || r.places.Len() != 0 || time.Since(begin) > 10*time.Second {
			t.Errorf("%d were told, %d places are taken, after %v of Close", expired, r.places.Len(), time.Since(begin))
		}
	})
}

// However many follow a task, it is looked at once in an interval, and not at all without them.
func TestT18OnePoller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTasksRig(t, nil)
		j := &job{state: working(10 * time.Second)}
		task := r.hold(t, "ada", j, time.Hour)
		var told, changes atomic.Int32
		follow := func(ctx context.Context) error {
			return task.Follow(ctx, true, func(_ TaskState, changed bool) error {
				if told.Add(1); changed {
					changes.Add(1)
				}
				return nil
			})
		}
		ctx, leave := context.WithCancel(t.Context())
		var following sync.WaitGroup
		for range 100 {
			following.Go(func() { _ = follow(ctx) })
		}
		time.Sleep(time.Second)
		if looks, _ := j.counts(); looks > 2 || changes.Load() != 100 {
			t.Errorf("at once: %d looks, and %d were told a state", looks, changes.Load())
		}
		before, _ := j.counts()
		time.Sleep(100 * time.Second)
		if looks, _ := j.counts(); looks-before != 10 || changes.Load() != 100 {
			t.Errorf("in 100s: %d looks, and %d were told a change", looks-before, changes.Load())
		}
		j.set(TaskState{Status: TaskInputRequired, Text: []byte(`{}`), Pause: 10 * time.Second})
		task.Refresh()
		synctest.Wait()
		if changes.Load() != 200 {
			t.Errorf("%d were told after a notice, want each again", changes.Load())
		}
		leave()
		following.Wait()
		before, _ = j.counts()
		time.Sleep(10 * time.Minute)
		if looks, _ := j.counts(); looks != before {
			t.Errorf("%d looks while nobody follows", looks-before)
		}
		j.set(completed(`{}`))
		if err := follow(t.Context()); err != nil {
			t.Errorf("Follow to the end = %v", err)
		}
		synctest.Wait() // until it has been left
		if looks, left := j.counts(); looks != before+1 || left != 1 {
			t.Errorf("%d looks, left %d times: want one, at once", looks-before, left)
		}
	})
}

// A server that is away is asked at growing intervals, and is told of once it is back.
func TestT18AwayServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTasksRig(t, nil)
		j := &job{state: working(time.Second), err: errors.New("away")}
		task := r.hold(t, "ada", j, time.Hour)
		ctx, leave := context.WithTimeout(t.Context(), time.Minute)
		defer leave()
		_ = task.Follow(ctx, true, func(TaskState, bool) error {
			t.Error("told of a server that is away")
			return nil
		})
		if looks, _ := j.counts(); looks < 4 || looks > 8 {
			t.Errorf("%d looks in a minute, want them ever more seldom", looks)
		}
	})
}

// Close ends what goes on, and leaves nothing.
func TestT14CloseLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTasksRig(t, nil)
		j := &job{state: working(time.Second), took: time.Hour}
		task := r.hold(t, "ada", j, time.Hour)
		var asking sync.WaitGroup
		asking.Go(func() { _, _ = task.Get(t.Context()) })
		asking.Go(func() { _ = task.Follow(t.Context(), true, func(TaskState, bool) error { return nil }) })
		synctest.Wait()
		r.Close()
		asking.Wait()
		if _, left := j.counts(); left != 1 || r.places.Len() != 0 {
			t.Errorf("left %d times, %d places are taken", left, r.places.Len())
		}
		if task := r.Take(r.request("ada")); task != nil {
			t.Error("a task is taken after Close")
		}
	})
}

// What is over from the beginning is kept, if there is room, and its server is never asked.
func TestT23WhatIsOverAtOnceIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTasksRig(t, limits.Set{"task_results": 2000})
		big := completed(`{"a":"` + strings.Repeat("x", 1500) + `"}`)
		j := &job{}
		first, second := r.Take(r.request("ada")), r.Take(r.request("ada"))
		if !first.Hold(j, big, time.Hour) || second.Hold(j, big, time.Hour) {
			t.Fatal("want the first one held, and not the second, for which there is no room")
		}
		second.Drop()
		if _, err := r.Find("ada", second.ID); err == nil {
			t.Error("what was not kept is known")
		}
		found, err := r.Find("ada", first.ID)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if s, err := found.Get(t.Context()); err != nil || string(s.Result) != string(big.Result) {
				t.Errorf("Get = %.30s, %v", s.Result, err)
			}
		}
		told := 0
		if err := found.Follow(t.Context(), true, func(TaskState, bool) error { told++; return nil }); err != nil || told != 1 {
			t.Errorf("Follow = %v, told %d times", err, told)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if looks, left := j.counts(); looks != 0 || left != 0 || r.bytes != 0 || r.places.Len() != 0 {
			t.Errorf("%d looks, left %d times, %d bytes and %d places at the end", looks, left, r.bytes, r.places.Len())
		}
	})
}
