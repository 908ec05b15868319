// Package evict has the cached results that a change made stale leave every replica before a
// client hears of the change.
//
// A client may hear of a change at one replica and read again at another. So whoever hears of
// a change from a server tells the other replicas first, and waits a moment for their word;
// then it puts the change into mailboxes. A replica that does not answer in time is told again
// until it has, or is gone. A replica that may have missed something serves no cached results,
// and forgets them: see [Group.Fresh].
package evict
