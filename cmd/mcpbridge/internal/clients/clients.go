// Package clients knows how published clients open a connection, and finds out whether a
// server takes that: directly, and behind mcpbridge.
//
// What a client sends stands in clients.json. Only what its published code sends, or a
// published report quotes, goes in.
package clients

import (
	_ "embed" // clients.json
	"encoding/json"
)

// A Client is one that is known.
type Client struct {
	ID      string   `json:"id"`
	Version string   `json:"version"`
	Date    string   `json:"date"`           // when this was recorded, reported, or read in its code, YYYY-MM-DD
	Source  []string `json:"source"`         // URLs of its code, or of reports
	Note    string   `json:"note,omitempty"` // what is special, or inferred

	Header map[string]string `json:"header"` // of each of its messages
	// Discover asks for the era. If it is answered as a modern server does, Modern follows,
	// and otherwise Legacy. Nil means that the client does not ask.
	Discover *Message  `json:"discover,omitempty"`
	Modern   []Message `json:"modern,omitempty"`
	Legacy   []Message `json:"legacy,omitempty"`
}

// A Message is one of an opening.
type Message struct {
	Verb string `json:"verb,omitempty"` // of HTTP; empty means POST
	// Header adds to that of the client; an empty value removes. {session} and {revision}
	// stand for what initialize was answered with; a header with one that is unknown is left
	// out, as clients do.
	Header map[string]string `json:"header,omitempty"`
	Body   json.RawMessage   `json:"body,omitempty"`
	// Optional means that the client goes on if it is refused.
	Optional bool `json:"optional,omitempty"`
}

//go:embed clients.json
var embedded []byte

// All returns the clients that are known, in the order of the file.
func All() []Client {
	var all []Client
	if err := json.Unmarshal(embedded, &all); err != nil {
		panic("clients.json: " + err.Error()) // a test reads it
	}
	return all
}
