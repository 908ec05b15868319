package transport

import "time"

const (
	// throttleIdle and throttleBusy are how many bytes a second are read that nobody needs:
	// while nobody waits for an answer, and while somebody does.
	throttleIdle = 1 << 20
	throttleBusy = 8 << 20
	// throttleSaved is how many may come at once, in bytes.
	throttleSaved = 4 << 20
	// throttleMessage is what a message takes beside its bytes, in bytes: it was parsed.
	throttleMessage = 256
	// throttlePause is how long reading pauses at a time, so that it goes on soon when
	// somebody begins to wait.
	throttlePause = 10 * time.Millisecond
)

// A Throttle bounds how fast a reader takes from a server what nobody needs: a flood must
// not cost more than a few percent of a core. What is needed costs nothing. The zero
// value is ready to use, by the reader's goroutine alone.
type Throttle struct {
	// Busy reports whether somebody waits for an answer. Nil means always.
	Busy func() bool
	// Done ends a pause when it is closed; nil if nothing does, but the pause's end.
	Done <-chan struct{}

	debt  int       // bytes, of which throttleSaved are free
	since time.Time // when debt was worked out
}

// Never is the Busy of a stream on which no answer comes.
func Never() bool { return false }

// Message counts a message of n bytes that nobody needed. It returns when the next may
// be read.
func (r *Throttle) Message(n int) { r.Bytes(n + throttleMessage) }

// Bytes is Message for what is no message.
func (r *Throttle) Bytes(n int) {
	r.payOff()
	for r.debt += n; r.debt > throttleSaved; r.payOff() {
		t := time.NewTimer(throttlePause)
		select {
		case <-t.C:
		case <-r.Done:
			t.Stop()
			return
		}
	}
}

// payOff takes off the debt what the time that has passed was good for.
func (r *Throttle) payOff() {
	rate := throttleIdle
	if r.Busy == nil || r.Busy() {
		rate = throttleBusy
	}
	now := time.Now()
	passed := min(now.Sub(r.since), time.Minute)
	r.since = now
	r.debt = max(r.debt-int(passed.Seconds()*float64(rate)), 0)
}
