package natskv

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/mcpbridge/mcpbridge/internal/replicas/member"
	"github.com/mcpbridge/mcpbridge/internal/wake"
)

// A mirror has what a watch of a bucket told.
type mirror struct {
	kv      jetstream.KeyValue
	watcher jetstream.KeyWatcher
	hints   wake.Signal
	bounds
	full chan struct{} // closed when all that was in the bucket is known
	done chan struct{} // closed when follow has returned
	once sync.Once     // stops the watcher

	mu      sync.Mutex // guards the fields below
	entries map[string]told
	last    uint64 // revision that was told
	skipped int    // entries, since skips was called
}

// bounds are those of a mirror.
type bounds struct {
	size  int                              // of a value and its key, in bytes; a larger value is known as none
	most  int                              // entries: an entry that is known keeps its place
	lasts func(value []byte) time.Duration // how long an entry is known that is not told again; nil means for ever
}

// told is an entry, and when the watch told it.
type told struct {
	member.Entry
	ends time.Time // when it is not known any more; zero means never
}

// watch returns a mirror of a bucket, which await waits for.
func (s *Store) watch(ctx context.Context, kv jetstream.KeyValue, b bounds) (*mirror, error) {
	m := &mirror{kv: kv, hints: s.hints, bounds: b, full: make(chan struct{}), done: make(chan struct{}), entries: make(map[string]told)}
	lasting, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, cancel) // until the watch has begun
	watcher, err := kv.WatchAll(lasting)
	if !stop() || err != nil {
		cancel()
		if err == nil {
			_ = watcher.Stop() // it is of no use
			err = context.Cause(ctx)
		}
		return nil, fmt.Errorf("watching bucket %s of NATS: %w", kv.Bucket(), err)
	}
	m.watcher = watcher
	go m.follow(cancel) // ends by stop, or with the connection
	return m, nil
}

// await waits until the mirror has all that is in the bucket.
func (m *mirror) await(ctx context.Context) error {
	select {
	case <-m.full:
		return nil
	case <-m.done:
		return errDeaf
	case <-ctx.Done():
		return fmt.Errorf("reading bucket %s of NATS: %w", m.kv.Bucket(), context.Cause(ctx))
	}
}

// follow takes in what the watch tells, until it ends.
func (m *mirror) follow(cancel context.CancelFunc) {
	defer close(m.done)
	defer m.hints.Send()
	defer cancel()
	full := m.full
	for e := range m.watcher.Updates() {
		switch {
		case e != nil:
			m.note(e)
		case full != nil:
			close(full)
			full = nil
		}
		if full == nil {
			m.hints.Send()
		}
	}
}

func (m *mirror) note(e jetstream.KeyValueEntry) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last = max(m.last, e.Revision())
	if e.Operation() != jetstream.KeyValuePut {
		delete(m.entries, e.Key())
		return
	}
	value := e.Value()
	if len(e.Key())+len(value) > m.size {
		m.skipped++
		value = nil
	}
	if _, known := m.entries[e.Key()]; !known && len(m.entries) >= m.most {
		m.skipped++
		return
	}
	entry := told{Entry: member.Entry{Value: string(value), Revision: e.Revision()}}
	if m.lasts != nil {
		entry.ends = time.Now().Add(m.lasts(value))
	}
	m.entries[e.Key()] = entry
}

// skips returns how many entries were skipped since it was called.
func (m *mirror) skips() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.skipped
	m.skipped = 0
	return n
}

// stop ends the watch, and waits for it.
func (m *mirror) stop() {
	m.once.Do(func() { _ = m.watcher.Stop() }) // it may have ended with its connection
	<-m.done
}

func (m *mirror) reached() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.last
}

// all returns the entries that last, and forgets the others.
func (m *mirror) all(now time.Time) map[string]member.Entry {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := make(map[string]member.Entry, len(m.entries))
	for key, e := range m.entries {
		if !e.ends.IsZero() && now.After(e.ends) {
			delete(m.entries, key)
			continue
		}
		out[key] = e.Entry
	}
	return out
}

func (m *mirror) one(key string) member.Entry {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.entries[key].Entry
}

func (m *mirror) some(keys []string) map[string]member.Entry {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := make(map[string]member.Entry, len(keys))
	for _, key := range keys {
		if e, kept := m.entries[key]; kept {
			out[key] = e.Entry
		}
	}
	return out
}
