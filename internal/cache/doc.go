// Package cache keeps public results of servers and serves them again: it answers "do we
// have this already, and may it be used for this request?".
//
// A [Cache] is shared by all servers of a gateway, bounded in entries and bytes.
// [Cache.Handler] puts it in front of one server. Whoever hears of a change calls
// [Cache.Evict] before anybody else is told.
//
// Spec: 2026-07-28, server/utilities/caching.
package cache
