// Package source has each profile watched upstream by one replica.
//
// A [Source] stands before the back of one server. It asks the engine of the replicas who owns
// a profile. The owner watches by its back; the others watch through the owner, to which they
// are a modern client: see decision 0012. When the owner changes, the topics move: the new
// source is asked first, then subscribers get one change for each topic, then the former is
// released. If there is doubt, a replica watches by itself: two owners only cause changes that
// are told twice.
//
// An [Endpoint] is the other side of it: what the other replicas ask is watched here, and
// never passed on.
//
// The package does not choose the owner.
package source
