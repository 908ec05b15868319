package trace

import "time"

// A Kind is what happened to a request.
type Kind uint8

// The kinds of events, and what the detail of each is.
const (
	InputRequired Kind = iota // the server requested input: the method
	InputAnswered             // the server has the input: the method
	SessionOpened             // a session with the server was opened for the request
	SessionLost               // the server has lost the session: why
	Repeated                  // the request is sent again: why
	Parked                    // the client got the input requests, and the call waits for its retry
	Resumed                   // the retry is there
)

// names has the names of kinds, as traces have them.
var names = [...]string{
	InputRequired: "input_required", InputAnswered: "input_answered",
	SessionOpened: "session_opened", SessionLost: "session_lost",
	Repeated: "repeated", Parked: "parked", Resumed: "resumed",
}

func (k Kind) String() string { return names[k] }

// An Event is something that happened to a request.
type Event struct {
	Kind   Kind
	Detail string
	At     time.Time
}
