package remember

import (
	"context"
	"log/slog"
	"time"
)

// askTimeout bounds one question to Records.
const askTimeout = time.Second

// Records are where all replicas find what one of them has put there.
type Records interface {
	Get(ctx context.Context, key string) ([]byte, error)
	Put(ctx context.Context, key string, record []byte, ttl time.Duration) error
}

// A Shared keeps records for all replicas. It is safe for concurrent use.
type Shared struct {
	Records Records
	Logger  *slog.Logger // logs at debug level what can't be read
}

// Lookup returns the record of k, unless it is older than [MaxAge], or can't be asked for.
func (s *Shared) Lookup(k Key) (Record, bool) {
	ctx, cancel := context.WithTimeout(context.Background(), askTimeout)
	defer cancel()
	data, err := s.Records.Get(ctx, sharedKey(k))
	if err != nil {
		return Record{}, false // there is none, or nobody knows
	}
	r, err := decode(k, data)
	if err != nil {
		s.Logger.Debug("remembered server of other replicas not read", "error", err)
		return Record{}, false
	}
	return r, r.fresh(time.Now())
}

// Keep stores r as the record of k, and replaces an older one.
func (s *Shared) Keep(k Key, r Record) error {
	if r.Said.IsZero() {
		r.Said = time.Now()
	}
	data, err := encode(k, r)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), askTimeout)
	defer cancel()
	return s.Records.Put(ctx, sharedKey(k), data, MaxAge)
}

// LookupList is that of [Store].
func (s *Shared) LookupList(k Key) ([]byte, bool) {
	ctx, cancel := context.WithTimeout(context.Background(), askTimeout)
	defer cancel()
	data, err := s.Records.Get(ctx, sharedListKey(k))
	if err != nil {
		return nil, false // there is none, or nobody knows
	}
	items, _, err := decodeList(k, data)
	if err != nil {
		s.Logger.Debug("remembered list of other replicas not read", "error", err)
	}
	return items, err == nil
}

// KeepList is that of [Store].
func (s *Shared) KeepList(k Key, items []byte) error {
	data, err := encodeList(k, items, time.Now())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), askTimeout)
	defer cancel()
	return s.Records.Put(ctx, sharedListKey(k), data, MaxAge)
}

func sharedKey(k Key) string { return "server/" + k.String() }

func sharedListKey(k Key) string { return "list/" + k.String() }
