// Package listen serves the listen requests of other replicas, which take this one for the
// owner of a profile.
//
// To them this replica is a modern server, see decision 0012. Policy, and the limits of
// clients, were applied where the clients are. What comes here is watched here: it is never
// passed on.
package listen
