package auth

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/issuertest"
	"github.com/mcpbridge/mcpbridge/internal/trust/fetch"
)

// A watched issuer is slow, counts the questions about tokens, and may be away.
type watched struct {
	slowly
	asked, now atomic.Int32
	away       atomic.Bool
}

// RoundTrip implements [http.RoundTripper].
func (w *watched) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodPost {
		w.asked.Add(1)
		w.now.Add(1)
		defer w.now.Add(-1)
	}
	if w.away.Load() {
		return nil, http.ErrServerClosed
	}
	return w.slowly.RoundTrip(r)
}

func newWatched(t *testing.T, i *issuertest.Issuer) (*watched, *JWT) {
	w := &watched{slowly: slowly{i, 5 * time.Second}}
	client := fetch.New(fetch.Options{Near: []string{i.URL}})
	client.HTTP().Transport = w
	j, err := NewJWT(JWTOptions{Issuer: i.URL, Client: client, Introspection: &Introspection{"gateway", "secret"}})
	if err != nil {
		t.Fatal(err)
	}
	return w, j
}

// accepts sends a token, and reports whether it was taken, and after how long.
func accepts(t *testing.T, j *JWT, token string) (bool, time.Duration) {
	began := time.Now()
	_, err := j.Authenticate(sending(token), endpoint(t, resource))
	return err == nil, time.Since(began)
}

// A token in use is asked about ahead, once at a time, and never waits for the issuer. While the
// issuer is away it is taken for as long as before; once refused, it is refused at once.
func TestTokenInUseIsAskedAboutAhead(t *testing.T) {
	i := issuertest.New(t)
	i.SetOpaque("t", inspected(nil))
	synctest.Test(t, func(t *testing.T) {
		w, j := newWatched(t, i)
		defer j.Close()
		mustAccept(t, j, "t")
		use := func(d time.Duration) {
			t.Helper()
			for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
				if ok, took := accepts(t, j, "t"); !ok || took != 0 {
					t.Fatalf("a token in use: accepted %v after %v, want at once", ok, took)
				}
			}
		}
		w.asked.Store(0)
		use(5 * time.Minute) // asked each 20 s
		if n := w.asked.Load(); n < 14 || n > 16 {
			t.Errorf("the issuer was asked %d times in 5 minutes, want 15", n)
		}
		time.Sleep(maxInspected + time.Second)
		mustAccept(t, j, "t") // nobody used it: it had to wait
		w.away.Store(true)
		w.asked.Store(0)
		use(maxInspected - 6*time.Second) // the answer took 5
		if n := w.asked.Load(); n < 2 || n > 3 {
			t.Errorf("an issuer that is away was asked %d times about a token, want 2", n)
		}
		time.Sleep(2 * time.Second)
		if ok, _ := accepts(t, j, "t"); ok {
			t.Error("a token was accepted that nobody could be asked about for longer than its time")
		}
		w.away.Store(false)
		mustAccept(t, j, "t")
		i.SetOpaque("t", map[string]any{"active": false})
		use(maxInspected*2/3 - 6*time.Second) // nobody was asked yet
		time.Sleep(2 * time.Second)
		accepts(t, j, "t") // asks
		time.Sleep(6 * time.Second)
		if ok, took := accepts(t, j, "t"); ok || took != 0 {
			t.Errorf("a token that the issuer has refused: accepted %v after %v, want refused at once", ok, took)
		}
	})
}

// What is open goes on while the issuer can't be asked about its token, and ends when it refuses that.
func TestIssuerThatIsAwayEndsNothing(t *testing.T) {
	i := issuertest.New(t)
	i.SetOpaque("t", inspected(nil))
	synctest.Test(t, func(t *testing.T) {
		w, j := newWatched(t, i)
		defer j.Close()
		id := mustAccept(t, j, "t")
		w.away.Store(true)
		time.Sleep(maxInspected + time.Second)
		w.asked.Store(0)
		if err := id.Verify(t.Context()); err != nil || w.asked.Load() != 1 {
			t.Errorf("Verify() = %v after %d questions, want nothing refused by an issuer that was asked", err, w.asked.Load())
		}
		w.away.Store(false)
		i.SetOpaque("t", map[string]any{"active": false})
		if err := id.Verify(t.Context()); err == nil {
			t.Error("Verify() = nil for a token that the issuer has refused")
		}
	})
}

// However many tokens are in use, the most places for questions are left to new ones, and
// nothing is left running after Close.
func TestAheadIsBounded(t *testing.T) {
	i := issuertest.New(t)
	const tokens = 3 * maxAhead
	for n := range tokens {
		i.SetOpaque(fmt.Sprint("t", n), inspected(nil))
	}
	synctest.Test(t, func(t *testing.T) {
		w, j := newWatched(t, i)
		for n := range tokens {
			w.takes = 0
			mustAccept(t, j, fmt.Sprint("t", n))
		}
		w.takes = 5 * time.Second
		time.Sleep(maxInspected*2/3 + time.Second)
		for range 2 {
			for n := range tokens {
				if ok, took := accepts(t, j, fmt.Sprint("t", n)); !ok || took != 0 {
					t.Errorf("token %d: accepted %v after %v", n, ok, took)
				}
			}
		}
		if synctest.Wait(); w.now.Load() != maxAhead {
			t.Errorf("the issuer is asked about %d tokens at a time, want %d", w.now.Load(), maxAhead)
		}
		j.Close()
		if n := w.now.Load(); n != 0 {
			t.Errorf("%d questions are left after Close", n)
		}
	})
}
