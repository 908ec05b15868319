package upstream

import (
	"container/heap"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/limits"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/requeststate"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/wake"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// taskSize is the memory of a task that is held, without what it came to, in bytes.
const taskSize = 2 << 10

// partings is of how many tasks whose time is up the servers are told at once.
const partings = 32

// TasksOptions configure Tasks. All are required.
type TasksOptions struct {
	Server string
	// Sealer makes the ids.
	Sealer *requeststate.Sealer
	// Limits are those of tasks: how many, and how many bytes of results.
	Limits limits.Set
	// Patience bounds one look.
	Patience time.Duration
	Logger   *slog.Logger
	Metrics  mcp.Metrics
}

// Tasks are the tasks of one server of which clients of the other era wait for the end, or hold the
// ids. They are bounded, and so is what is kept of those that are over; an id is known until the
// task's time is up, to its principal alone. Tasks are safe for concurrent use.
type Tasks struct {
	// Set by NewTasks, read-only after.
	opts   TasksOptions
	warned map[*limits.Limit]*transport.WarnLimiter
	live   context.Context // ends with Close
	cancel context.CancelFunc

	// mu guards the fields below. It is a leaf, held for map work only.
	mu      sync.Mutex
	byID    map[string]*Task
	ends    taskEnds    // those in byID
	ending  *time.Timer // rings at the first of the ends; nil before the first task
	places  mcp.Places
	alive   int   // of those in ends that are not over
	bytes   int64 // of results that are kept
	closed  bool
	running sync.WaitGroup // looks, pollers and ends
}

// NewTasks returns Tasks without any. The caller must call Close.
func NewTasks(o TasksOptions) *Tasks {
	t := &Tasks{opts: o, byID: make(map[string]*Task), places: mcp.PlacesOf(o.Limits, limits.Tasks, limits.TasksEach)}
	t.warned = map[*limits.Limit]*transport.WarnLimiter{limits.Tasks: {}, limits.TasksEach: {}, limits.TaskResults: {}}
	t.live, t.cancel = context.WithCancel(context.Background())
	return t
}

// Close forgets all tasks, lets their servers go, and waits for what they have started.
func (t *Tasks) Close() {
	t.mu.Lock()
	t.closed = true
	held := t.byID
	t.byID, t.ends = nil, nil
	if t.ending != nil {
		t.ending.Stop()
	}
	t.mu.Unlock()
	t.cancel()
	for _, task := range held {
		task.leave(false)
		task.forget()
	}
	t.running.Wait()
}

// Len returns how many tasks are held.
func (t *Tasks) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.byID)
}

// Run returns a task of whose id no client knows: it is for who follows it.
func (t *Tasks) Run(source TaskSource, first TaskState) *Task {
	return &Task{table: t, source: source, last: first, changes: 1}
}

// Take takes a place for a task that the server may make of a request, and returns the task, to be
// held or dropped. It is nil if a limit prevents it, which is counted and logged: the client's
// request should be served as if it could hold none.
func (t *Tasks) Take(req *mcp.Request) *Task {
	tool, _ := wire.GetString(req.Params, "name")
	task := &Task{ID: t.opts.Sealer.NewHandle(), tool: tool, table: t, owner: req.Principal, share: req.Share,
		memory: mcp.NewReservation(req.Memory, req.Share)}
	t.mu.Lock()
	limit, most := t.places.Full(req.Share)
	if limit == nil && !t.closed {
		t.places.Take(req.Share)
	}
	closed := t.closed
	t.mu.Unlock()
	switch {
	case closed:
		return nil
	case limit != nil:
		t.full(limit, most)
		return nil
	case task.memory.Grow(taskSize/2) != nil: // of which a Reservation takes twice as much; Grow has told
		t.give(req.Share, 0)
		return nil
	}
	return task
}

// full counts and logs a limit.
func (t *Tasks) full(limit *limits.Limit, most int) {
	t.opts.Metrics.Limit(t.opts.Server, limit.Key)
	t.warned[limit].Warn(t.opts.Logger, "too many tasks are held", "limit", most, "key", limit.Key)
}

// Drop gives back the place of a task that was not made.
func (t *Task) Drop() { t.forget() }

// Hold lists a task that its server has made, until its time is up. What a task came to that is over
// already is kept: its server is never asked, nor left. Hold returns false if that is too late, since
// the Tasks are closed, or if there is no room for what is to be kept; then the task is to be dropped.
func (t *Task) Hold(source TaskSource, first TaskState, life time.Duration) bool {
	t.source, t.last, t.changes = source, first, 1
	if !t.keepFirst() {
		return false
	}
	t.made = time.Now()
	t.end, t.counted = t.made.Add(life), !first.IsOver()
	if t.counted {
		t.table.opts.Metrics.Held(t.table.opts.Server, mcp.HeldTasks, 1)
	}
	return t.table.list(t)
}

// list lists a task. It returns false after Close; then the task is to be forgotten.
func (t *Tasks) list(task *Task) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if task.counted {
		t.alive++
	}
	if t.closed {
		return false
	}
	t.byID[task.ID] = task
	heap.Push(&t.ends, task)
	if task.place == 0 {
		t.ringLocked()
	}
	return true
}

