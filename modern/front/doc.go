// Package front serves modern clients of one server, over Streamable HTTP and over
// connections.
//
// It checks a request's envelope and headers, passes it to an mcp.Handler, adds the
// members that the revision requires to the result, and serves subscriptions/listen as a
// stream of changes from a mailbox. If a handler requests input during a call, the client
// gets an input_required result, and the call waits for the retry with the responses.
//
// The package does not know the server: it uses package mcp only.
package front
