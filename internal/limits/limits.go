// Package limits declares the limits on the resources that clients and servers can make
// the process use.
//
// Each limit is declared once, with its name, meaning, default and range. The name is the
// key below limits in the configuration and the label of the metric that counts how often
// the limit was reached, and errors name it as the setting to raise.
//
// The package does not enforce the limits.
package limits

import (
	"cmp"
	"slices"
)

// A Limit is one limit.
type Limit struct {
	Key      string // below limits
	Default  int64
	Min, Max int64
	Bytes    bool   // the limit is a number of bytes
	Doc      string // what it bounds
}

// A Set has values of limits by their keys. A limit that it lacks, or that is 0 there, has its
// default.
type Set map[string]int64

// Of returns the value of a limit.
func (s Set) Of(l *Limit) int64 { return cmp.Or(s[l.Key], l.Default) }

// Int is Of for a limit that fits.
func (s Set) Int(l *Limit) int { return int(s.Of(l)) }

// Raise returns the end of the text of an error about the limit.
func (l *Limit) Raise() string { return "raise limits." + l.Key }

const (
	kib, mib, gib = 1 << 10, 1 << 20, 1 << 30

	thousand, million = 1_000, 1_000_000
)

// The limits.
var (
	// Memory is 0 for a fraction of the machine's memory.
	Memory              = declare(Limit{Key: "memory", Default: 0, Max: 16384 * gib, Bytes: true, Doc: "bytes of memory that the process aims to stay below, at least 64MiB; 0 for a fraction of the machine's memory"})
	Body                = declare(Limit{Key: "body", Default: 4 * mib, Min: kib, Max: gib, Bytes: true, Doc: "bytes of a client's request"})
	Depth               = declare(Limit{Key: "depth", Default: 128, Min: 8, Max: 10 * thousand, Doc: "nesting depth of objects and arrays in a message; 1000 in that of a server if that is more"})
	ID                  = declare(Limit{Key: "id", Default: kib, Min: 64, Max: mib, Bytes: true, Doc: "bytes of a request's id, in JSON"})
	ProgressToken       = declare(Limit{Key: "progress_token", Default: kib, Min: 64, Max: mib, Bytes: true, Doc: "bytes of a progress token, in JSON"})
	Method              = declare(Limit{Key: "method", Default: kib, Min: 64, Max: mib, Bytes: true, Doc: "bytes of a method's name, in JSON"})
	URI                 = declare(Limit{Key: "uri", Default: 8 * kib, Min: 256, Max: 16 * mib, Bytes: true, Doc: "bytes of a resource's URI, in JSON"})
	Filter              = declare(Limit{Key: "filter", Default: 256 * kib, Min: 256, Max: 256 * mib, Bytes: true, Doc: "bytes of the filter of a listen stream, in JSON"})
	ClientInfo          = declare(Limit{Key: "client_info", Default: 64 * kib, Min: 256, Max: 16 * mib, Bytes: true, Doc: "bytes of clientInfo, in JSON"})
	Capabilities        = declare(Limit{Key: "capabilities", Default: 16 * kib, Min: 256, Max: 16 * mib, Bytes: true, Doc: "bytes of a client's capabilities, in JSON"})
	Requests            = declare(Limit{Key: "requests", Default: 20 * thousand, Min: 1, Max: million, Doc: "concurrent HTTP requests"})
	RequestsEach        = declare(Limit{Key: "requests_each", Default: 10 * thousand, Min: 1, Max: million, Doc: "concurrent HTTP requests of one client"})
	NewConnections      = declare(Limit{Key: "new_connections", Default: 4096, Min: 16, Max: million, Doc: "connections that have sent no request yet, TLS handshakes among them; beyond that the oldest is closed"})
	UpstreamMessage     = declare(Limit{Key: "upstream_message", Default: 64 * mib, Min: kib, Max: gib, Bytes: true, Doc: "bytes of one message from a server"})
	Sessions            = declare(Limit{Key: "sessions", Default: thousand, Min: 1, Max: million, Doc: "sessions with one server, for all clients together"})
	CommandSessions     = declare(Limit{Key: "command_sessions", Default: 64, Min: 1, Max: 100 * thousand, Doc: "sessions with a command, each with a process of its own, for all clients together"})
	CommandSessionsEach = declare(Limit{Key: "command_sessions_each", Default: 16, Min: 1, Max: 100 * thousand, Doc: "sessions with a command of one client"})
	ClientSessions      = declare(Limit{Key: "client_sessions", Default: 10 * thousand, Min: 1, Max: million, Doc: "sessions of legacy clients with one server"})
	ClientSessionsEach  = declare(Limit{Key: "client_sessions_each", Default: 5 * thousand, Min: 1, Max: million, Doc: "sessions of one legacy client with one server"})
	ClientEvents        = declare(Limit{Key: "client_events", Default: 256 * kib, Min: kib, Max: gib, Bytes: true, Doc: "bytes of events that one session keeps for a client that reconnects"})
	WebSockets          = declare(Limit{Key: "websockets", Default: 10 * thousand, Min: 1, Max: million, Doc: "open WebSockets of clients"})
	WebSocketsEach      = declare(Limit{Key: "websockets_each", Default: 5 * thousand, Min: 1, Max: million, Doc: "open WebSockets of one client"})
	Streams             = declare(Limit{Key: "streams", Default: 20 * thousand, Min: 1, Max: million, Doc: "open streams of modern clients, for subscriptions/listen and extensions"})
	StreamsEach         = declare(Limit{Key: "streams_each", Default: 10 * thousand, Min: 1, Max: million, Doc: "open streams of one modern client"})
	ListenTopics        = declare(Limit{Key: "listen_topics", Default: 1024, Min: 1, Max: million, Doc: "resources to which one listen stream, or one session of a legacy client, subscribes"})
	SubscribesEach      = declare(Limit{Key: "subscribes_each", Default: 200, Min: 1, Max: million, Doc: "subscribe requests per second, and as many unsubscribe requests, to one server on behalf of one client"})
	Parked              = declare(Limit{Key: "parked", Default: 10 * thousand, Min: 1, Max: million, Doc: "calls to one server that wait for input from their clients"})
	ParkedEach          = declare(Limit{Key: "parked_each", Default: 5 * thousand, Min: 1, Max: million, Doc: "calls to one server that wait for input from one client"})
	Tasks               = declare(Limit{Key: "tasks", Default: 10 * thousand, Min: 1, Max: million, Doc: "tasks at one server that the gateway holds for clients of the other era; beyond that their calls are answered as if they could hold none"})
	TasksEach           = declare(Limit{Key: "tasks_each", Default: 5 * thousand, Min: 1, Max: million, Doc: "such tasks of one client"})
	TaskResults         = declare(Limit{Key: "task_results", Default: 16 * mib, Min: kib, Max: 16 * gib, Bytes: true, Doc: "bytes of results of such tasks that are kept, for one server; others are fetched again when they are asked for"})
	Cache               = declare(Limit{Key: "cache", Default: 64 * mib, Min: 64 * kib, Max: 16 * gib, Bytes: true, Doc: "bytes of cached results, for all servers together"})
	CacheEntries        = declare(Limit{Key: "cache_entries", Default: 10 * thousand, Min: 1, Max: million, Doc: "number of cached results, for all servers together"})
	MetricTools         = declare(Limit{Key: "metric_tools", Default: 0, Max: 10 * thousand, Doc: "tools that a metric of requests names; the others are called other. 0 is for none"})
)

var declared []*Limit

func declare(l Limit) *Limit {
	declared = append(declared, &l)
	return &l
}

// All returns the limits in the order of their declaration.
func All() []*Limit { return slices.Clone(declared) }
