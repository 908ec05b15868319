package fanout

import (
	"cmp"
	"encoding/json"
	"fmt"
)

// A Kind is the kind of change that a topic is about. The zero Kind is invalid.
type Kind uint8

// The four kinds of change that both eras can report, and one that a legacy session upstream has.
const (
	ToolsListChanged Kind = iota + 1
	PromptsListChanged
	ResourcesListChanged
	ResourceUpdated // the only kind that has a URI
	// StateLost says that the server may have lost what it had of a client: its session was
	// lost, and there is another. The URI of an event names the server, if there are several.
	// An event with a Meta is something else that the session has told outside of calls: see
	// IsMessage.
	StateLost
)

// LeftOut is the URI of an event of StateLost that stands for log messages that a [Mailbox] had
// no room for.
const LeftOut = " "

// kindNames are the stable names of kinds that replicas exchange. They must never change.
// MCP messages do not contain them.
var kindNames = [...]string{
	ToolsListChanged:     "toolsListChanged",
	PromptsListChanged:   "promptsListChanged",
	ResourcesListChanged: "resourcesListChanged",
	ResourceUpdated:      "resourceUpdated",
	StateLost:            "stateLost",
}

// Valid reports whether k is one of the kinds.
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

// UnmarshalText sets k to the kind of that name. It returns an error for an unknown name,
// which a newer replica may send.
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
// Its JSON form is stable, for buses between replicas. Scope and URI must be valid UTF-8.
type Topic struct {
	// Scope is the server's name with a digest of the profile. It means the same on every
	// replica. Two principals have different scopes unless they share the server's
	// sessions.
	Scope string `json:"scope"`
	Kind  Kind   `json:"kind"`
	// URI is the resource subscribed to, for ResourceUpdated only.
	URI string `json:"uri,omitempty"`
}

// An Event reports that a topic changed. Its JSON form is stable, for buses between
// replicas. Its meta may come back as different bytes of the same JSON value.
type Event struct {
	Topic Topic `json:"topic"`
	// URI is the URI in the server's notification: Topic.URI, or a sub-resource of it.
	// Empty means Topic.URI. See StateLost.
	URI string `json:"uri,omitempty"`
	// Meta is the _meta object of the server's notification without MCP's own members, or
	// nil. All receivers of the event share its bytes: they must not be changed, and must
	// not belong to a buffer that is reused.
	Meta json.RawMessage `json:"meta,omitempty"`
	// Number is that of the change, among those of one topic that one replica tells: a later
	// one has a higher. 0: it has none.
	Number uint64 `json:"-"`
}

// named returns the URI that the event is about.
func (e Event) named() string { return cmp.Or(e.URI, e.Topic.URI) }

// isSubresource reports whether the event is about a sub-resource of the topic's URI.
func (e Event) isSubresource() bool {
	return e.named() != e.Topic.URI && !e.IsMessage() && e.URI != LeftOut
}

// IsMessage reports whether the event is no change, but a log message that a session upstream got
// outside of calls: Meta has its params.
func (e Event) IsMessage() bool { return e.Topic.Kind == StateLost && len(e.Meta) > 0 }
