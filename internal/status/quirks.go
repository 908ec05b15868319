package status

// Quirks are deviations from the protocol that were met since a server is served.
type Quirks struct {
	List []Quirk `json:"list"`
	Left int     `json:"left,omitempty"` // not listed
}

// A Quirk is a deviation of one client of a server, or of the server.
type Quirk struct {
	Server string `json:"server"`
	Name   string `json:"name"`
	Rule   string `json:"rule"`
	Side   string `json:"side"`             // client or server
	Client string `json:"client,omitempty"` // its name and version
	Seen   string `json:"seen"`             // what it is
	Count  int64  `json:"count"`
}

// Add adds a quirk, or counts it if there are too many.
func (q *Quirks) Add(one Quirk) {
	if len(q.List) < MaxQuirks {
		q.List = append(q.List, one)
		return
	}
	q.Left++
}
