package status

import "time"

// MaxClaims bounds the claims of a Replicas.
const MaxClaims = 100

// Replicas is what a gateway has heard of others that serve the same clients.
type Replicas struct {
	Self    string    `json:"self"` // instance
	Members []Replica `json:"members"`
	// Away is since when the engine is away.
	Away time.Time `json:"away,omitzero"`
	// Claims are profiles that this replica watches, of which Left more are not listed.
	Claims     []Claim `json:"claims"`
	ClaimsLeft int     `json:"claims_left,omitempty"`
}

// A Replica is one that lives.
type Replica struct {
	Instance string `json:"instance"`
	Addr     string `json:"addr"`
	Version  string `json:"version,omitempty"`
	Draining bool   `json:"draining,omitempty"`
}

// A Claim says which replica holds a profile.
type Claim struct {
	Key    string `json:"key"`    // a digest, the same in all replicas
	Holder string `json:"holder"` // instance; empty if it is nobody's
	Epoch  uint64 `json:"epoch"`
}
