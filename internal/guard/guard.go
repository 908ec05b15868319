package guard

import (
	"errors"
	"log/slog"
	"os"
	"sync"
)

// ErrClosed is returned by Start after Close.
var ErrClosed = errors.New("mcpbridge is ending, and starts no more commands")

// A Guard ensures that the process groups of commands are ended even if this process is
// killed. Its methods are safe for concurrent use. Call Close at the end.
type Guard struct {
	log    *slog.Logger
	launch func(lost func(*watchdog, error)) (*watchdog, error) // starts a watchdog
	starts sync.WaitGroup                                       // running calls of Start

	// turn is a lock of the fields below: a channel of capacity 1, which holds a value
	// while it is locked. It is held while the watchdog is started or a message is sent
	// to it, which takes a bounded time.
	turn     chan struct{}
	closed   bool
	watchdog *watchdog // nil before the first command, and if it can't run
	failed   bool      // a watchdog can't run
}

// New returns a Guard. The first call of Start starts the watchdog.
func New(log *slog.Logger) *Guard {
	return &Guard{log: log, launch: newWatchdog, turn: make(chan struct{}, 1)}
}

// Start calls start, which starts the leader of a process group and returns its id. stdin
// is a pipe, and the leader's standard input. mark, which may be empty, is an entry of its
// environment that no other command has. After Close, Start returns ErrClosed.
//
// If the watchdog can't run, Start logs that and starts the command nevertheless.
func (g *Guard) Start(stdin *os.File, mark string, start func() (leader int, err error)) error {
	pipe := inode(stdin)
	if !g.announce(pipe, mark) {
		return ErrClosed
	}
	defer g.starts.Done()
	leader, err := start()
	g.tell(func(w *watchdog) error { return w.settled(pipe, leader, err == nil) })
	return err
}

// Ended reports that a group has no processes left. Call it, if the system allows, before
// the id can be reused for another group.
func (g *Guard) Ended(leader int) {
	g.tell(func(w *watchdog) error { return w.ended(leader) })
}

// Close prevents further starts, ends the remaining groups, and waits for the end of the
// watchdog.
func (g *Guard) Close() {
	g.turn <- struct{}{}
	g.closed = true
	<-g.turn
	g.starts.Wait()
	g.turn <- struct{}{}
	w := g.watchdog
	g.watchdog = nil
	<-g.turn
	if w != nil {
		w.close()
	}
}

// announce tells the watchdog that a process is about to be started. The first call
// starts the watchdog. It reports false after Close.
func (g *Guard) announce(pipe uint64, mark string) bool {
	g.turn <- struct{}{}
	defer func() { <-g.turn }()
	if g.closed {
		return false
	}
	g.starts.Add(1)
	if g.watchdog == nil && !g.failed {
		w, err := g.launch(g.lost)
		if err != nil {
			g.giveUp(err)
		}
		g.watchdog = w
	}
	g.tellLocked(func(w *watchdog) error { return w.starting(pipe, mark) })
	return true
}

func (g *Guard) tell(what func(*watchdog) error) {
	g.turn <- struct{}{}
	defer func() { <-g.turn }()
	g.tellLocked(what)
}

func (g *Guard) tellLocked(what func(*watchdog) error) {
	if g.watchdog == nil {
		return
	}
	if err := what(g.watchdog); err != nil {
		g.log.Debug("sending to the process guard", "error", err) // if it has ended, lost is called
	}
}

// lost replaces a watchdog that ended by itself, unless it ended soon after its start.
func (g *Guard) lost(w *watchdog, err error) {
	g.turn <- struct{}{}
	defer func() { <-g.turn }()
	if g.watchdog != w {
		return // it was closed
	}
	g.watchdog = nil
	w.abandon()
	if g.closed {
		return
	}
	if !w.lasted() {
		g.giveUp(err)
		return
	}
	g.log.Warn("the process guard ended; starting another one", "error", err)
	next, err := g.launch(g.lost)
	if err == nil {
		err = next.inherit(w)
	}
	if err != nil {
		g.giveUp(err)
		return
	}
	g.watchdog = next
}

func (g *Guard) giveUp(err error) {
	g.failed = true
	g.log.Warn("commands outlive mcpbridge if it is killed: the process guard can't run", "error", err)
}
