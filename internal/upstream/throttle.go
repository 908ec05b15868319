package upstream

import "time"

const (
	// throttleMessage is the cost of parsing a message, in bytes.
	throttleMessage = 256
	// throttlePause is how long reading pauses at a time. It is short, so that reading
	// continues soon when a request begins to wait.
	throttlePause = 10 * time.Millisecond
)

// An allowance is a rate, in bytes per second, at which unneeded messages are read, and a burst, in bytes.
type allowance struct{ rate, burst int }

var (
	// idleAllowance is that while no request waits for a response.
	idleAllowance = allowance{1 << 20, 4 << 20}
	// busyAllowance is that while one does. A call may write a hundred thousand log messages that
	// nobody has asked for, and its result comes behind them.
	busyAllowance = allowance{64 << 20, 32 << 20}
)

// A Throttle bounds the rate at which a reader reads unneeded messages from a server, so
// that a flood takes no more than a few percent of a core, or in the long run a tenth while a
// request waits, whose response may come behind it. Needed messages are not counted. The zero
// value is ready to use, by the reader's goroutine only.
type Throttle struct {
	// Busy reports whether a request waits for a response. Nil means always.
	Busy func() bool
	// Done ends a pause when it is closed; may be nil.
	Done <-chan struct{}

	idle, busy debt
}

// A debt is how much of an allowance is used, in bytes.
type debt struct {
	bytes int
	since time.Time // when it was computed
}

// Never is the Busy of a stream without responses.
func Never() bool { return false }

// Message counts an unneeded message of n bytes, and waits until the next one may be
// read.
func (r *Throttle) Message(n int) { r.Bytes(n + throttleMessage) }

// Bytes is Message for bytes that are not a message.
func (r *Throttle) Bytes(n int) {
	d, most := r.current()
	for d.bytes += n; d.bytes > most; d, most = r.current() {
		t := time.NewTimer(throttlePause)
		select {
		case <-t.C:
		case <-r.Done:
			t.Stop()
			return
		}
	}
}

// current returns the debt that counts now, and how large it may be.
func (r *Throttle) current() (d *debt, most int) {
	if r.Busy == nil || r.Busy() {
		r.busy.payOff(busyAllowance)
		return &r.busy, busyAllowance.burst
	}
	r.idle.payOff(idleAllowance)
	return &r.idle, idleAllowance.burst
}

// payOff reduces the debt by the bytes allowed for the elapsed time.
func (d *debt) payOff(by allowance) {
	now := time.Now()
	passed := min(now.Sub(d.since), time.Minute)
	d.since = now
	d.bytes = max(d.bytes-int(passed.Seconds()*float64(by.rate)), 0)
}
