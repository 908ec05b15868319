package trace

// An OwnObserver is an Observer that is also told of requests of the gateway's own: the
// handshakes of sessions, discovery, and subscriptions. Several requests of clients may wait
// for one of them, and often none does: they belong to none.
type OwnObserver interface {
	Observer
	// BeginOwn is told of a request of the gateway's own, as Begin is. r has its server and
	// method alone. The Record is told of one Exchange, and not of an end.
	BeginOwn(r *Request) Record
}

// Own tells the observers that want it of x, a request of the gateway's own, before it is
// sent. It returns nil if there are none. The caller calls End.
func (o *Observers) Own(x Exchange) *Exchange {
	if !o.Any() {
		return nil
	}
	all := o.all.Load()
	if all == nil {
		return nil // the last one has just left
	}
	r := &Request{Info: Info{Server: x.Server, Method: x.Method}, observers: o, quiet: true}
	r.records = r.few[:0]
	for _, one := range *all {
		if own, ok := one.(OwnObserver); ok {
			if rec := own.BeginOwn(r); rec != nil {
				r.add(rec)
			}
		}
	}
	if len(r.records) == 0 {
		return nil
	}
	return r.Upstream(x)
}
