package transport

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// ErrDraining is returned by a Launcher that starts no more processes.
var ErrDraining = errors.New("mcpbridge is shutting down and starts no more processes")

// A Launcher starts the processes of one server's command, as few as possible at a time:
// it keeps a process without an owner for the next caller that needs one, and starts no
// process while another is still ending; but see [Launcher.DialBeside]. Its methods are safe
// for concurrent use.
type Launcher struct {
	// Set by NewLauncher, read-only after.
	start func() (Conn, error)
	ask   func(context.Context, *Process) error // may be nil

	first atomic.Value // string
	proof atomic.Value // string
	due   atomic.Bool  // call ask for the next process
	locks atomic.Bool  // see SetLocks

	running sync.WaitGroup // goroutines that watch the kept process, or close processes

	// mu guards the fields below, and the fields of processes that say so. It is not held
	// while a process is started or closed.
	mu      sync.Mutex
	kept    *Process // nil if there is none
	alive   int      // processes that are running or starting, without those being closed
	ending  int      // processes that are being closed
	adopted int      // those of ending that had sessions
	ended   int      // number of closed processes
	changed chan struct{}
	lost    func(error) // called when a kept process ends; may be nil

	prestarting bool
	draining    bool // start no more processes
	closed      bool // and keep none

	processes map[*Process]struct{} // those of alive that have started
}

// NewLauncher returns a Launcher. start starts one process and returns the connection to
// it, usually a [*Command]. ask, which may be nil, detects the era of a process; see
// [Launcher.AskNext]. If ask returns an error, it has taken over the process.
func NewLauncher(start func() (Conn, error), ask func(context.Context, *Process) error) *Launcher {
	return &Launcher{start: start, ask: ask, changed: make(chan struct{}), processes: make(map[*Process]struct{})}
}

// AskNext makes Dial call ask for the next process that it starts, before it returns the
// process.
func (l *Launcher) AskNext() { l.due.Store(true) }

// First returns the method of the first request that a process accepts. After another
// first request the process ends or is unusable. First is empty if no such method is
// known.
func (l *Launcher) First() string {
	first, _ := l.first.Load().(string)
	return first
}

// SetFirst sets the result of First.
func (l *Launcher) SetFirst(method string) { l.first.Store(method) }

// SetProof records why the kept process, which has refused initialize, proves that the
// server is modern; empty if it does not.
func (l *Launcher) SetProof(why string) { l.proof.Store(why) }

// TakeProof returns what SetProof has recorded since the last call.
func (l *Launcher) TakeProof() string {
	why, _ := l.proof.Swap("").(string)
	return why
}

// SetLocks records whether a process fails beside another one.
func (l *Launcher) SetLocks(locks bool) { l.locks.Store(locks) }

// Locks returns what SetLocks has recorded.
func (l *Launcher) Locks() bool { return l.locks.Load() }

// Dial returns a process that the caller owns: the kept one, or a new one after all
// ending processes have ended. The caller must close it or pass it to Keep. ctx bounds
// the wait.
func (l *Launcher) Dial(ctx context.Context) (*Process, error) { return l.dial(ctx, false) }

// DialBeside is Dial for one of several clients: it does not wait for processes that had
// sessions, unless the command locks. The caller has waited for those of its own client.
func (l *Launcher) DialBeside(ctx context.Context) (*Process, error) { return l.dial(ctx, true) }

func (l *Launcher) dial(ctx context.Context, beside bool) (*Process, error) {
	for {
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		p, free, err := l.take(beside && !l.Locks())
		switch {
		case p != nil || err != nil:
			return p, err
		case free == nil:
			return l.launchAsked(ctx)
		}
		select {
		case <-free:
		case <-ctx.Done():
		}
	}
}

// take returns one of: the kept process; an error; a channel that is closed when an
// ending process may have ended; nothing, and the caller must start a process. beside says
// that processes which had sessions may be ending.
func (l *Launcher) take(beside bool) (*Process, <-chan struct{}, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	ending := l.ending
	if beside {
		ending -= l.adopted
	}
	switch p := l.kept; {
	case p != nil && !p.hasEnded():
		l.kept = nil
		close(p.taken)
		return p, nil, nil
	case l.draining:
		return nil, nil, ErrDraining
	case ending > 0 || l.prestarting:
		return nil, l.changed, nil
	}
	l.alive++ // see launch
	return nil, nil, nil
}

