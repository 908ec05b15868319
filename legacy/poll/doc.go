// Package poll answers "has a server changed that does not say so?". A [Poller] fetches
// lists and resources again and again, while somebody wants to hear of their changes, and
// compares digests of what came.
package poll