// ringLocked sets the timer for the first of the ends. One timer serves all tasks: each of their own
// would be in memory for long after it is stopped, with the calls beside them.
func (t *Tasks) ringLocked() {
	switch {
	case len(t.ends) == 0:
	case t.ending == nil:
		t.ending = time.AfterFunc(wake.Positive(time.Until(t.ends[0].end)), t.expire)
	default:
		t.ending.Reset(wake.Positive(time.Until(t.ends[0].end)))
	}
}

// keepFirst keeps what a task came to that is over from the beginning.
func (t *Task) keepFirst() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.last.IsOver() {
		t.isKept = t.keepLocked()
		t.left = t.isKept
	}
	return !t.last.IsOver() || t.isKept
}

// Abandon ends the task's time now: its client was not told of it.
func (t *Task) Abandon() {
	h := t.table
	h.mu.Lock()
	known := h.byID[t.ID] == t
	if known {
		h.removeLocked(t)
	}
	h.mu.Unlock()
	if known {
		h.conclude(t)
	}
}

// expire forgets the tasks whose time is up. It runs on the timer's goroutine.
func (t *Tasks) expire() {
	var over []*Task
	t.mu.Lock()
	for now := time.Now(); len(t.ends) > 0 && !t.ends[0].end.After(now); {
		over = append(over, t.ends[0])
		t.removeLocked(t.ends[0])
	}
	t.ringLocked()
	t.mu.Unlock()
	t.conclude(over...)
}

func (t *Tasks) removeLocked(task *Task) {
	heap.Remove(&t.ends, task.place)
	delete(t.byID, task.ID)
}

// conclude lets the servers of tasks go that are not listed any more. Close waits for those alone of
// which it has begun.
func (t *Tasks) conclude(over ...*Task) {
	rest := make(chan *Task, len(over))
	for _, task := range over {
		rest <- task
	}
	close(rest)
	for range min(len(over), partings) {
		t.start(func() {
			for task := range rest {
				task.leave(t.live.Err() == nil)
				task.forget()
			}
		})
	}
}

// Find returns the task of an id, if it is a principal's own. The error is the same for all others,
// but for those of another instance.
func (t *Tasks) Find(owner mcp.Principal, id string) (*Task, error) {
	t.mu.Lock()
	task := t.byID[id]
	t.mu.Unlock()
	if task != nil && task.owner == owner {
		return task, nil
	}
	return nil, t.Unknown(t.opts.Sealer.CheckHandle(id))
}

// Unknown returns the error for an id that names no task of the principal: one text, but for those
// of another instance, of which why is [requeststate.ErrOtherInstance].
func (t *Tasks) Unknown(why error) error {
	if errors.Is(why, requeststate.ErrOtherInstance) {
		return wire.Errorf(spec.CodeInvalidParams, "the gateway was restarted, and does not know the task any more; it may have taken effect at server %q", t.opts.Server)
	}
	return wire.Errorf(spec.CodeInvalidParams, "Task not found")
}

// keep reserves n bytes for the result of a task.
func (t *Tasks) keep(n int) bool {
	most := t.opts.Limits.Of(limits.TaskResults)
	t.mu.Lock()
	fits := t.bytes+int64(n) <= most
	if fits {
		t.bytes += int64(n)
	}
	t.mu.Unlock()
	if !fits {
		t.opts.Metrics.Limit(t.opts.Server, limits.TaskResults.Key)
		t.warned[limits.TaskResults].Warn(t.opts.Logger, "the result of a task is not kept, and is fetched again for each who asks for it", "bytes", n, "limit", most, "key", limits.TaskResults.Key)
	}
	return fits
}

// give gives back the place of a task, and the bytes of its result.
func (t *Tasks) give(share mcp.Share, kept int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.places.Give(share)
	t.bytes -= int64(kept)
}

// enter has Close wait until running.Done is called; false after Close.
func (t *Tasks) enter() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.closed {
		t.running.Add(1)
	}
	return !t.closed
}

// start runs f on a goroutine that Close waits for; false after Close.
func (t *Tasks) start(f func()) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.closed {
		t.running.Go(f)
	}
	return !t.closed
}

// Start runs f, which is bounded by ctx, on a goroutine that Close waits for; false after Close.
func (t *Tasks) Start(f func(ctx context.Context)) bool {
	return t.start(func() { f(t.live) })
}

// taskEnds are tasks, the one whose time is up first in front. They implement [heap.Interface].
type taskEnds []*Task

func (e taskEnds) Len() int           { return len(e) }
func (e taskEnds) Less(i, j int) bool { return e[i].end.Before(e[j].end) }

func (e taskEnds) Swap(i, j int) {
	e[i], e[j] = e[j], e[i]
	e[i].place, e[j].place = i, j
}

// Push implements [heap.Interface].
func (e *taskEnds) Push(task any) {
	t, _ := task.(*Task) // nothing else comes
	t.place = len(*e)
	*e = append(*e, t)
}

// Pop implements [heap.Interface].
func (e *taskEnds) Pop() any {
	last := len(*e) - 1
	t := (*e)[last]
	(*e)[last] = nil
	*e = (*e)[:last]
	return t
}
