package guard

import (
	"errors"
	"log/slog"
	"os"
	"sync"
)

// ErrClosed says that nothing is started any more.
var ErrClosed = errors.New("mcpbridge is ending, and starts nothing any more")

// A Guard has the process groups of commands ended when this process is killed. Its
// methods are safe for concurrent use. Whoever makes one calls Close.
type Guard struct {
	log    *slog.Logger
	launch func(lost func(*keeper, error)) (*keeper, error) // starts a keeper
	starts sync.WaitGroup                                   // calls of Start

	// turn has capacity 1: who has put something in may use the fields below. It is
	// held while the keeper is started or told, which is bounded.
	turn   chan struct{}
	closed bool
	keeper *keeper // nil before the first command, and where there is none
	failed bool    // there can't be one
}

// New returns a Guard. It starts nothing.
func New(log *slog.Logger) *Guard {
	return &Guard{log: log, launch: newKeeper, turn: make(chan struct{}, 1)}
}

// Start calls start, which starts the leader of a process group and returns its id. The
// leader reads from stdin, which is a pipe. After Close, Start returns ErrClosed.
//
// That there can't be a guard is a line in the log: the command is of more use.
func (g *Guard) Start(stdin *os.File, start func() (leader int, err error)) error {
	mark := inode(stdin)
	if !g.announce(mark) {
		return ErrClosed
	}
	defer g.starts.Done()
	leader, err := start()
	g.tell(func(k *keeper) error { return k.settled(mark, leader, err == nil) })
	return err
}

// Ended says that nothing is left of a group. It is said before the number can be of
// another one, as far as the system allows.
func (g *Guard) Ended(leader int) {
	g.tell(func(k *keeper) error { return k.ended(leader) })
}

// Close has nothing started any more, ends the groups that are left, and waits until
// nothing is left of the guard itself.
func (g *Guard) Close() {
	g.turn <- struct{}{}
	g.closed = true
	<-g.turn
	g.starts.Wait()
	g.turn <- struct{}{}
	k := g.keeper
	g.keeper = nil
	<-g.turn
	if k != nil {
		k.close()
	}
}

// announce says that a process is about to be started. It starts the keeper with the
// first. It reports false if nothing is started any more.
func (g *Guard) announce(mark uint64) bool {
	g.turn <- struct{}{}
	defer func() { <-g.turn }()
	if g.closed {
		return false
	}
	g.starts.Add(1)
	if g.keeper == nil && !g.failed {
		k, err := g.launch(g.lost)
		if err != nil {
			g.giveUp(err)
		}
		g.keeper = k
	}
	g.tellLocked(func(k *keeper) error { return k.starting(mark) })
	return true
}

func (g *Guard) tell(what func(*keeper) error) {
	g.turn <- struct{}{}
	defer func() { <-g.turn }()
	g.tellLocked(what)
}

func (g *Guard) tellLocked(what func(*keeper) error) {
	if g.keeper == nil {
		return
	}
	if err := what(g.keeper); err != nil {
		g.log.Debug("telling the guard of processes", "error", err) // its end is told of by itself
	}
}

// lost takes another keeper for one that ended by itself, unless that was at once.
func (g *Guard) lost(k *keeper, err error) {
	g.turn <- struct{}{}
	defer func() { <-g.turn }()
	if g.keeper != k {
		return // it was closed
	}
	g.keeper = nil
	k.abandon()
	if g.closed {
		return
	}
	if !k.lasted() {
		g.giveUp(err)
		return
	}
	g.log.Warn("the guard of processes ended, another takes its place", "error", err)
	next, err := g.launch(g.lost)
	if err == nil {
		err = next.inherit(k)
	}
	if err != nil {
		g.giveUp(err)
		return
	}
	g.keeper = next
}

func (g *Guard) giveUp(err error) {
	g.failed = true
	g.log.Warn("commands outlive mcpbridge if it is killed: their guard can't run", "error", err)
}
