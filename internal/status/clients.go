package status

import (
	"cmp"
	"slices"
	"time"
)

// Clients are those that are there at the moment: with a session, a connection or a listen
// stream. A modern client without a stream is known only while its requests pass.
type Clients struct {
	List []Client `json:"list"`
	Left int      `json:"left,omitempty"` // not listed
}

// A Client is one session or connection of a legacy client, or the listen streams of the
// modern clients of one name and principal: nothing tells these apart.
type Client struct {
	Server    string    `json:"server"`
	Era       string    `json:"era"`
	Revision  string    `json:"revision,omitempty"`
	Name      string    `json:"name,omitempty"` // its own name and version
	Principal string    `json:"principal,omitempty"`
	Session   string    `json:"session,omitempty"`
	Transport string    `json:"transport,omitempty"` // http, connection or stream
	Since     time.Time `json:"since,omitzero"`
	Streams   int       `json:"streams,omitempty"` // open listen streams
	Topics    int       `json:"topics,omitempty"`  // that it follows
	InFlight  int       `json:"in_flight,omitempty"`
}

// Add adds a client, or counts it if there are too many.
func (c *Clients) Add(one Client) {
	if len(c.List) < MaxClients {
		c.List = append(c.List, one)
		return
	}
	c.Left++
}

// Sort puts the clients in an order that stays.
func (c *Clients) Sort() {
	slices.SortFunc(c.List, func(a, b Client) int {
		return cmp.Or(cmp.Compare(a.Server, b.Server), cmp.Compare(a.Era, b.Era), cmp.Compare(a.Name, b.Name),
			cmp.Compare(a.Principal, b.Principal), cmp.Compare(a.Session, b.Session))
	})
}
