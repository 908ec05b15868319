// Package watch subscribes to changes at legacy servers.
//
// For each profile there is a [Watch]: one loop that keeps the subscriptions made by
// resources/subscribe equal to what subscribers need. It holds the profile's [Session] as
// long as it needs one. If the session is lost, it subscribes again, and then reports the
// changes that may have been missed. The server's notifications arrive by [Watch.Changed].
// The package knows nothing of links and messages.
package watch
