// Package replicas answers: which replica holds this, and how is it reached?
//
// The replicas of a deployment tell each other by an engine that they live,
// and who of them holds a name: an upstream profile to be watched once, a
// server that only one may run. An engine keeps these few small facts and
// nothing else: requests pass between replicas by HTTP (package peer), so the
// engine may be away while sessions go on. What it said last stands until it
// is back.
//
// Here are the types, the engine of a replica that is alone, and the URLs by
// which engines are named, whose errors contain nothing of the URL but its
// scheme: a password may stand anywhere in one that is misspelled. Package
// member is what the engines with a broker have in common; natskv and rediskv
// are the brokers; dnspeers knows of members alone.
package replicas
