package back

import (
	"sync"
	"time"
)

const (
	// quickFailure is how soon an attempt to connect may fail without harm to those
	// who try after it.
	quickFailure = time.Second
	maxBreak     = 5 * time.Second
)

// A breaker keeps requests from waiting, one after the other, for a server that
// takes long to take no connection. It opens for as long as it took to find out,
// 5 s at most; whoever comes then tries again. Safe for concurrent use.
type breaker struct {
	// mu guards the fields below.
	mu    sync.Mutex
	until time.Time // it is open
	err   error     // why
}

// open returns why nothing is tried at the moment, or nil.
func (k *breaker) open() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.err != nil && time.Now().Before(k.until) {
		return k.err
	}
	return nil
}

// failed notes that an attempt failed which began at a time.
func (k *breaker) failed(began time.Time, err error) {
	took := time.Since(began)
	if took < quickFailure {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.until, k.err = time.Now().Add(min(took, maxBreak)), err
}

// succeeded notes that the server took a connection.
func (k *breaker) succeeded() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.err = nil
}
