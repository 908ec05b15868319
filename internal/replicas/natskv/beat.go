package natskv

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/mcpbridge/mcpbridge/internal/replicas/member"
	"github.com/mcpbridge/mcpbridge/internal/wake"
)

const (
	// beatTries bounds how often a heartbeat is written over another one of the same replica, and
	// lagging is the pause after the first: a server may tell of what was there before.
	beatTries = 4
	lagging   = 10 * time.Millisecond
)

var errOverwritten = errors.New("others keep writing the heartbeats of the same replica")

// Beat writes a member's record, unless a later one is there.
func (s *Store) Beat(ctx context.Context, beat member.Beat) error {
	return s.use(ctx, func(b *buckets) error {
		s.keepFor(ctx, b, beat.Lasts)
		begun := time.Now()
		revision, err := b.write(ctx, beat)
		if err == nil && revision > 0 {
			b.told(revision, begun)
		}
		return err
	})
}

// keepFor has the records of members live so long at least.
func (s *Store) keepFor(ctx context.Context, b *buckets, lasts time.Duration) {
	b.mu.Lock()
	longer := lasts > b.keeps
	b.keeps = max(b.keeps, lasts)
	b.mu.Unlock()
	if longer {
		s.lasting(ctx, b.members.kv, lasts)
	}
}

// write returns the revision that it has written; 0 if a later heartbeat is there.
func (b *buckets) write(ctx context.Context, beat member.Beat) (uint64, error) {
	was := b.members.one(beat.Instance)
	for i := range beatTries {
		count, _ := member.Told([]byte(was.Value))
		if i > 0 || count > beat.Count { // the server knows better than the watch
			var err error
			if was, err = current(ctx, b.members.kv, beat.Instance); err != nil {
				return 0, err
			}
			count, _ = member.Told([]byte(was.Value))
		}
		if count > beat.Count {
			return 0, nil
		}
		revision, err := replace(ctx, b.members.kv, beat.Instance, was.Revision, beat.Record)
		if !conflict(err) {
			return revision, err
		}
		if err := wake.Wait(ctx, time.Duration(i)*lagging); err != nil {
			return 0, err
		}
	}
	return 0, errOverwritten
}

// current returns what a server has under a key; the zero Entry if there is nothing.
func current(ctx context.Context, kv jetstream.KeyValue, key string) (member.Entry, error) {
	e, err := kv.Get(ctx, key)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return member.Entry{}, nil
	}
	if err != nil {
		return member.Entry{}, err
	}
	return member.Entry{Value: string(e.Value()), Revision: e.Revision()}, nil
}

// replace writes a value if that under the key has a revision still; 0 means that there is none.
func replace(ctx context.Context, kv jetstream.KeyValue, key string, last uint64, value []byte) (uint64, error) {
	if last == 0 {
		return kv.Create(ctx, key, value)
	}
	return kv.Update(ctx, key, value, last)
}
