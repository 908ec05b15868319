package member

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/replicas"
	"github.com/mcpbridge/mcpbridge/internal/wake"
)

// An Explainer is a Store that knows what its errors come from.
type Explainer interface {
	// Explain says what is the case and what to compare; "" if the broker can't be reached, or
	// more is not known.
	Explain(ctx context.Context, err error) string
}

const (
	// answering is how long the store has until it is there, whoever asks from outside.
	answering = 5 * replicas.Heartbeat
	// look is how often it is looked whether a record was written again.
	look = replicas.Heartbeat / 4
)

// An asker asks the store: each question within some time, and only while it is there. It is safe for
// concurrent use.
type asker struct {
	store Store

	mu     sync.Mutex // guards the fields below; a leaf
	joined bool       // before that, some questions wait for the store
	closed bool
	away   bool  // the store has never answered, or not for a while
	why    error // of the last round, if it has failed
}

// join notes that the replica joins.
func (a *asker) join() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.joined = true
}

// answered notes how a round has ended, and whether the store is away.
func (a *asker) answered(why error, away bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.why, a.away = why, away
}

// end has nothing asked any more.
func (a *asker) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
}

// usable returns why the store can't be asked, or nil.
func (a *asker) usable() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.closed:
		return replicas.ErrClosed
	case a.away:
		return replicas.ErrAway
	}
	return nil
}

// ask calls f with a bound of time, if the store is there.
func (a *asker) ask(ctx context.Context, f func(context.Context) error) error {
	if err := a.usable(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := f(ctx)
	if err == nil || errors.Is(err, replicas.ErrNotFound) || errors.Is(err, replicas.ErrTooLarge) {
		return err
	}
	return fmt.Errorf("%w: %w", replicas.ErrAway, err)
}

// askOutside is ask, but that it waits for the store if this replica has not joined.
func (a *asker) askOutside(ctx context.Context, f func(context.Context) error) error {
	a.mu.Lock()
	outside := !a.joined && !a.closed
	a.mu.Unlock()
	if outside {
		return a.await(ctx, f)
	}
	return a.ask(ctx, f)
}

// await calls f until the store answers. The error says why it does not.
func (a *asker) await(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, answering)
	defer cancel()
	var last error
	for {
		err := a.once(ctx, f)
		if err == nil || errors.Is(err, replicas.ErrNotFound) || errors.Is(err, replicas.ErrTooLarge) {
			return err
		}
		if last == nil || !errors.Is(err, context.DeadlineExceeded) {
			last = err // a time that is over says less
		}
		if why := a.explain(ctx, last); why != "" {
			return fmt.Errorf("%s: %w", why, last)
		}
		if wake.Wait(ctx, look) != nil {
			return fmt.Errorf("it can't be reached: %w", last)
		}
	}
}

func (a *asker) once(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return f(ctx)
}

// Trouble says why the store can't be asked at this moment, and whether it refuses this replica,
// which somebody has to mend: not if it is out of reach. It is empty if the store answers.
func (a *asker) Trouble(ctx context.Context) (why string, refuses bool) {
	a.mu.Lock()
	err := a.why
	a.mu.Unlock()
	if err == nil {
		return "", false
	}
	if why := a.explain(ctx, err); why != "" {
		return why, true
	}
	return fmt.Sprintf("it can't be reached: %v", err), false
}

func (a *asker) explain(ctx context.Context, err error) string {
	if e, ok := a.store.(Explainer); ok {
		return e.Explain(ctx, err)
	}
	return ""
}

// Put keeps a record until ttl is over.
func (a *asker) Put(ctx context.Context, key string, data []byte, ttl time.Duration) error {
	if len(data) > replicas.MaxRecord {
		return fmt.Errorf("%w: %d bytes, over %d", replicas.ErrTooLarge, len(data), replicas.MaxRecord)
	}
	return a.ask(ctx, func(ctx context.Context) error {
		return a.store.Put(ctx, replicas.Key(key), data, ttl)
	})
}

// Get returns a record.
func (a *asker) Get(ctx context.Context, key string) ([]byte, error) {
	return a.fetch(ctx, key, a.store.Get)
}

// Take returns a record and deletes it.
func (a *asker) Take(ctx context.Context, key string) ([]byte, error) {
	return a.fetch(ctx, key, a.store.Take)
}

// fetch returns what one of both returns.
func (a *asker) fetch(ctx context.Context, key string, from func(context.Context, string) ([]byte, error)) (data []byte, err error) {
	err = a.ask(ctx, func(ctx context.Context) (err error) {
		data, err = from(ctx, replicas.Key(key))
		return err
	})
	return data, err
}
