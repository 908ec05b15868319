package replicastest

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/replicas"
)

// Alone is the engine of a replica that is alone: it holds every name. It
// keeps no records, since nobody else could take them.
func Alone(self replicas.Replica) replicas.Engine {
	a := &alone{changed: make(chan struct{})}
	a.set(self)
	return a
}

type alone struct {
	view atomic.Pointer[replicas.View]

	mu      sync.Mutex    // guards changed, and the order of views
	changed chan struct{} // of the view
}

func (a *alone) set(self replicas.Replica) {
	a.mu.Lock()
	defer a.mu.Unlock()
	last := a.changed
	a.changed = make(chan struct{})
	a.view.Store(&replicas.View{Self: self, Members: []replicas.Replica{self}, Heard: time.Now(), Changed: a.changed})
	close(last)
}

func (a *alone) View() *replicas.View {
	v := *a.view.Load()
	v.Heard = time.Now() // what is here is always heard
	return &v
}

func (a *alone) Join(_ context.Context, self replicas.Replica) error {
	a.set(self)
	return nil
}

func (a *alone) Meet(replicas.Neighbors)                       {}
func (a *alone) TellFor(context.Context, string, []byte) error { return replicas.ErrNoClaims }
func (a *alone) Leased() bool                                  { return true }
func (a *alone) Teller() (replicas.Replica, bool)              { return replicas.Replica{}, false }
func (a *alone) Inquire(context.Context, string) error         { return replicas.ErrNoClaims }
func (a *alone) Vacant(string) uint64                          { return 0 }
func (a *alone) Holds(string) (uint64, error)                  { return 1, nil }

func (a *alone) Update(self replicas.Replica) { a.set(self) }
func (a *alone) Leave(context.Context) error  { return nil }
func (a *alone) Close(context.Context) error  { return nil }
func (a *alone) Release(string)               {}

func (a *alone) Claim(context.Context, string) (replicas.Claim, error) {
	return replicas.Claim{Holder: a.view.Load().Self, Epoch: 1}, nil
}

func (a *alone) Holder(string) (replicas.Claim, bool) {
	return replicas.Claim{Holder: a.view.Load().Self, Epoch: 1}, true
}

func (a *alone) Seize(ctx context.Context, name string, _ replicas.Claim) (replicas.Claim, error) {
	return a.Claim(ctx, name)
}

func (a *alone) Yield(ctx context.Context, name string, _ replicas.Replica) (replicas.Claim, error) {
	return a.Claim(ctx, name)
}

func (a *alone) Put(context.Context, string, []byte, time.Duration) error {
	return replicas.ErrNoClaims
}
func (a *alone) Keep(context.Context, string, string, []byte) (string, error) {
	return "", replicas.ErrNoClaims
}
func (a *alone) Kept(context.Context, string) ([]byte, string, error) {
	return nil, "", replicas.ErrNoClaims
}
func (a *alone) EachKept(context.Context, func(record []byte)) error { return replicas.ErrNoClaims }
func (a *alone) Discard(context.Context, string) error               { return replicas.ErrNoClaims }
func (a *alone) Get(context.Context, string) ([]byte, error)         { return nil, replicas.ErrNotFound }
func (a *alone) Take(context.Context, string) ([]byte, error)        { return nil, replicas.ErrNotFound }
