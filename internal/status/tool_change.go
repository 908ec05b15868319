package status

import "encoding/json"

// MaxToolChanges bounds the changes of tools of one server that are told of.
const MaxToolChanges = 200

// A ToolChange is the difference between a tool of a server and the definition of it that was
// accepted.
type ToolChange struct {
	Tool string `json:"tool"` // the server's own name
	// Was is the accepted definition, nil for a new tool, or where there was no room for it; Is is
	// that of the server.
	Was json.RawMessage `json:"was,omitempty"`
	Is  json.RawMessage `json:"is"`
	// New says that no definition of it was accepted, and Digest names Is.
	New    bool   `json:"new,omitempty"`
	Digest string `json:"digest"`
}

// An AcceptedTool is a tool that is accepted as it was shown.
type AcceptedTool struct {
	Tool   string `json:"tool"`
	Digest string `json:"digest"`
}
