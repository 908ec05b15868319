// Package hub delivers changes of all servers to their subscribers, whatever the era of either.
//
// It knows servers by what they report and by their names, and subscribers by their mailboxes.
package hub
