package upstream

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"strconv"
	"sync"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/wake"
)

// The states of tasks, of which both eras have the same.
const (
	TaskWorking       = "working"
	TaskInputRequired = "input_required"
	TaskCompleted     = "completed"
	TaskFailed        = "failed"
	TaskCancelled     = "cancelled"
)

const (
	// MinTaskPause and MaxTaskPause bound the time between two looks at a task, whatever its
	// server asks for; TaskPause is the time if it names none.
	MinTaskPause = 50 * time.Millisecond
	MaxTaskPause = 15 * time.Second
	TaskPause    = time.Second
)

// PauseOf returns the time until the next look that a server asks for with a pollInterval in ms, JSON or
// nil, within the bounds.
func PauseOf(interval []byte) time.Duration {
	ms, err := strconv.ParseFloat(string(interval), 64)
	if err != nil {
		return TaskPause
	}
	ms = min(max(ms, 0), float64(MaxTaskPause/time.Millisecond))
	return max(time.Duration(ms)*time.Millisecond, MinTaskPause)
}

// A TaskState is what a look at a task has found, in the form for its client.
type TaskState struct {
	Status string
	Text   json.RawMessage // the task, an object, without what it came to
	Result json.RawMessage // what it came to, if it is completed
	Err    error           // what it came to, if it has failed
	Pause  time.Duration   // until the next look is worth while
}

// IsOver reports whether the task has ended.
func (s *TaskState) IsOver() bool { return TaskOver(s.Status) }

// TaskOver reports whether a status is final.
func TaskOver(status string) bool {
	return status == TaskCompleted || status == TaskFailed || status == TaskCancelled
}

// differs reports whether a client would see a difference between two states.
func (s *TaskState) differs(from *TaskState) bool {
	return s.Status != from.Status || !bytes.Equal(s.Text, from.Text)
}

func (s *TaskState) size() int { return len(s.Text) + len(s.Result) }

// A TaskSource is a task at its server.
type TaskSource interface {
	// Look asks the server for the state, unless that is known without. Calls of it do not overlap.
	// The error says why nothing is known at the moment; a later look may succeed, and the state has
	// the Pause until then, or zero.
	Look(ctx context.Context) (TaskState, error)
	// Leave is called once, when the server is not needed any more: what the task came to is kept,
	// or nobody may ask for it any longer. expired says that its time was up.
	Leave(expired bool)
}

// A Task is a task that its server runs for a client of the gateway. It is looked at while somebody
// asks or waits, and else costs nothing. It is safe for concurrent use.
type Task struct {
	ID   string // for the client; empty if it knows none
	tool string // of the call that made it; empty if that is not known

	// Set before the task is used, read-only after.
	table  *Tasks
	source TaskSource
	owner  mcp.Principal
	share  mcp.Share
	made   time.Time // or listed again
	end    time.Time // when its time is up; zero if it has none

	place int // in Tasks.ends, while it is listed; Tasks.mu guards it

	// mu guards the fields below. It is held for work in memory only; Tasks.mu may be taken under
	// it.
	mu        sync.Mutex
	last      TaskState // what the last look has found, without a Result that is not kept
	lookedAt  time.Time
	changes   int // how often last has changed, from 1
	looking   *look
	memory    mcp.Reservation
	kept      int  // bytes of results that are kept, of limits.task_results; 0 for none
	counted   bool // as one that is not over
	isKept    bool // what it came to is in last
	left      bool // Leave was called
	again     bool // another look is due after the one in progress
	followers map[*follower]struct{}
	stop      context.CancelFunc // ends the poller; nil if there is none
	due       wake.Signal        // a look of the poller is due; nil before the first follower
}

// A look is one that all share who ask meanwhile.
type look struct {
	done  chan struct{} // closed once state and err are set
	state TaskState
	err   error
}

// A follower gets what is found out of a task.
type follower struct {
	ready wake.Signal
	seen  int // the changes that it knows
}

