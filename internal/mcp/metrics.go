package mcp

import "time"

// Metrics counts what happens. Server is a server's name, empty where no server is
// concerned. All methods are quick and safe for concurrent use; a delta may be negative.
type Metrics interface {
	// Request counts a request that was answered after d.
	Request(server, method, era, outcome string, d time.Duration)
	// Dropped counts a message that reached nobody.
	Dropped(server, reason string)
	// Limit counts what was refused, or put off, at a limit.
	Limit(server, name string)

	// Streams adds delta to the open listen streams.
	Streams(delta int)
	// Parked adds delta to the calls that wait for their clients' answers.
	Parked(server string, delta int)
	// Sessions adds delta to the sessions of legacy clients.
	Sessions(server string, delta int)
	// Sockets adds delta to the open WebSockets of clients.
	Sockets(server string, delta int)

	// Offered counts changes, once for each listen stream that is to get them, and
	// Delivered those that were written. The others were joined with one that still
	// waited, or their stream has ended.
	Offered(server string, n int)
	Delivered(server string, n int)

	// CacheLooked counts a request for a result that may be kept.
	CacheLooked(server, method string, hit bool)
	// CacheEvicted counts a result that left the cache because it was "changed",
	// "expired", "full", "replaced" or "closed", or because the "memory" was needed.
	CacheEvicted(server, why string)
	// CacheBytes adds delta to the bytes that are kept.
	CacheBytes(server string, delta int)

	// SessionOpened counts a session opened with a server. One SessionEnded follows,
	// which says why: "idle", "evicted", "released", "lost" or "closed".
	SessionOpened(server string)
	SessionEnded(server, why string)
	// CommandStarted counts a start of a server's command.
	CommandStarted(server string)
}

// NoMetrics counts nothing. Embed it to implement a part of Metrics.
type NoMetrics struct{}

var _ Metrics = NoMetrics{}

func (NoMetrics) Request(string, string, string, string, time.Duration) {}
func (NoMetrics) Dropped(string, string)                                {}
func (NoMetrics) Limit(string, string)                                  {}
func (NoMetrics) Streams(int)                                           {}
func (NoMetrics) Parked(string, int)                                    {}
func (NoMetrics) Sessions(string, int)                                  {}
func (NoMetrics) Sockets(string, int)                                   {}
func (NoMetrics) Offered(string, int)                                   {}
func (NoMetrics) Delivered(string, int)                                 {}
func (NoMetrics) CacheLooked(string, string, bool)                      {}
func (NoMetrics) CacheEvicted(string, string)                           {}
func (NoMetrics) CacheBytes(string, int)                                {}
func (NoMetrics) SessionOpened(string)                                  {}
func (NoMetrics) SessionEnded(string, string)                           {}
func (NoMetrics) CommandStarted(string)                                 {}
