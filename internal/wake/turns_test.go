package wake

import (
	"sync"
	"testing"
	"testing/synctest"
)

// What is sent is turned to, by one goroutine at a time, before Start as after, until it is over.
func TestTurns(t *testing.T) {
	var turns Turns
	var mu sync.Mutex
	sent, seen, calls := 0, 0, 0
	send := func() {
		mu.Lock()
		sent++
		mu.Unlock()
		turns.Send()
	}
	send()
	busy := make(chan struct{}, 1)
	const all = 1000
	over := make(chan struct{})
	go func() {
		defer close(over)
		turns.Run(t.Context(), func() bool {
			select {
			case busy <- struct{}{}:
			default:
				t.Error("two turns at once")
			}
			defer func() { <-busy }()
			mu.Lock()
			defer mu.Unlock()
			seen, calls = sent, calls+1
			return sent == all
		})
	}()
	var senders sync.WaitGroup
	for range 9 {
		senders.Go(func() {
			for range (all - 1) / 9 {
				send()
			}
		})
	}
	senders.Wait()
	<-over
	if seen != all || calls > all {
		t.Errorf("%d of %d were seen in %d turns", seen, all, calls)
	}
	turns.Send() // has no effect
}

// While nothing is sent, there is no goroutine; and no turn without a Send.
func TestTurnsRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var turns Turns
		calls := 0
		turns.Start(func() bool { calls++; return calls == 3 })
		for i, want := range []int{1, 2, 3, 3} {
			if synctest.Wait(); calls != i && i < 3 {
				t.Errorf("%d calls before Send, want %d", calls, i)
			}
			turns.Send()
			if synctest.Wait(); calls != want {
				t.Errorf("%d calls, want %d", calls, want)
			}
		}
	})
}
