package replicas

import "context"

// A Keeper keeps records that have no end: what a person has decided or done must not end by
// itself. What an engine has on disk outlives it. All methods may be called at the same time.
// Without an engine the errors are ErrNoClaims.
type Keeper interface {
	// Kept returns the record of a key, and its version, which is empty if there is none.
	Kept(ctx context.Context, key string) (record []byte, version string, err error)
	// Keep replaces a record if it has a version still; the empty one means that there is none.
	// It returns the version of the new one, or nothing if the record has another version.
	// Records are at most MaxRecord bytes.
	Keep(ctx context.Context, key, version string, record []byte) (now string, err error)
	// EachKept calls f with each record that is kept, whoever keeps it, in no order. Those that
	// are kept or discarded meanwhile, or a moment ago, may be missing, or there still.
	EachKept(ctx context.Context, f func(record []byte)) error
	// Discard removes a record. One that there is not is no error.
	Discard(ctx context.Context, key string) error
}
