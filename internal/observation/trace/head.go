package trace

// A Head is the header of one HTTP message. Its fields must be neither kept nor changed.
type Head struct {
	Direction Direction
	Status    int                 // of a response; zero for a request
	Fields    map[string][]string // by canonical names
}

// A HeadRecord is a BodyRecord that wants the headers of HTTP, too. That of a client's request is
// in the [Arrival].
type HeadRecord interface {
	BodyRecord
	// Head is told of the header of one message. x is nil for a message to the client.
	Head(x *Exchange, h Head)
}

// Head tells of the header of a message from or to the server.
func (x *Exchange) Head(h Head) {
	if x.Bodies() {
		x.request.head(x, h)
	}
}

// Head tells of the header of the response to the client.
func (r *Request) Head(h Head) {
	if r.Bodies() {
		r.head(nil, h)
	}
}

func (r *Request) head(x *Exchange, h Head) {
	for _, rec := range r.records {
		if b, ok := rec.(HeadRecord); ok {
			b.Head(x, h)
		}
	}
}

// Replied tells the first request that has arrived with a of the header of its response. Zero for
// the status says that there is none.
func (a *Arrival) Replied(status int, fields map[string][]string) {
	if a != nil && a.room != nil && status != 0 && a.room.begun.Load() {
		a.room.request.Head(Head{Sent, status, fields})
	}
}
