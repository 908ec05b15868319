package trace

import (
	"crypto/rand"
	"slices"
	"sync"
	"sync/atomic"
)

// An Observer is told of requests. Its methods, and those of its records, are quick, never
// wait for anybody, and are safe for concurrent use.
type Observer interface {
	// Begin is told of a request that has arrived. The Record returned is told of the rest
	// of it; nil if the observer does not want this request.
	Begin(r *Request) Record
}

// A Record is what one observer has of one request. It must keep no bytes that it is given.
type Record interface {
	// Upstream is told of a request before that is sent to a server. It may set x.Context.
	Upstream(x *Exchange)
	// Answered is told of the end of x. It may come after End.
	Answered(x *Exchange)
	// Event is told what happened to the request.
	Event(e Event)
	// Follows is told of the request to which this one brings input, before any event.
	Follows(former Record)
	// End is told that the response was written, or that there will be none.
	End(r *Request)
}

// A BodyRecord is a Record that wants the messages, too.
type BodyRecord interface {
	Record
	// Body is told of one message. x is nil for a message from or to the client.
	Body(x *Exchange, d Direction, text []byte)
}

// A Quiet Record is told of exchanges before they are sent, and of nothing else unless the
// request has other records.
type Quiet interface {
	Record
	Quiet()
}

// A Direction is whether the gateway has received or sent a message.
type Direction uint8

// The directions.
const (
	Received Direction = iota
	Sent
)

// Observers are who observes the requests of one gateway. A nil one observes nothing. Its
// methods are safe for concurrent use.
type Observers struct {
	all  atomic.Pointer[[]Observer] // nil while nobody observes
	last atomic.Uint64              // the number of the last request

	prefix string     // of the ids of requests
	mu     sync.Mutex // is held while all is replaced
}

// New returns Observers. Further ones may be added.
func New(all ...Observer) *Observers {
	o := &Observers{prefix: rand.Text()[:6] + "-"}
	for _, one := range all {
		o.Add(one)
	}
	return o
}

// Add has one told of the requests that begin from then on, until remove is called.
func (o *Observers) Add(one Observer) (remove func()) {
	o.replace(func(all []Observer) []Observer { return append(all, one) })
	return sync.OnceFunc(func() {
		o.replace(func(all []Observer) []Observer {
			i := slices.Index(all, one)
			return slices.Delete(all, i, i+1)
		})
	})
}

func (o *Observers) replace(change func([]Observer) []Observer) {
	o.mu.Lock()
	defer o.mu.Unlock()
	var all []Observer
	if p := o.all.Load(); p != nil {
		all = slices.Clone(*p)
	}
	if all = change(all); len(all) == 0 {
		o.all.Store(nil)
		return
	}
	o.all.Store(&all)
}

// Any reports whether anybody observes. It is one atomic load.
func (o *Observers) Any() bool { return o != nil && o.all.Load() != nil }

// Arrive returns how messages of a client arrive; nil while nobody observes.
func (o *Observers) Arrive(a Arrival) *Arrival {
	if !o.Any() {
		return nil
	}
	r := &room{arrival: a}
	r.arrival.room = r
	return &r.arrival
}

// Begin tells the observers of a request that has arrived. It returns nil if none wants it.
// Whoever gets a Request calls [Request.End].
func (o *Observers) Begin(i Info) *Request {
	if !o.Any() {
		return nil
	}
	all := o.all.Load()
	if all == nil {
		return nil // the last one has just left
	}
	r := i.Arrival.take()
	r.Info, r.number, r.observers = i, o.last.Add(1), o
	r.records, r.quiet = r.few[:0], true
	for _, one := range *all {
		if rec := one.Begin(r); rec != nil {
			r.add(rec)
		}
	}
	if len(r.records) == 0 {
		return nil
	}
	r.Named = nil // whoever wants the name has asked
	if a := i.Arrival; a != nil && a.room != nil && r == &a.room.request {
		a.room.begun.Store(true)
	}
	return r
}

// add has a record told of the request.
func (r *Request) add(rec Record) {
	_, quiet := rec.(Quiet)
	_, bodies := rec.(BodyRecord)
	if r.quiet = r.quiet && quiet; !r.quiet {
		r.Began()
	}
	r.bodies = r.bodies || bodies
	r.records = append(r.records, rec)
}
