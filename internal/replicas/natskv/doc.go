// Package natskv keeps what replicas know in three buckets of NATS JetStream:
// members, whose keys live three seconds; claims, which live until they are
// deleted; and records.
//
// The buckets are in memory, on three servers of a cluster or on one. A bucket
// that exists is used as it is. What a server that was started again has
// forgotten is made anew, by whoever notices first.
//
// A member's time to live is that of its bucket: an update without a time to
// live would have a key live for ever that once had one of its own.
package natskv
