// Package limits answers one question: what bounds that which clients and servers can
// make the process hold?
//
// Each bound is declared here once: what it bounds, its default, what it may be set to
// and its name. That name is the key below limits in the configuration, the label of the
// metric that counts how often the bound was hit, and what errors tell people to raise.
//
// The package refuses to know who counts, and what happens at a bound.
package limits

import "slices"

// A Limit is one bound.
type Limit struct {
	Key      string // below limits
	Default  int64
	Min, Max int64
	Bytes    bool   // the limit is one of bytes
	Doc      string // what it bounds
}

// Raise is how errors end that tell of a limit that was hit.
func (l *Limit) Raise() string { return "raise limits." + l.Key }

const (
	kib, mib, gib = 1 << 10, 1 << 20, 1 << 30

	thousand, million = 1_000, 1_000_000
)

// The limits.
var (
	// Memory is 0 for a part of what the machine has.
	Memory              = declare(Limit{Key: "memory", Default: 0, Max: 16384 * gib, Bytes: true, Doc: "bytes of memory that the process aims at, 64MiB at least; 0 for a part of what the machine has"})
	Body                = declare(Limit{Key: "body", Default: 4 * mib, Min: kib, Max: gib, Bytes: true, Doc: "bytes of a client's request"})
	Depth               = declare(Limit{Key: "depth", Default: 128, Min: 8, Max: 10 * thousand, Doc: "nested objects and arrays in a message"})
	ID                  = declare(Limit{Key: "id", Default: kib, Min: 64, Max: mib, Bytes: true, Doc: "bytes of a request's id, as it is written"})
	ProgressToken       = declare(Limit{Key: "progress_token", Default: kib, Min: 64, Max: mib, Bytes: true, Doc: "bytes of a progress token, as it is written"})
	Method              = declare(Limit{Key: "method", Default: kib, Min: 64, Max: mib, Bytes: true, Doc: "bytes of a method's name, as it is written"})
	URI                 = declare(Limit{Key: "uri", Default: 8 * kib, Min: 256, Max: 16 * mib, Bytes: true, Doc: "bytes of a resource's URI, as it is written"})
	Filter              = declare(Limit{Key: "filter", Default: 256 * kib, Min: 256, Max: 256 * mib, Bytes: true, Doc: "bytes of what a listen stream is about, as it is written"})
	ClientInfo          = declare(Limit{Key: "client_info", Default: 64 * kib, Min: 256, Max: 16 * mib, Bytes: true, Doc: "bytes of what a client says of itself, as it is written"})
	Capabilities        = declare(Limit{Key: "capabilities", Default: 16 * kib, Min: 256, Max: 16 * mib, Bytes: true, Doc: "bytes of what a client can do, as it is written"})
	Requests            = declare(Limit{Key: "requests", Default: 20 * thousand, Min: 1, Max: million, Doc: "requests over HTTP in flight"})
	RequestsEach        = declare(Limit{Key: "requests_each", Default: 10 * thousand, Min: 1, Max: million, Doc: "requests over HTTP in flight of one client"})
	UpstreamMessage     = declare(Limit{Key: "upstream_message", Default: 64 * mib, Min: kib, Max: gib, Bytes: true, Doc: "bytes of one message of a server"})
	Sessions            = declare(Limit{Key: "sessions", Default: thousand, Min: 1, Max: million, Doc: "sessions with one server, over all clients"})
	CommandSessions     = declare(Limit{Key: "command_sessions", Default: 64, Min: 1, Max: 100 * thousand, Doc: "sessions with a command, each of which is a process, over all clients"})
	CommandSessionsEach = declare(Limit{Key: "command_sessions_each", Default: 16, Min: 1, Max: 100 * thousand, Doc: "sessions with a command of one client"})
	ClientSessions      = declare(Limit{Key: "client_sessions", Default: 10 * thousand, Min: 1, Max: million, Doc: "sessions of legacy clients with one server"})
	ClientSessionsEach  = declare(Limit{Key: "client_sessions_each", Default: 5 * thousand, Min: 1, Max: million, Doc: "sessions of one legacy client with one server"})
	ClientEvents        = declare(Limit{Key: "client_events", Default: 256 * kib, Min: kib, Max: gib, Bytes: true, Doc: "bytes of events that one session keeps for a client that was cut off and comes back"})
	WebSockets          = declare(Limit{Key: "websockets", Default: 10 * thousand, Min: 1, Max: million, Doc: "open WebSockets of clients"})
	WebSocketsEach      = declare(Limit{Key: "websockets_each", Default: 5 * thousand, Min: 1, Max: million, Doc: "open WebSockets of one client"})
	Streams             = declare(Limit{Key: "streams", Default: 20 * thousand, Min: 1, Max: million, Doc: "open streams of modern clients: subscriptions/listen and those of extensions"})
	ListenTopics        = declare(Limit{Key: "listen_topics", Default: 1024, Min: 1, Max: million, Doc: "resources in one listen stream, or followed by one session of a legacy client"})
	SubscribesEach      = declare(Limit{Key: "subscribes_each", Default: 200, Min: 1, Max: million, Doc: "subscribes a second, and as many unsubscribes, that one client may cause at one server"})
	Parked              = declare(Limit{Key: "parked", Default: 10 * thousand, Min: 1, Max: million, Doc: "calls of one server that wait for their clients' answers"})
	ParkedEach          = declare(Limit{Key: "parked_each", Default: 5 * thousand, Min: 1, Max: million, Doc: "calls of one server that wait for answers of one client"})
	Cache               = declare(Limit{Key: "cache", Default: 64 * mib, Min: 64 * kib, Max: 16 * gib, Bytes: true, Doc: "bytes of results that are kept, over all servers"})
	CacheEntries        = declare(Limit{Key: "cache_entries", Default: 10 * thousand, Min: 1, Max: million, Doc: "number of results that are kept, over all servers"})
)

var declared []*Limit

func declare(l Limit) *Limit {
	declared = append(declared, &l)
	return &l
}

// All returns the limits in their order.
func All() []*Limit { return slices.Clone(declared) }
