package downstream

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/mcpbridge/mcpbridge/internal/wire"
)

type testCall struct{ Call }

func newTestCall(id int64) *testCall { return &testCall{Call{ID: wire.NumberID(id)}} }

func TestInFlightHasAnIDOnce(t *testing.T) {
	var requests InFlight[*testCall]
	enter := func(c *testCall) (<-chan struct{}, error) { return requests.Enter(c, 0, 3) }
	first, second := newTestCall(1), newTestCall(1)
	if former, err := enter(first); former != nil || err != nil {
		t.Fatalf("Enter() = %v, %v", former, err)
	}
	if _, err := enter(second); err != ErrSameID {
		t.Errorf("Enter() of the same id = %v, want %v", err, ErrSameID)
	}
	if !requests.Free(first) || requests.Free(first) || !requests.Freed(first) {
		t.Error("Free() is not true once")
	}
	if c, ok := requests.Find(first.ID); ok || len(requests.All()) != 0 {
		t.Errorf("Find() = %v although the id is free", c)
	}
	former, err := enter(second)
	if former == nil || err != nil {
		t.Fatalf("Enter() after Free = %v, %v", former, err)
	}
	if c, ok := requests.Find(first.ID); !ok || c != second {
		t.Errorf("Find() = %v, want the second", c)
	}
	requests.Leave(first)
	<-former
	if _, err := enter(newTestCall(2)); err != nil {
		t.Fatal(err)
	}
	if _, err := enter(newTestCall(3)); err != nil {
		t.Fatal(err)
	}
	if _, err := enter(newTestCall(4)); err != ErrFull {
		t.Errorf("Enter() past the bound = %v, want %v", err, ErrFull)
	}
	if all := requests.Close(); len(all) != 3 || !requests.Closed() {
		t.Errorf("Close() = %v", all)
	}
	if _, err := enter(newTestCall(5)); err != ErrClosed {
		t.Errorf("Enter() after Close = %v, want %v", err, ErrClosed)
	}
}

func TestInFlightWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var requests InFlight[*testCall]
		c := newTestCall(1)
		if _, err := requests.Enter(c, 0, 1); err != nil {
			t.Fatal(err)
		}
		late := errors.New("too late")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(late)
		if err := requests.Wait(ctx); err != late {
			t.Errorf("Wait() = %v, want %v", err, late)
		}
		done := make(chan error)
		go func() { done <- requests.Wait(t.Context()) }()
		synctest.Wait()
		requests.Leave(c)
		if err := <-done; err != nil {
			t.Errorf("Wait() = %v", err)
		}
	})
}