// Get returns the state of the task: what is kept of one that is over, or what a look finds, which
// all share who ask meanwhile. If it can't be found out, the task is as it was. Who asks first looks
// on its own goroutine, and to the end, since others may wait for it.
func (t *Task) Get(ctx context.Context) (TaskState, error) {
	l, mine := t.begin()
	switch {
	case l == nil:
		return t.Last(), nil
	case mine:
		if t.run(l); ctx.Err() != nil {
			return TaskState{}, context.Cause(ctx)
		}
		return l.state, l.err
	}
	select {
	case <-l.done:
		return l.state, l.err
	case <-ctx.Done():
		return TaskState{}, context.Cause(ctx)
	}
}

// Source returns the task at its server.
func (t *Task) Source() TaskSource { return t.source }

// Last returns what the last look has found.
func (t *Task) Last() TaskState {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.last
}

// Refresh has the task looked at in the background: something was learned of it, which a look in
// progress may have missed.
func (t *Task) Refresh() {
	t.mu.Lock()
	if t.looking != nil {
		t.again = true
	}
	t.mu.Unlock()
	t.refresh()
}

// refresh has the task looked at on a goroutine, which ends with the look, unless it is being looked at.
func (t *Task) refresh() {
	if l, mine := t.begin(); mine {
		go t.run(l)
	}
}

// begin returns the look in progress, or a new one, which the caller must run then; nil if what the task
// came to is kept.
func (t *Task) begin() (l *look, mine bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.isKept || t.looking != nil {
		return t.looking, false
	}
	l = &look{done: make(chan struct{})}
	if !t.table.enter() {
		l.err = mcp.ErrShutdown
		close(l.done)
		return l, false
	}
	t.looking = l
	return l, true
}

// run looks at the task once, within a time limit.
func (t *Task) run(l *look) {
	defer t.table.running.Done()
	defer close(l.done)
	ctx, cancel := context.WithTimeoutCause(t.table.live, t.table.opts.Patience, ErrTooLong)
	defer cancel()
	l.state, l.err = t.source.Look(ctx)
	settled, again := t.note(l)
	if settled {
		t.leave(false)
	}
	if again {
		t.refresh()
	}
}

// note stores what a look has found, and wakes who follows the task. It reports whether the server
// is not needed any more, and whether another look is due.
func (t *Task) note(l *look) (settled, again bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	again, t.again = t.again && !t.left, false
	t.looking = nil
	if l.err != nil {
		return false, again
	}
	if t.lookedAt = time.Now(); t.changes == 0 || l.state.differs(&t.last) {
		t.changes++
	}
	if t.last = l.state; l.state.IsOver() {
		t.uncountLocked()
	}
	if l.state.IsOver() && !t.left {
		if t.isKept = t.keepLocked(); !t.isKept {
			t.last.Result = nil // it is fetched again for each who asks
		}
	}
	for f := range t.followers {
		f.ready.Send()
	}
	return t.isKept, again && !t.last.IsOver()
}

// keepLocked reserves the memory for what the task came to.
func (t *Task) keepLocked() bool {
	n := t.last.size()
	if t.ID == "" { // its call waits for it, and has the memory
		return true
	}
	if !t.memory.TryGrow(n) || !t.table.keep(n) {
		t.memory.Shrink(n)
		return false
	}
	t.kept = n
	return true
}

// leave lets the server go.
func (t *Task) leave(expired bool) {
	t.mu.Lock()
	left := t.left
	t.left = true
	t.mu.Unlock()
	if !left {
		t.source.Leave(expired)
	}
}

// forget gives back what the task has. No more may be found out of it.
func (t *Task) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.uncountLocked()
	t.table.give(t.share, t.kept)
	t.kept = 0
	t.memory.Release()
	for f := range t.followers {
		f.ready.Send()
	}
}

