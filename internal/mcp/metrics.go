package mcp

import "time"

// Metrics receives counts. server is a server's name, or empty if no server is concerned.
// All methods are quick and safe for concurrent use. A delta may be negative.
type Metrics interface {
	// Request counts a request of a client that was served.
	Request(s Served)
	// Upstream counts a request to a server, which has answered, or has not, after d.
	// errorType is that of [ErrorType], and traceID that of the trace that records the
	// request, if there is one.
	Upstream(server, method, errorType string, d time.Duration, traceID string)
	// SpansLost counts spans of traces that could not be exported.
	SpansLost(n int)
	// Reloaded counts an attempt to reload the configuration.
	Reloaded(ok bool)
	// Dropped counts a message that was not delivered.
	Dropped(server, reason string)
	// Limit counts requests and other things that were refused, delayed or ended because a
	// limit was reached.
	Limit(server, name string)
	// Quirk counts a deviation from the protocol that was tolerated, by its name in package
	// internal/quirks.
	Quirk(server, quirk string)
	// Refused counts a request that was refused because of its credential. The reason is
	// one of a fixed few.
	Refused(server, reason string)
	// WatchCertificates tells of all certificates that mcpbridge shows, by the keys of the
	// configuration that name them. Each function returns when one expires; zero if there is none.
	WatchCertificates(ends map[string]func() time.Time)
	// AuditLost counts lines of the audit log that could not be written. AuditFailing says
	// that those of a log can't be written from now on, or can be again: each log in turns,
	// of which a reload may leave two for a while.
	AuditLost(lines int)
	AuditFailing(failing bool)

	// Streams adds delta to the open listen streams.
	Streams(delta int)
	// Held adds delta to what is held for clients.
	Held(server string, what Held, delta int)
	// Sessions adds delta to the sessions of legacy clients.
	Sessions(server string, delta int)
	// Sockets adds delta to the open WebSockets of clients.
	Sockets(server string, delta int)

	// Offered counts changes, once per listen stream that subscribes to them, and
	// Delivered the changes that were written. The others were coalesced with a pending
	// one, or their stream has ended.
	Offered(server string, n int)
	Delivered(server string, n int)

	// CacheLooked counts a request whose result may be cached.
	CacheLooked(server, method string, hit bool)
	// CacheEvicted counts a result that was removed from the cache. why is "changed",
	// "expired", "full", "replaced", "closed" or "memory" (which was needed elsewhere).
	CacheEvicted(server, why string)
	// CacheBytes adds delta to the size of the cache.
	CacheBytes(server string, delta int)

	// SessionOpened counts a session opened with a server. One SessionEnded follows, with
	// why "idle", "evicted", "left", "released", "lost" or "closed".
	SessionOpened(server string)
	SessionEnded(server, why string)
	// StateLost counts clients that may have lost state on a server. cause is "idle",
	// "limit", "alone", "exit", "session" or "replaced".
	StateLost(server, cause string, clients int)
	// CommandStarted counts a start of a server's command.
	CommandStarted(server string)

	// Forget drops what was counted of a server that is not there any more. Nothing of it
	// that adds a negative delta may follow.
	Forget(server string)
}

// Held says what is held for clients.
type Held int

const (
	HeldCalls Held = iota // calls that wait for input from their clients
	HeldTasks             // tasks of servers of the other era that are not over
)

// A Served is a request of a client that was served.
type Served struct {
	Server, Method, Era string
	Client              string // its name and version; empty if it has none
	Group               string // through which it has come to the server; empty for none
	Outcome             string // see [OutcomeName]
	Error               error  // nil for a success
	Took                time.Duration
	Ended               time.Time // zero means now
	Tool                string    // of tools/call; empty if nobody counts tools
	TraceID             string    // of the trace that records the request; empty if there is none
}

// NoMetrics counts nothing. Embed it to implement a part of Metrics.
type NoMetrics struct{}

var _ Metrics = NoMetrics{}

func (NoMetrics) Request(Served)                                         {}
func (NoMetrics) Upstream(string, string, string, time.Duration, string) {}
func (NoMetrics) Reloaded(bool)                                          {}
func (NoMetrics) SpansLost(int)                                          {}
func (NoMetrics) Dropped(string, string)                                 {}
func (NoMetrics) Limit(string, string)                                   {}
func (NoMetrics) Refused(string, string)                                 {}
func (NoMetrics) WatchCertificates(map[string]func() time.Time)          {}
func (NoMetrics) AuditLost(int)                                          {}
func (NoMetrics) AuditFailing(bool)                                      {}
func (NoMetrics) Quirk(string, string)                                   {}
func (NoMetrics) Streams(int)                                            {}
func (NoMetrics) Held(string, Held, int)                                 {}
func (NoMetrics) Sessions(string, int)                                   {}
func (NoMetrics) Sockets(string, int)                                    {}
func (NoMetrics) Offered(string, int)                                    {}
func (NoMetrics) Delivered(string, int)                                  {}
func (NoMetrics) CacheLooked(string, string, bool)                       {}
func (NoMetrics) CacheEvicted(string, string)                            {}
func (NoMetrics) CacheBytes(string, int)                                 {}
func (NoMetrics) Forget(string)                                          {}
func (NoMetrics) SessionOpened(string)                                   {}
func (NoMetrics) SessionEnded(string, string)                            {}
func (NoMetrics) StateLost(string, string, int)                          {}
func (NoMetrics) CommandStarted(string)                                  {}
