// Package group serves several servers, of either era, as one: a [Back] is an [mcp.Back] that
// is made of members.
//
// A [Member] is a server as clients of its own endpoint have it, with all that is controlled
// there. The Back says which member a request is for, takes the names that clients see to those
// of the member and back, joins lists and descriptions, and seals what members hand out so
// that it comes back to them alone.
//
// It knows neither fronts nor transports, and keeps nothing for a client. See decision 0015.
package group
