package bridgetest

import (
	"testing"
	"time"
)

// Patience bounds the wait for what must come over a real socket: a busy machine may
// take seconds.
const Patience = 30 * time.Second

// Eventually waits for something that another goroutine or process does.
func Eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(Patience); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited %v for: %s", Patience, what)
		}
	}
}
