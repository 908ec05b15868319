package replicas

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Local is the engine of a replica that is alone: it holds every name. It
// keeps no records, since nobody else could take them.
func Local(self Replica) Engine {
	l := &local{changed: make(chan struct{})}
	l.set(self)
	return l
}

type local struct {
	view atomic.Pointer[View]

	mu      sync.Mutex    // guards changed, and the order of views
	changed chan struct{} // of the view
}

func (l *local) set(self Replica) {
	l.mu.Lock()
	defer l.mu.Unlock()
	last := l.changed
	l.changed = make(chan struct{})
	l.view.Store(&View{Self: self, Members: []Replica{self}, Heard: time.Now(), Changed: l.changed})
	close(last)
}

func (l *local) View() *View {
	v := *l.view.Load()
	v.Heard = time.Now() // what is here is always heard
	return &v
}

func (l *local) Join(_ context.Context, self Replica) error {
	l.set(self)
	return nil
}

func (l *local) Update(self Replica)         { l.set(self) }
func (l *local) Leave(context.Context) error { return nil }
func (l *local) Close(context.Context) error { return nil }
func (l *local) Release(string)              {}

func (l *local) Claim(context.Context, string) (Claim, error) {
	return Claim{Holder: l.view.Load().Self, Epoch: 1}, nil
}

func (l *local) Holder(string) (Claim, bool) {
	return Claim{Holder: l.view.Load().Self, Epoch: 1}, true
}

func (l *local) Seize(ctx context.Context, name string, _ Claim) (Claim, error) {
	return l.Claim(ctx, name)
}

func (l *local) Yield(ctx context.Context, name string, _ Replica) (Claim, error) {
	return l.Claim(ctx, name)
}

func (l *local) Put(context.Context, string, []byte, time.Duration) error { return ErrNoClaims }
func (l *local) Get(context.Context, string) ([]byte, error)              { return nil, ErrNotFound }
func (l *local) Take(context.Context, string) ([]byte, error)             { return nil, ErrNotFound }
