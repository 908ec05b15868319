package natskv

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// unreadKV takes no reads for a while.
type unreadKV struct {
	jetstream.KeyValue
	until time.Time
}

func (kv *unreadKV) Get(context.Context, string) (jetstream.KeyValueEntry, error) {
	if time.Now().Before(kv.until) {
		return nil, nats.ErrNoResponders
	}
	return nil, jetstream.ErrKeyNotFound
}

// What no server reads for a moment is asked for again; who waits no longer, or too long, is told.
func TestRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			unread, patience time.Duration
			want             error
			within           time.Duration
		}{
			{unread: 0, patience: time.Minute, want: jetstream.ErrKeyNotFound, within: 0},
			{unread: 600 * time.Millisecond, patience: time.Minute, want: jetstream.ErrKeyNotFound, within: 800 * time.Millisecond},
			{unread: time.Hour, patience: time.Minute, want: nats.ErrNoResponders, within: rereadFor + reread.Max},
			{unread: time.Hour, patience: 100 * time.Millisecond, want: nats.ErrNoResponders, within: 100 * time.Millisecond},
		} {
			ctx, cancel := context.WithTimeout(t.Context(), c.patience)
			begun := time.Now()
			_, err := read(ctx, &unreadKV{until: begun.Add(c.unread)}, "key")
			if took := time.Since(begun); !errors.Is(err, c.want) || took > c.within {
				t.Errorf("unread for %v: %v after %v, want %v within %v", c.unread, err, took, c.want, c.within)
			}
			cancel()
		}
	})
}
