package transport

import "time"

const (
	// throttleIdle and throttleBusy are the rates, in bytes per second, at which unneeded
	// messages are read: while no request waits for a response, and while one does.
	throttleIdle = 1 << 20
	throttleBusy = 32 << 20
	// throttleSaved is the burst, in bytes.
	throttleSaved = 4 << 20
	// throttleMessage is the cost of parsing a message, in bytes.
	throttleMessage = 256
	// throttlePause is how long reading pauses at a time. It is short, so that reading
	// continues soon when a request begins to wait.
	throttlePause = 10 * time.Millisecond
)

// A Throttle bounds the rate at which a reader reads unneeded messages from a server, so
// that a flood takes no more than a few percent of a core, or a tenth while a request
// waits, whose response may come behind it. Needed messages are not
// counted. The zero value is ready to use, by the reader's goroutine only.
type Throttle struct {
	// Busy reports whether a request waits for a response. Nil means always.
	Busy func() bool
	// Done ends a pause when it is closed; may be nil.
	Done <-chan struct{}

	debt  int       // bytes, of which throttleSaved are free
	since time.Time // when debt was computed
}

// Never is the Busy of a stream without responses.
func Never() bool { return false }

// Message counts an unneeded message of n bytes, and waits until the next one may be
// read.
func (r *Throttle) Message(n int) { r.Bytes(n + throttleMessage) }

// Bytes is Message for bytes that are not a message.
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

// payOff reduces the debt by the bytes allowed for the elapsed time.
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
