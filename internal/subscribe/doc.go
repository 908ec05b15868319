// Package subscribe answers one question: who asked an upstream for which changes,
// and what do they wait for?
//
// A [Query] is one call of an upstream's Watch. A [Table] brings queries to the
// loops that look after them, one loop per profile, started for the first query and
// gone when nothing is wanted any more. How changes are had from the upstream is the
// loop's business: each era has its own.
package subscribe
