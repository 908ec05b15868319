package upstream

import (
	"sync"
	"time"
)

const (
	// quickFailure is the time below which a failed attempt to connect does not open the
	// breaker.
	quickFailure = time.Second
	maxBreak     = 5 * time.Second
)

// A Breaker keeps requests from waiting, one after the other, for a server that takes long
// to refuse connections. After a slow failure it refuses requests for as long as the
// failure took, 5 s at most; the next request tries again. Safe for concurrent use.
type Breaker struct {
	// mu guards the fields below.
	mu    sync.Mutex
	until time.Time // until then it is open
	err   error     // the failure
}

// Open returns the failure if the breaker is open, or nil.
func (k *Breaker) Open() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.err != nil && time.Now().Before(k.until) {
		return k.err
	}
	return nil
}

// Failed records a failed attempt that began at the given time.
func (k *Breaker) Failed(began time.Time, err error) {
	took := time.Since(began)
	if took < quickFailure {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.until, k.err = time.Now().Add(min(took, maxBreak)), err
}

// Succeeded records that the server accepted a connection.
func (k *Breaker) Succeeded() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.err = nil
}
