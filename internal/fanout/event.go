package fanout

import (
	"cmp"
	"encoding/json"
	"fmt"
)

// A Kind is what sort of change a topic is about. The zero Kind is invalid.
type Kind uint8

// The four kinds of change that both eras can report.
const (
	ToolsListChanged Kind = iota + 1
	PromptsListChanged
	ResourcesListChanged
	ResourceUpdated // the only kind that has a URI
)

// kindNames are the stable spelling of kinds, as replicas exchange them. They
// must never change, and are not for the wire of the protocol.
var kindNames = [...]string{
	ToolsListChanged:     "toolsListChanged",
	PromptsListChanged:   "promptsListChanged",
	ResourcesListChanged: "resourcesListChanged",
	ResourceUpdated:      "resourceUpdated",
}

// Valid reports whether k is one of the four kinds.
func (k Kind) Valid() bool { return k > 0 && int(k) < len(kindNames) }

// String returns the stable name of k.
func (k Kind) String() string {
	if !k.Valid() {
		return fmt.Sprintf("Kind(%d)", uint8(k))
	}
	return kindNames[k]
}

// MarshalText returns the stable name of k, or an error if k is invalid.
func (k Kind) MarshalText() ([]byte, error) {
	if !k.Valid() {
		return nil, fmt.Errorf("fanout: encoding invalid %v", k)
	}
	return []byte(kindNames[k]), nil
}

// UnmarshalText sets k to the kind of that name. A name that is not known, as
// one from a newer replica may be, is an error.
func (k *Kind) UnmarshalText(text []byte) error {
	for i, name := range kindNames {
		if i > 0 && name == string(text) {
			*k = Kind(i)
			return nil
		}
	}
	return fmt.Errorf("fanout: unknown kind %q", text)
}

// A Topic is what a subscription is about. Topics are compared with ==; URIs
// match byte for byte.
//
// Its JSON form is stable, for buses between replicas. Scope and URI must be
// UTF-8, as all that was read from JSON is.
type Topic struct {
	// Scope is the server's name with a digest of the profile: a string that
	// means the same on every replica, and that two principals never share
	// unless the server's sessions are shared.
	Scope string `json:"scope"`
	Kind  Kind   `json:"kind"`
	// URI is the resource subscribed to, for ResourceUpdated only.
	URI string `json:"uri,omitempty"`
}

// An Event says that a topic changed. Its JSON form is stable, for buses
// between replicas; what meta looks like there may differ in spelling, not in
// meaning.
type Event struct {
	Topic Topic `json:"topic"`
	// URI is what the sender named: Topic.URI, or a sub-resource of it. Empty
	// means Topic.URI.
	URI string `json:"uri,omitempty"`
	// Meta is the sender's own foreign _meta object, nil if there was none. It is
	// shared by everyone who gets the event: nobody may change its bytes, and
	// they must not belong to a buffer that is used again.
	Meta json.RawMessage `json:"meta,omitempty"`
}

// named returns the URI that the event is about.
func (e Event) named() string { return cmp.Or(e.URI, e.Topic.URI) }

// nested reports whether the event is about a sub-resource of its topic's URI.
func (e Event) nested() bool { return e.named() != e.Topic.URI }
