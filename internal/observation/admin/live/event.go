package live

import "time"

// An Event is something that passed: a line for people. The rest of a call is in its [Call].
type Event struct {
	Seq  uint64    `json:"seq"`
	Time time.Time `json:"time"`
	// Type is "call" for a request that has ended, "step" for what happened to one that
	// goes on, and "change" for a change that a server has reported.
	Type   string `json:"type"`
	Server string `json:"server"`
	// Member is the member of a group that has served the request, and Own how it calls the
	// tool, prompt or resource. Server is the group then, and Name how clients call it.
	Member string `json:"member,omitempty"`
	Own    string `json:"own,omitempty"`
	Method string `json:"method"`         // of a change: its kind
	Name   string `json:"name,omitempty"` // the tool, prompt or resource

	// Call is the id of the call, and First that of the one to which it brings input, or to which
	// that does: to a person they are one call.
	Call      string `json:"call,omitempty"`
	First     string `json:"first,omitempty"`
	Client    string `json:"client,omitempty"` // its own name and version
	Era       string `json:"era,omitempty"`
	Principal string `json:"principal,omitempty"`
	Session   string `json:"session,omitempty"`
	// ServerEra is the server's; empty if it has not been asked.
	ServerEra string `json:"server_era,omitempty"`

	// Step says what happened, Detail more of it.
	Step   string `json:"step,omitempty"`
	Detail string `json:"detail,omitempty"`

	// Outcome is how a call ended: ok, tool_error, error, refused, cancelled or failed.
	Outcome string  `json:"outcome,omitempty"`
	Error   string  `json:"error,omitempty"`
	Millis  float64 `json:"ms,omitempty"`

	// Followers are those to whom a change was offered.
	Followers int `json:"followers,omitempty"`
}

// A Call is one request of a client, with what was sent to the server for it.
type Call struct {
	ID     string    `json:"id"`
	Time   time.Time `json:"time"`
	Server string    `json:"server"`
	Member string    `json:"member,omitempty"` // see Event, as the next one
	Own    string    `json:"own,omitempty"`
	Method string    `json:"method"`
	Name   string    `json:"name,omitempty"`
	Caller

	// Outcome is empty while the call goes on.
	Outcome  string  `json:"outcome,omitempty"`
	Error    string  `json:"error,omitempty"`
	Millis   float64 `json:"ms,omitempty"`
	Received int64   `json:"bytes_received"`
	Sent     int64   `json:"bytes_sent"`

	Parts
	// Bodies says that messages are kept at all.
	Bodies bool `json:"bodies"`
	// Former is the call to which this one brings input, and Next the one that brings
	// input to this one.
	Former string `json:"former,omitempty"`
	Next   string `json:"next,omitempty"`
}

// A Caller is who sent a call.
type Caller struct {
	Client    string `json:"client,omitempty"`
	Era       string `json:"era"`
	Revision  string `json:"revision,omitempty"`
	Principal string `json:"principal,omitempty"`
	Session   string `json:"session,omitempty"`
	Protocol  string `json:"protocol,omitempty"`
}

// Parts are what a call consists of.
type Parts struct {
	Exchanges []Exchange `json:"exchanges"`
	Steps     []Step     `json:"steps"`
	Messages  []Message  `json:"messages"`
	Heads     []Head     `json:"heads"`
	// Left counts exchanges, steps, messages and headers that are not kept.
	Left int `json:"left,omitempty"`
}

// An Exchange is one request to a server.
type Exchange struct {
	Method   string  `json:"method"`
	Era      string  `json:"era"`
	Revision string  `json:"revision,omitempty"`
	At       float64 `json:"at_ms"` // since the call's beginning
	Millis   float64 `json:"ms,omitempty"`
	Error    string  `json:"error,omitempty"`
	Open     bool    `json:"open,omitempty"` // not answered yet
}

// A Step is something that happened to a call.
type Step struct {
	At     float64 `json:"at_ms"`
	Step   string  `json:"step"`
	Detail string  `json:"detail,omitempty"`
}

// A Message is one of a client, or of a server, without secrets of the configuration.
type Message struct {
	At float64 `json:"at_ms"`
	// From and To are "client", "mcpbridge" or "server".
	From string `json:"from"`
	To   string `json:"to"`
	Text string `json:"text"`
	Size int    `json:"size"` // in bytes; Text may be shorter
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
