package admission

import (
	"context"
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
)

func TestMain(m *testing.M) { os.Exit(bridgetest.Main(m)) }

// ends notes when something was ended, and why.
type ends struct {
	mu   sync.Mutex
	from time.Time
	at   map[string]time.Duration
	why  map[string]error
}

func newEnds() *ends {
	return &ends{from: time.Now(), at: make(map[string]time.Duration), why: make(map[string]error)}
}

func (e *ends) of(name string) func(error) {
	return func(reason error) {
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.why[name] != nil {
			panic(name + " was ended twice")
		}
		e.at[name], e.why[name] = time.Since(e.from), reason
	}
}

func (e *ends) want(t *testing.T, name string, at time.Duration, why error) {
	t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.at[name] != at || e.why[name] != why {
		t.Errorf("%s ended after %v: %v, want %v: %v", name, e.at[name], e.why[name], at, why)
	}
}

func until(d time.Duration) *mcp.Identity { return &mcp.Identity{Expires: time.Now().Add(d)} }

// A token is accepted for a minute after its end, since clocks differ. What a client opens
// within that minute lasts as long as its calls are answered: else it would end at once, and be
// opened again, and again.
func TestA03OpenedWithinTheLeeway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, e := NewExpirer(), newEnds()
		defer w.Close()
		token := until(10 * time.Second)
		token.Issuer = "https://id.example.com"
		w.Until(token, e.of("before"))
		time.Sleep(30 * time.Second)
		w.Until(token, e.of("within"))
		time.Sleep(41 * time.Second)
		w.Until(token, e.of("after"))
		time.Sleep(time.Hour)
		synctest.Wait()
		e.want(t, "before", 10*time.Second, ErrExpired)
		e.want(t, "within", 70*time.Second, ErrExpired)
		e.want(t, "after", 71*time.Second, ErrExpired)
	})
}

// Each ends when its own credential does, whatever the order in which they came.
func TestA03EndsWithItsCredential(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, e := NewExpirer(), newEnds()
		defer w.Close()
		w.Until(until(3*time.Hour), e.of("third"))
		w.Until(until(time.Hour), e.of("first"))
		w.Until(until(2*time.Hour), e.of("second"))
		w.Until(until(-time.Second), e.of("past"))
		w.Until(nil, e.of("anonymous"))
		w.Until(&mcp.Identity{}, e.of("never"))
		forget := w.Until(until(time.Hour), e.of("forgotten"))
		w.Until(until(time.Hour), e.of("first too"))
		forget()
		forget()
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		e.want(t, "past", 0, ErrExpired)
		e.want(t, "first", time.Hour, ErrExpired)
		e.want(t, "first too", time.Hour, ErrExpired)
		e.want(t, "second", 2*time.Hour, ErrExpired)
		e.want(t, "third", 3*time.Hour, ErrExpired)
		for _, name := range []string{"anonymous", "never", "forgotten"} {
			e.want(t, name, 0, nil)
		}
	})
}

// A credential that is revoked ends what was opened with it at the next check; one that is
// not goes on until it expires, to the second.
func TestA03EndsWhenRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, e := NewExpirer(), newEnds()
		defer w.Close()
		var revoked atomic.Bool
		good, bad, once := until(90*time.Second), until(time.Hour), &mcp.Identity{}
		var checks atomic.Int32
		good.SetVerify(func(context.Context) error { return nil })
		bad.SetVerify(func(context.Context) error {
			checks.Add(1)
			if revoked.Load() {
				return errors.New("revoked")
			}
			return nil
		})
		once.SetVerify(func(context.Context) error { return errors.New("the key has gone") })
		w.Until(good, e.of("good"))
		w.Until(bad, e.of("bad"))
		w.Until(once, e.of("without an end"))
		time.Sleep(5*time.Minute + time.Second)
		revoked.Store(true)
		time.Sleep(time.Hour)
		e.want(t, "good", 90*time.Second, ErrExpired)
		e.want(t, "bad", 6*time.Minute, ErrRefused)
		e.want(t, "without an end", time.Minute, ErrRefused)
		if n := checks.Load(); n != 6 {
			t.Errorf("%d checks, want one a minute: 6", n)
		}
	})
}

// An issuer that does not answer holds up no expiry, and no more than a few goroutines.
func TestA03SlowChecksHoldUpNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, e := NewExpirer(), newEnds()
		var running, most atomic.Int32
		for range 100 {
			id := &mcp.Identity{}
			id.SetVerify(func(ctx context.Context) error {
				most.Store(max(most.Load(), running.Add(1)))
				defer running.Add(-1)
				<-ctx.Done()
				return ctx.Err()
			})
			w.Until(id, func(error) {})
		}
		w.Until(until(65*time.Second), e.of("prompt"))
		time.Sleep(66 * time.Second)
		e.want(t, "prompt", 65*time.Second, ErrExpired)
		if n := most.Load(); n != maxChecks {
			t.Errorf("%d checks at a time, want %d", n, maxChecks)
		}
		w.Close() // cuts them short
		if n := running.Load(); n != 0 {
			t.Errorf("%d checks run after Close", n)
		}
	})
}

// What is forgotten while it is checked is not ended, and what comes after Close neither.
func TestForgottenWhileChecked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, e := NewExpirer(), newEnds()
		id := &mcp.Identity{}
		id.SetVerify(func(ctx context.Context) error {
			time.Sleep(time.Second)
			return errors.New("refused")
		})
		forget := w.Until(id, e.of("forgotten"))
		time.Sleep(checkEvery + time.Second/2)
		forget()
		time.Sleep(time.Minute)
		w.Close()
		w.Until(until(time.Second), e.of("late"))
		time.Sleep(time.Minute)
		e.want(t, "forgotten", 0, nil)
		e.want(t, "late", 0, nil)
	})
}

func BenchmarkUntil(b *testing.B) {
	w := NewExpirer()
	defer w.Close()
	for i := range 10_000 {
		w.Until(until(time.Hour+time.Duration(i)*time.Second), func(error) {})
	}
	id := until(2 * time.Hour)
	b.ReportAllocs()
	for b.Loop() {
		w.Until(id, func(error) {})()
	}
}
