package transport

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// ErrDraining is why a Launcher starts nothing any more.
var ErrDraining = errors.New("mcpbridge is shutting down and starts no more processes")

// A Launcher starts the processes of one server's command, as few at a time as will
// do: a process that nobody owns yet is kept for whoever needs one next, and no process
// is started while another is still ending. Its methods are safe for concurrent use.
type Launcher struct {
	// Set by NewLauncher, read-only after.
	start func() (Conn, error)
	ask   func(context.Context, *Process) error // may be nil

	first atomic.Value // string
	due   atomic.Bool  // the next process that is started is to be asked

	running sync.WaitGroup // watchers of kept processes, and processes being closed

	// mu guards the fields below, and those of processes that say so. It is held for
	// list work only: never over a start or an end.
	mu      sync.Mutex
	kept    *Process // nil if there is none
	alive   int      // processes that were started, or are being, and that nobody closes yet
	ending  int      // processes that are being closed
	ended   int      // how many processes have been closed
	changed chan struct{}
	lost    func(error) // told of a kept process that ended; may be nil

	prestarting bool
	draining    bool // nothing is started any more
	closed      bool // and nothing is kept
}

// NewLauncher returns a Launcher. start starts one process and returns the connection
// to it, a [*Command] as a rule. ask, which may be nil, asks a process what it is, for
// [Launcher.AskNext]; if it returns an error the process is not its caller's any more.
func NewLauncher(start func() (Conn, error), ask func(context.Context, *Process) error) *Launcher {
	return &Launcher{start: start, ask: ask, changed: make(chan struct{})}
}

// AskNext says that the next process that Dial starts is to be asked what it is before
// it is given away.
func (l *Launcher) AskNext() { l.due.Store(true) }

// First returns the method that a process must be asked first, since it ends, or is of no
// use, after another; empty if none is known to be.
func (l *Launcher) First() string {
	first, _ := l.first.Load().(string)
	return first
}

// SetFirst says what First returns from now on.
func (l *Launcher) SetFirst(method string) { l.first.Store(method) }

// Dial returns a process for the caller alone: the one that was kept, else a new one
// once none is ending any more. The caller closes it, or gives it to Keep. ctx bounds
// the wait.
func (l *Launcher) Dial(ctx context.Context) (*Process, error) {
	for {
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		p, free, err := l.take()
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

// take returns one of: the kept process; why there will be none; a channel that is
// closed when a process that is ending may have ended; nothing.
func (l *Launcher) take() (*Process, <-chan struct{}, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch p := l.kept; {
	case p != nil && !p.hasEnded():
		l.kept = nil
		close(p.taken)
		return p, nil, nil
	case l.draining:
		return nil, nil, ErrDraining
	case l.ending > 0 || l.prestarting:
		return nil, l.changed, nil
	}
	l.alive++ // see launch
	return nil, nil, nil
}

// launchAsked starts a process and has it asked if that is due.
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

// launch starts a process, which the caller has counted as alive.
func (l *Launcher) launch() (*Process, error) {
	conn, err := l.start()
	if err != nil {
		l.mu.Lock()
		l.alive--
		l.mu.Unlock()
		return nil, err
	}
	p := &Process{l: l, conn: conn}
	l.mu.Lock()
	p.endedBefore, p.startedAmong = l.ended, l.ending
	draining := l.draining
	l.mu.Unlock()
	if draining {
		_ = p.Close() // it was not to be started
		return nil, ErrDraining
	}
	return p, nil
}

// Keep leaves a process to the next who dials. There is room for one; another is
// closed, and so is one that comes after Close.
func (l *Launcher) Keep(p *Process) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || l.kept != nil {
		l.running.Go(func() { _ = p.Close() }) // bounded by what the end of a command takes
		return
	}
	l.kept, p.taken = p, make(chan struct{})
	taken := p.taken
	l.running.Go(func() { l.watch(p, taken) }) // ends when somebody takes p, with p, or by Close
}

// Take takes p back from Keep, and reports whether it was still there.
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

// watch waits for the end of a kept process, or until somebody takes it.
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
	err := errors.New("it ended before anybody used it")
	if how := Exited(p.Err()); how != nil {
		err = how
	}
	_ = p.Close() // it has ended
	if lost != nil {
		lost(err)
	}
}

// Prestart starts a process for the first who dials, unless there is one already. lost
// is told when a process ends that is being kept.
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

// HasRefused reports whether the process that is kept has refused initialize.
func (l *Launcher) HasRefused() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.kept != nil && l.kept.refused.Load()
}

// HasKept reports whether Dial has no need to start a process.
func (l *Launcher) HasKept() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.kept != nil
}

// Alive returns how many processes there are that nobody closes, the kept one among
// them.
func (l *Launcher) Alive() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.alive
}

// Drain says that nothing is to be started any more. What is kept may still be used.
func (l *Launcher) Drain() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.draining = true
}

// Close ends what is kept, and waits for that. Nothing is started any more. Processes
// that were given away are their owners'.
func (l *Launcher) Close() {
	l.mu.Lock()
	l.draining, l.closed = true, true
	if p := l.kept; p != nil {
		l.kept = nil
		close(p.taken)
		l.running.Go(func() { _ = p.Close() }) // bounded by what the end of a command takes
	}
	l.mu.Unlock()
	l.running.Wait()
}

// announceLocked wakes those who wait for the end of a process.
func (l *Launcher) announceLocked() {
	close(l.changed)
	l.changed = make(chan struct{})
}
