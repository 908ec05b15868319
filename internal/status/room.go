package status

import "time"

// MaxRoomNames bounds the names of one member in a Room.
const MaxRoomNames = 1000

// A Room is a group of servers, as it is known without asking them.
type Room struct {
	Name     string `json:"name"`
	State    string `json:"state"`              // as of a Server
	Endpoint string `json:"endpoint,omitempty"` // its URL for clients, as far as it is known

	// How it is configured: Prefix is always or never, OnMissing is leave_out or fail, and the
	// others are as in the configuration.
	Prefix        string `json:"prefix"`
	NameMax       int    `json:"name_max"`
	OnMissing     string `json:"on_missing"`
	Patience      string `json:"patience"`
	StartPatience string `json:"start_patience"`

	Members []RoomMember `json:"members"` // in the order of the lists
}

// A RoomMember is a server of a group, and what it gives.
type RoomMember struct {
	Name   string `json:"name"`
	Prefix string `json:"prefix,omitempty"` // of its names, without the underscores; empty for none
	State  string `json:"state"`            // as of a Server, or gone for one that is not served
	Error  string `json:"error,omitempty"`  // why it is down
	// Since is when the state became what it is; zero for a server that was never reached. Failed
	// is when it was last tried in vain.
	Since    time.Time `json:"since,omitzero"`
	Failed   time.Time `json:"failed,omitzero"`
	Era      string    `json:"era"`
	Revision string    `json:"revision,omitempty"`

	Tools     Given `json:"tools"`
	Prompts   Given `json:"prompts"`
	Resources Given `json:"resources"`
	Templates Given `json:"templates"`
	// Names are what it gives and what of it is hidden, of which Left more are not listed.
	Names []RoomName `json:"names"`
	Left  int        `json:"left,omitempty"`
}

// Given is what is known of one list of a member: as the last client got it that has listed the
// group, which a policy may keep from some.
type Given struct {
	Known  bool `json:"known"`            // somebody has listed it
	Shown  int  `json:"shown"`            // things that clients of the group see
	Hidden int  `json:"hidden,omitempty"` // those that they don't
	More   bool `json:"more,omitempty"`   // there are further pages, of which nothing is known
}

// A RoomName is a tool, prompt, resource or template of a member.
type RoomName struct {
	Kind string `json:"kind"`
	Name string `json:"name,omitempty"` // by which clients of the group see it; empty for hidden
	Own  string `json:"own"`            // the server's own name
	Cut  bool   `json:"cut,omitempty"`  // Name is cut, and ends in a digest
	Why  string `json:"why,omitempty"`  // it is hidden
}
