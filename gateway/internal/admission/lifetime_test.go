package admission

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
)

// Whoever entered is waited for, and nobody enters after the end.
func TestLifetime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, why := NewLifetime(), errors.New("it was removed")
		if !l.Enter() || l.Reason() != nil {
			t.Fatal("can't enter before the end")
		}
		l.End(why)
		if l.Enter() || l.Reason() != why {
			t.Errorf("entered after the end, or the reason is %v", l.Reason())
		}
		<-l.Over()
		waited := false
		go func() {
			l.Wait(context.Background())
			waited = true
		}()
		synctest.Wait()
		if waited {
			t.Error("did not wait for who entered before")
		}
		l.Hold()
		l.Leave()
		synctest.Wait()
		if waited {
			t.Error("did not wait for who entered before, after another has left")
		}
		l.Leave()
		synctest.Wait()
		if !waited {
			t.Error("waits for nobody")
		}
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		l.Hold()
		l.Wait(ctx)
	})
}

// Of those that come while it ends each is either waited for, or turned away.
func TestLifetimeRace(t *testing.T) {
	for range 200 {
		l, closed := NewLifetime(), false
		var mu sync.Mutex
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for l.Enter() {
					mu.Lock()
					if closed {
						t.Error("served after what it needs was closed")
					}
					mu.Unlock()
					l.Leave()
				}
			})
		}
		l.End(errors.New("over"))
		l.Wait(context.Background())
		mu.Lock()
		closed = true
		mu.Unlock()
		wg.Wait()
	}
}
