// Package deviations plays requests that keep to no revision, against published servers as
// they are and with mcpbridge before them. What a server takes directly, mcpbridge has to
// take, too, except for what testdata/differences.txt lists and docs/quirks.md explains.
// What a policy denies, or a rate, reaches no server, whatever form it comes in. They are played
// over HTTP, on pipes and on WebSockets, and while a server is slow, away, or started anew.
//
// The requests are drawn from the cross product of what clients get wrong, by a seed:
// SEED=n draws others than usual, and DEVIATIONS=n another number of them.
package deviations
