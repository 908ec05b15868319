// Package cache stores public results of servers, and serves them again.
//
// A [Cache] is shared by all servers of a gateway, and bounded in entries and bytes.
// [Cache.Handler] puts it in front of one server. Call [Cache.Evict] with each change
// before subscribers get it.
//
// Spec: 2026-07-28, server/utilities/caching.
package cache
