package natskv

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/mcpbridge/mcpbridge/internal/wake"
)

// rereadFor is for how long a read is tried again that no server takes.
const rereadFor = time.Second

// errNoLeader says that a bucket has no leader at the moment, or that a server does not know of one. The
// buckets are there still.
var errNoLeader = errors.New("no server of NATS leads the bucket")

// reread are the pauses between these tries.
var reread = wake.Backoff{Min: 25 * time.Millisecond, Max: 200 * time.Millisecond}

// An entry is the last value of a key.
type entry struct {
	value    []byte
	revision uint64
	created  time.Time
}

// A reader returns the entry of a key of a bucket, or jetstream.ErrKeyNotFound.
type reader func(ctx context.Context, kv jetstream.KeyValue, key string) (entry, error)

// read asks any server that has the bucket. A write is confirmed once most of them have it, so one that
// is behind may not know of a key yet: that there is none is the word of the one that leads the bucket.
func (s *Store) read(ctx context.Context, kv jetstream.KeyValue, key string) (entry, error) {
	e, err := readAny(ctx, kv, key)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return s.readLeader(ctx, kv, key)
	}
	return e, err
}

// readAny returns what any server knows of a key.
func readAny(ctx context.Context, kv jetstream.KeyValue, key string) (entry, error) {
	return reading(ctx, func() (entry, error) {
		e, err := kv.Get(ctx, key)
		if err != nil {
			return entry{}, err
		}
		return entry{e.Value(), e.Revision(), e.Created()}, nil
	})
}

// readLeader returns what the server knows that leads the bucket.
func (s *Store) readLeader(ctx context.Context, kv jetstream.KeyValue, key string) (entry, error) {
	return reading(ctx, func() (entry, error) { return s.askLeader(ctx, kv, key) })
}

// reading asks until a server takes the read. Those of a cluster that have just made a bucket, or lost the
// one that led it, take none for a moment. The client itself tries only writes again.
func reading(ctx context.Context, ask func() (entry, error)) (entry, error) {
	until := time.Now().Add(rereadFor)
	for failures := 0; ; failures++ {
		e, err := ask()
		untaken := errors.Is(err, nats.ErrNoResponders) || errors.Is(err, errNoLeader)
		if !untaken || time.Now().After(until) || wake.Wait(ctx, reread.After(failures)) != nil {
			return e, err
		}
	}
}

// askLeader sends the request of JetStream's API that package jetstream sends only for streams that allow no
// direct reads, as all buckets do.
func (s *Store) askLeader(ctx context.Context, kv jetstream.KeyValue, key string) (entry, error) {
	var answer struct {
		Error   *jetstream.APIError `json:"error"`
		Message struct {
			Revision uint64    `json:"seq"`
			Header   []byte    `json:"hdrs"`
			Value    []byte    `json:"data"`
			Created  time.Time `json:"time"`
		} `json:"message"`
	}
	ask := fmt.Sprintf(`{"last_by_subj":"$KV.%s.%s"}`, kv.Bucket(), key)
	res, err := s.nc.RequestWithContext(ctx, "$JS.API.STREAM.MSG.GET.KV_"+kv.Bucket(), []byte(ask))
	switch {
	case err == nil:
		err = json.Unmarshal(res.Data, &answer)
	case errors.Is(err, nats.ErrNoResponders):
		err = fmt.Errorf("%w: %w", errNoLeader, err)
	}
	m := answer.Message
	switch {
	case err != nil:
		return entry{}, fmt.Errorf("asking NATS for a key of bucket %s: %w", kv.Bucket(), err)
	case answer.Error != nil && answer.Error.ErrorCode == jetstream.JSErrCodeMessageNotFound:
		return entry{}, jetstream.ErrKeyNotFound
	case answer.Error != nil && answer.Error.ErrorCode == codeNotAvailable:
		return entry{}, fmt.Errorf("%w %s: %w", errNoLeader, kv.Bucket(), answer.Error)
	case answer.Error != nil:
		return entry{}, answer.Error
	case deleted(m.Header):
		return entry{}, jetstream.ErrKeyNotFound
	}
	return entry{m.Value, m.Revision, m.Created}, nil
}

// deleted reports whether a header says that a key was deleted, or has ended.
func deleted(header []byte) bool {
	h, err := nats.DecodeHeadersMsg(header)
	return err == nil && (h.Get("KV-Operation") != "" || h.Get(jetstream.MarkerReasonHeader) != "")
}
