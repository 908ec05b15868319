package pool

import "time"

const (
	firstPause = 200 * time.Millisecond
	maxPause   = 5 * time.Second
	// MaxWait is how much of a pause a request waits for; it fails over more. It is also
	// how long a request waits for a server that keeps failing.
	MaxWait = time.Second
	// stable is how long a session lives before its loss is no sign of a server that
	// keeps failing.
	stable = 10 * time.Second
)

// A pause keeps a server that fails from being started again and again, and those
// who ask for it from waiting again and again.
type pause struct {
	noted  time.Time // when it last failed
	until  time.Time
	length time.Duration // zero after the first failure, which may be the only one
	err    error
	trial  bool // an attempt is under way for all who ask
}

// allScopes is the scope of what is the server's, whoever asks: that it can't be reached,
// started or waited for.
const allScopes = ""

// pauseLocked notes that an attempt failed which began at a time. There is no pause after
// the first failure in a while; attempts that began before the server was known to fail
// tell nothing more.
func (p *Pool) pauseLocked(key string, begun time.Time, err error) {
	a, ok := p.pauses.Get(key)
	switch {
	case !ok || begun.Sub(a.until) > stable:
		a = &pause{}
		p.pauses.Add(key, a)
	case begun.Before(a.noted):
		a.err, a.trial = err, false
		return
	default:
		a.length = min(max(2*a.length, firstPause), maxPause)
	}
	a.noted, a.trial = time.Now(), false
	a.until, a.err = a.noted.Add(a.length), err
}
