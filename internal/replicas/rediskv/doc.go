// Package rediskv keeps what replicas know in Redis, below one prefix: the
// records of members with the time at which each ends, by the clock of Redis;
// claims, which live until they are deleted; and records.
//
// It asks each heartbeat. What is published is a hint to ask at once, and
// nothing depends on it: notices of keys that expire come seconds late, and
// published messages get lost. All keys have one hash tag, so that they are in
// one slot of a cluster.
package rediskv
