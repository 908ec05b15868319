// Package handover has the sessions of legacy clients go on when their replica ends.
//
// A replica that is draining hands over the sessions that have none upstream: a [Group] takes
// each out of its front when nothing is in flight, and sends what it consists of, some hundred
// bytes, to the replica that [Server.Heir] chooses. That one goes on with it under the same id,
// and puts a record into the engine by which others find it: they look only for sessions of
// replicas that are draining or gone.
//
// All other sessions end with their replica.
package handover
