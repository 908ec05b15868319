package reload

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"
)

// A Reloader makes attempts, one at a time, and keeps the last outcome. Safe for concurrent
// use.
type Reloader struct {
	try  func() Outcome
	log  *slog.Logger
	tell func(Outcome)

	turn   chan struct{} // capacity 1: full during an attempt, and after Close
	closed chan struct{} // closed by Close, before it waits
	last   atomic.Pointer[Outcome]
}

const shuttingDown = "mcpbridge is shutting down"

// New returns a Reloader. try makes one attempt, but for Time and Why of its outcome; tell,
// which may be nil, is told of each.
func New(try func() Outcome, log *slog.Logger, tell func(Outcome)) *Reloader {
	if tell == nil {
		tell = func(Outcome) {}
	}
	return &Reloader{try: try, log: log, tell: tell, turn: make(chan struct{}, 1), closed: make(chan struct{})}
}

// Now makes an attempt, and returns its outcome. It waits for one that is under way: what
// that has read may be older.
func (r *Reloader) Now(why string) Outcome { return r.now(why, "") }

// now is Now for a request from an address.
func (r *Reloader) now(why, from string) Outcome {
	begin := time.Now()
	select {
	case r.turn <- struct{}{}:
	case <-r.closed:
		return Outcome{Time: begin, Why: why, Error: shuttingDown}
	}
	defer func() { <-r.turn }()
	if r.ending() {
		return Outcome{Time: begin, Why: why, Error: shuttingDown}
	}
	o := r.try()
	o.Time, o.Why, o.From = begin.UTC().Truncate(time.Millisecond), why, from
	if !o.OK && r.ending() {
		return o // it was given up
	}
	r.last.Store(&o)
	r.tell(o)
	o.log(r.log)
	return o
}

// Last returns the last outcome; nil if there was no attempt. It is safe to call on nil.
func (r *Reloader) Last() *Outcome {
	if r == nil {
		return nil
	}
	return r.last.Load()
}

// LastJSON returns what JSON is made of for Last; nil if there was no attempt.
func (r *Reloader) LastJSON() any {
	if o := r.Last(); o != nil {
		return o
	}
	return nil // and no typed nil in the interface
}

// Closing is closed when Close begins: an attempt that still reads is to give up.
func (r *Reloader) Closing() <-chan struct{} { return r.closed }

func (r *Reloader) ending() bool {
	select {
	case <-r.closed:
		return true
	default:
		return false
	}
}

// Close has an attempt that is under way give up, or waits for it if it has read all. There
// is none after it. It may be called on nil.
func (r *Reloader) Close() {
	if r != nil {
		close(r.closed)
		r.turn <- struct{}{}
	}
}

// ServeHTTP makes an attempt, and answers with its outcome: 200, or 422 for a configuration
// that can't be used.
func (r *Reloader) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	o := r.now("POST /reload", req.RemoteAddr)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	if !o.OK {
		w.WriteHeader(http.StatusUnprocessableEntity)
	}
	_ = json.NewEncoder(w).Encode(o) // the client has gone if it fails
}
