// Package router connects fronts to backs. It decides which server and which profile a
// request is for, and through which handlers it passes on its way to the back: access,
// owners, caches. Which subscribers receive a change is decided by package hub.
//
// It owns what all servers share: the HTTP endpoint that detects the era of each message,
// the table of servers, the hub, and the shutdown that ends all of them in order. One
// constructor builds a server, and one Close ends it.
//
// The package knows nothing else of either era's messages than what tells them apart: the
// revision in the envelope and the one in the header.
package router
