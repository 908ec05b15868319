package status

import "encoding/json"

// MaxLimits bounds the limits that a ServerRoom tells of.
const MaxLimits = 100

// A ServerRoom is a server, as it is known without asking it. No secret of the configuration is
// in it.
type ServerRoom struct {
	Server

	// Reached is its command, or its URL without values of the query. Dir is the working directory
	// of a command. Env are the names of its environment variables, and Headers those of what is
	// sent with each request.
	Reached string   `json:"reached"`
	Dir     string   `json:"dir,omitempty"`
	Env     []string `json:"env,omitempty"`
	Headers []string `json:"headers,omitempty"`
	// Credentials says in a few words with which it is asked; empty for those of Headers, or none.
	Credentials string `json:"credentials,omitempty"`

	Endpoint  string    `json:"endpoint"`            // its URL for clients
	Proof     bool      `json:"proof"`               // its clients have to prove who they are
	Snippets  []Snippet `json:"snippets"`            // for files of hosts
	Pin       string    `json:"pin,omitempty"`       // warn or refuse; empty for off
	Isolation string    `json:"isolation,omitempty"` // whose requests share a session with it

	// Info is what it says of itself, an object with name and version, and Instructions what it
	// tells models; nil and empty as long as that is not known.
	Info         json.RawMessage `json:"info,omitempty"`
	Instructions string          `json:"instructions,omitempty"`
	Capabilities json.RawMessage `json:"capabilities,omitempty"`

	Quirks []Quirk `json:"quirks"` // that were met of it and of its clients
	Limits []Hit   `json:"limits"` // that were met since it is served

	Lines bool `json:"lines"` // its standard error is kept
	// Can are the words of what can be done here: restart, login and logout.
	Can []string `json:"can"`
}

// A Hit is a limit that was met.
type Hit struct {
	Limit string `json:"limit"` // its name in metrics
	Count uint64 `json:"count"`
}

// A Snippet is what the configuration file of a host has for a server.
type Snippet struct {
	Host  string   `json:"host"`  // in commands
	Title string   `json:"title"` // for display
	Files []string `json:"files"` // where it may be, the project's first
	Text  string   `json:"text"`
}