// uncountLocked counts the task out, which is over, or forgotten.
func (t *Task) uncountLocked() {
	if !t.counted {
		return
	}
	t.counted = false
	h := t.table
	h.mu.Lock()
	h.alive--
	h.mu.Unlock()
	h.opts.Metrics.Held(h.opts.Server, mcp.HeldTasks, -1)
}

// Follow calls told with what each look has found from now on, and whether that has changed, until
// the task is over, which told is told last, or its time is up. While anybody follows a task, it is
// looked at at the intervals that its server asks for: once for all. With atOnce the first look is
// now, and counts as a change. An error of told ends Follow, and is returned, as is ctx's cause, and
// [mcp.ErrShutdown] once the Tasks are closed.
func (t *Task) Follow(ctx context.Context, atOnce bool, told func(s TaskState, changed bool) error) error {
	f := t.join(atOnce)
	defer t.quit(f)
	for {
		select {
		case <-f.ready:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-t.table.live.Done():
		}
		s, changed, known := t.news(f)
		switch {
		case !s.IsOver() && t.table.live.Err() != nil:
			return mcp.ErrShutdown
		case !known:
			return nil
		}
		if err := told(s, changed); err != nil || s.IsOver() {
			return err
		}
	}
}

// news returns what a follower is told, and whether that has changed. known is false if the time of
// the task was up before it was over.
func (t *Task) news(f *follower) (s TaskState, changed, known bool) {
	t.mu.Lock()
	s, changed = t.last, t.changes != f.seen
	f.seen = t.changes
	known = s.IsOver() || !t.left
	fetch := s.IsOver() && !t.isKept && !t.left
	t.mu.Unlock()
	if fetch {
		if whole, err := t.Get(t.table.live); err == nil { // as one that asks
			s = whole
		}
	}
	return s, changed, known
}

// join adds a follower, and starts the poller for the first one.
func (t *Task) join(atOnce bool) *follower {
	f := &follower{ready: wake.NewSignal()}
	t.mu.Lock()
	defer t.mu.Unlock()
	if f.seen = t.changes; atOnce {
		f.seen = -1
	}
	if t.followers == nil {
		t.followers = make(map[*follower]struct{})
	}
	if t.due == nil {
		t.due = wake.NewSignal()
	}
	t.followers[f] = struct{}{}
	switch fresh := t.stop != nil && time.Since(t.lookedAt) < t.last.Pause; {
	case t.last.IsOver() || t.left, atOnce && fresh:
		f.ready.Send()
	case atOnce:
		t.due.Send()
	}
	if t.stop == nil && !t.last.IsOver() && !t.left {
		ctx, cancel := context.WithCancel(t.table.live)
		if t.table.start(func() { t.poll(ctx) }) { // ends with the last follower, and with the task
			t.stop = cancel
		} else {
			cancel()
		}
	}
	return f
}

// quit removes a follower, and stops the poller of the last one.
func (t *Task) quit(f *follower) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if delete(t.followers, f); len(t.followers) > 0 {
		return
	}
	t.followers = nil // a map keeps its size
	if t.stop != nil {
		t.stop()
		t.stop = nil
	}
}

// poll looks at the task while it is followed. After looks that failed the pauses double.
func (t *Task) poll(ctx context.Context) {
	t.mu.Lock()
	pause := t.last.Pause
	t.mu.Unlock()
	timer := time.NewTimer(wake.Positive(pause))
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-t.due:
		case <-ctx.Done():
			return
		}
		s, err := t.Get(ctx)
		switch {
		case ctx.Err() != nil, err == nil && s.IsOver():
			return
		case err != nil:
			pause = cmp.Or(s.Pause, min(2*pause, MaxTaskPause))
		default:
			pause = s.Pause
		}
		timer.Reset(wake.Positive(pause))
	}
}

// Notice says that the state may have changed: if anybody follows the task, it is looked at at once.
func (t *Task) Notice() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.due.Send()
}
