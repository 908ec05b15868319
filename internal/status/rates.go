package status

// MaxRatedClients bounds the clients that have a Rate of their own; all others of a server are one.
const MaxRatedClients = 256

// Rates are how many requests there were, and how long they took. Requests for listen streams are
// not among them.
type Rates struct {
	Servers []Rate `json:"servers"` // in order of their names
	Clients []Rate `json:"clients"` // those of one server, if it was asked for: most requests first
}

// A Rate is that of a server, or of a client of a server.
type Rate struct {
	Server string `json:"server"`
	Client string `json:"client,omitempty"` // its name and version
	Others bool   `json:"others,omitempty"` // all clients that have no Rate of their own

	Minute Window `json:"minute"` // the last one, and so on
	Hour   Window `json:"hour"`
	Day    Window `json:"day"`
}

// A Window is a time up to now, which is divided into slots. A slot is as long as Seconds, but for
// the last one, which goes on.
type Window struct {
	Seconds float64 `json:"seconds"`
	Calls   uint64  `json:"calls"`
	Errors  uint64  `json:"errors"` // calls that failed or were refused
	// Median and Late are the times that half of the calls, and 99 of 100, have taken at most, in
	// milliseconds, to about a quarter; zero without calls.
	Median float64 `json:"p50"`
	Late   float64 `json:"p99"`
	Slots  []Slot  `json:"slots"` // the oldest first
}

// A Slot is a part of a Window: calls, errors, and milliseconds as in that.
type Slot [4]float64
