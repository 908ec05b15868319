package back

import "time"

const (
	firstRest = 200 * time.Millisecond
	maxRest   = 5 * time.Second
	// maxRestWait is how much rest a request waits for; it fails over more. It is
	// also how long a request waits for a server that has made a habit of failing.
	maxRestWait = time.Second
	// stable is how long a session lives before its loss is no sign of a server
	// that can't stand.
	stable = 10 * time.Second
)

// A rest keeps a server that fails from being started again and again, and those
// who ask for it from waiting again and again.
type rest struct {
	noted time.Time // when it last failed
	until time.Time
	pause time.Duration // zero after the first failure: one is no habit
	err   error
	trial bool // an attempt is under way for all who ask
}

// allScopes is the scope of failures that are the server's, whoever asks: it can't
// be reached, started or waited for.
const allScopes = ""

// restLocked notes that an attempt failed which began at a time. After the first
// failure in a while the server gets no rest; attempts that began before it was
// known to fail tell nothing more.
func (p *pool) restLocked(key string, begun time.Time, err error) {
	r, ok := p.rests.Get(key)
	switch {
	case !ok || begun.Sub(r.until) > stable:
		r = &rest{}
		p.rests.Add(key, r)
	case begun.Before(r.noted):
		r.err, r.trial = err, false
		return
	default:
		r.pause = min(max(2*r.pause, firstRest), maxRest)
	}
	r.noted, r.trial = time.Now(), false
	r.until, r.err = r.noted.Add(r.pause), err
}