// launchAsked starts a process, and calls ask if AskNext was called.
func (l *Launcher) launchAsked(ctx context.Context) (*Process, error) {
	p, err := l.launch()
	if err != nil || l.ask == nil || !l.due.Swap(false) || l.First() == spec.MethodInitialize {
		return p, err
	}
	if err := l.ask(ctx, p); err != nil {
		return nil, err
	}
	return p, nil
}

// launch starts a process. The caller has counted it as alive.
func (l *Launcher) launch() (*Process, error) {
	conn, err := l.start()
	if err != nil {
		l.mu.Lock()
		l.alive--
		l.mu.Unlock()
		return nil, err
	}
	p := &Process{l: l, conn: conn, started: time.Now()}
	l.mu.Lock()
	l.processes[p] = struct{}{}
	p.endedBefore, p.startedAmong = l.ended, l.ending
	draining := l.draining
	l.mu.Unlock()
	if draining {
		_ = p.Close() // the launcher was closed meanwhile
		return nil, ErrDraining
	}
	return p, nil
}

// Keep keeps a process for the next call of Dial. It keeps one process, and closes
// others. After Close it closes every process.
func (l *Launcher) Keep(p *Process) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || l.kept != nil {
		l.running.Go(func() { _ = p.Close() }) // bounded by the time to end a command
		return
	}
	l.kept, p.taken = p, make(chan struct{})
	taken := p.taken
	l.running.Go(func() { l.watch(p, taken) }) // ends when p is taken or has ended, or at Close
}

// Take takes p back after Keep, and reports whether it was still kept.
func (l *Launcher) Take(p *Process) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.kept != p || p.hasEnded() {
		return false
	}
	l.kept = nil
	close(p.taken)
	return true
}

// watch waits until a kept process ends or is taken.
func (l *Launcher) watch(p *Process, taken <-chan struct{}) {
	select {
	case <-p.Done():
	case <-taken:
		return
	}
	l.mu.Lock()
	mine, lost := l.kept == p, l.lost
	if mine {
		l.kept = nil
	}
	l.mu.Unlock()
	if !mine {
		return
	}
	err := errors.New("it ended before it was used")
	if how := Exited(p.Err()); how != nil {
		err = how
	}
	_ = p.Close() // it has ended
	if lost != nil {
		lost(err)
	}
}

// Prestart starts a process for the first call of Dial, unless there is one. It calls
// lost when a kept process ends.
func (l *Launcher) Prestart(lost func(error)) error {
	l.mu.Lock()
	l.lost = lost
	if l.alive+l.ending > 0 || l.draining {
		l.mu.Unlock()
		return nil
	}
	l.alive++
	l.prestarting = true // Dial waits for it
	l.mu.Unlock()
	p, err := l.launch()
	if err == nil {
		l.Keep(p)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.prestarting = false
	l.announceLocked()
	return err
}

// HasRefused reports whether the kept process has refused initialize.
func (l *Launcher) HasRefused() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.kept != nil && l.kept.refused.Load()
}

// HasKept reports whether there is a kept process, so that Dial need not start one.
func (l *Launcher) HasKept() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.kept != nil
}

// Alive returns the number of processes that are not being closed, including the kept
// one.
func (l *Launcher) Alive() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.alive
}

// Processes returns the processes that are not being closed, in no particular order.
func (l *Launcher) Processes() []*Process {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Keys(l.processes))
}

// Drain prevents further starts. The kept process may still be used.
func (l *Launcher) Drain() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.draining = true
}

// Close prevents further starts, closes the kept process, and waits for its end. The
// owners of other processes close those.
func (l *Launcher) Close() {
	l.mu.Lock()
	l.draining, l.closed = true, true
	if p := l.kept; p != nil {
		l.kept = nil
		close(p.taken)
		l.running.Go(func() { _ = p.Close() }) // bounded by the time to end a command
	}
	l.mu.Unlock()
	l.running.Wait()
}

// announceLocked wakes the goroutines that wait for the end of a process.
func (l *Launcher) announceLocked() {
	close(l.changed)
	l.changed = make(chan struct{})
}
