package natskv

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/mcpbridge/mcpbridge/internal/wake"
)

// rereadFor is for how long a read is tried again that no server takes.
const rereadFor = time.Second

// reread are the pauses between these tries.
var reread = wake.Backoff{Min: 25 * time.Millisecond, Max: 200 * time.Millisecond}

// read returns the entry of a key. Servers of a cluster that have just made a bucket, or lost the
// one that led it, take no reads for a moment. The client itself tries only writes again.
func read(ctx context.Context, kv jetstream.KeyValue, key string) (jetstream.KeyValueEntry, error) {
	until := time.Now().Add(rereadFor)
	for failures := 0; ; failures++ {
		e, err := kv.Get(ctx, key)
		if !errors.Is(err, nats.ErrNoResponders) || time.Now().After(until) || wake.Wait(ctx, reread.After(failures)) != nil {
			return e, err
		}
	}
}
