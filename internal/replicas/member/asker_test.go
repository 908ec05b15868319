package member

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/mcpbridge/mcpbridge/internal/replicas"
)

// A slowStore is a Store that answers once it was asked some times.
type slowStore struct {
	Store
	fails int
}

func (s *slowStore) Kept(context.Context, string) ([]byte, string, error) {
	if s.fails--; s.fails >= 0 {
		return nil, "", errors.New("it starts")
	}
	return []byte("record"), "1", nil
}

func (s *slowStore) Poll(context.Context, []string, bool) (Snapshot, error) { return Snapshot{}, nil }

// What is kept may be asked for before this replica joins: the store is waited for. Then it is asked
// while it is there, and never after the end.
func TestAskerAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &asker{store: &slowStore{fails: 2}, away: true}
		if record, version, err := a.Kept(t.Context(), "key"); string(record) != "record" || version != "1" || err != nil {
			t.Errorf("Kept = %q, %q, %v before joining, want the record once the store is there", record, version, err)
		}
		a.join()
		if _, _, err := a.Kept(t.Context(), "key"); err != replicas.ErrAway {
			t.Errorf("Kept = %v before the first round has ended, want %v", err, replicas.ErrAway)
		}
		a.answered(nil, false)
		if _, version, err := a.Kept(t.Context(), "key"); version != "1" || err != nil {
			t.Errorf("Kept = %q, %v after it, want the record", version, err)
		}
		why := errors.New("connection refused")
		a.answered(why, true)
		if _, _, err := a.Kept(t.Context(), "key"); err != replicas.ErrAway {
			t.Errorf("Kept = %v while the store is away, want %v", err, replicas.ErrAway)
		}
		if text, refuses := a.Trouble(t.Context()); text != "it can't be reached: connection refused" || refuses {
			t.Errorf("Trouble = %q, %v, want why, and no refusal", text, refuses)
		}
		a.end()
		if _, _, err := a.Kept(t.Context(), "key"); err != replicas.ErrClosed {
			t.Errorf("Kept = %v after the end, want %v", err, replicas.ErrClosed)
		}
	})
}
