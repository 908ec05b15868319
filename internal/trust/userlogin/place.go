package userlogin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/replicas"
	"github.com/mcpbridge/mcpbridge/internal/trust/login"
)

// A Place keeps records until they are discarded. All methods may be called at the same time.
type Place interface {
	// Kept returns a record, or [replicas.ErrNotFound].
	Kept(ctx context.Context, key string) ([]byte, error)
	// Keep keeps a record, in the place of the last one of its key. It is at most
	// [replicas.MaxRecord] bytes.
	Keep(ctx context.Context, key string, record []byte) error
	// EachKept calls f with each record, in no order. At a shared place there are those of
	// others, too.
	EachKept(ctx context.Context, f func(record []byte)) error
	// Discard removes a record. One that there is not is no error.
	Discard(ctx context.Context, key string) error
	// Lock waits for a lock that only one can have, of all who use the place.
	Lock(ctx context.Context, name string) (unlock func(), err error)
}

const (
	recordSuffix = ".sealed"
	lockSuffix   = ".lock"
	// lockPoll is how often a lock is tried that another one has.
	lockPoll = 50 * time.Millisecond
)

// InDir returns the Place in a folder, which is made when something is kept.
func InDir(dir string) Place { return folder(dir) }

type folder string

func (f folder) file(key, suffix string) string {
	return filepath.Join(string(f), replicas.Key(key)+suffix)
}

// Keep implements [Place].
func (f folder) Keep(_ context.Context, key string, record []byte) error {
	if err := login.MakeDir(string(f)); err != nil {
		return err
	}
	return login.WritePrivate(f.file(key, recordSuffix), record)
}

// Kept implements [Place].
func (f folder) Kept(_ context.Context, key string) ([]byte, error) {
	record, err := login.ReadPrivate(f.file(key, recordSuffix))
	if errors.Is(err, login.ErrNoLogin) {
		return nil, replicas.ErrNotFound
	}
	return record, err
}

// EachKept implements [Place].
func (f folder) EachKept(_ context.Context, each func([]byte)) error {
	files, _ := filepath.Glob(filepath.Join(string(f), "*"+recordSuffix)) // the pattern is well-formed
	for _, file := range files {
		record, err := login.ReadPrivate(file)
		switch {
		case errors.Is(err, login.ErrNoLogin): // it was discarded meanwhile
		case err != nil:
			return err
		default:
			each(record)
		}
	}
	return nil
}

// Discard implements [Place].
func (f folder) Discard(_ context.Context, key string) error {
	err := os.Remove(f.file(key, recordSuffix))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// Lock implements [Place].
func (f folder) Lock(ctx context.Context, name string) (unlock func(), err error) {
	if err := login.MakeDir(string(f)); err != nil {
		return nil, err
	}
	return login.LockFile(ctx, f.file(name, lockSuffix))
}

// AtEngine returns the Place that all replicas share.
func AtEngine(e replicas.Engine) Place {
	return &shared{Engine: e, turns: make(map[string]chan struct{})}
}

// A shared place has the locks of claims, which end with the replica that holds them.
type shared struct {
	replicas.Engine

	// mu guards turns. A claim is a replica's; a turn is that of one goroutine there.
	mu    sync.Mutex
	turns map[string]chan struct{} // closed when whoever has the lock gives it back
}

// Kept implements [Place].
func (s *shared) Kept(ctx context.Context, key string) ([]byte, error) {
	record, version, err := s.Engine.Kept(ctx, key)
	if err == nil && version == "" {
		return nil, replicas.ErrNotFound
	}
	return record, err
}

// Keep implements [Place]. The last one that keeps a record wins, as in a folder: who may is a
// matter of the lock.
func (s *shared) Keep(ctx context.Context, key string, record []byte) error {
	for ctx.Err() == nil {
		_, version, err := s.Engine.Kept(ctx, key)
		if err != nil {
			return err
		}
		if now, err := s.Engine.Keep(ctx, key, version, record); now != "" || err != nil {
			return err
		}
	}
	return context.Cause(ctx)
}

// Lock implements [Place].
func (s *shared) Lock(ctx context.Context, name string) (unlock func(), err error) {
	name = "user login " + name
	end, err := s.turn(ctx, name)
	if err != nil {
		return nil, err
	}
	for {
		c, err := s.Claim(ctx, name)
		switch {
		case err != nil:
			s.Release(name)
			end()
			return nil, fmt.Errorf("locking a login: %w", err)
		case c.Holder.Instance == s.View().Self.Instance && s.Leased():
			return func() { s.Release(name); end() }, nil
		}
		select {
		case <-time.After(lockPoll):
		case <-ctx.Done():
			s.Release(name)
			end()
			return nil, context.Cause(ctx)
		}
	}
}

// turn waits until no other goroutine of this replica has the lock.
func (s *shared) turn(ctx context.Context, name string) (end func(), err error) {
	for {
		s.mu.Lock()
		busy := s.turns[name]
		if busy == nil {
			done := make(chan struct{})
			s.turns[name] = done
			s.mu.Unlock()
			return func() {
				s.mu.Lock()
				delete(s.turns, name)
				s.mu.Unlock()
				close(done)
			}, nil
		}
		s.mu.Unlock()
		select {
		case <-busy:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}
