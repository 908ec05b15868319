// Package front serves modern clients of one server, over Streamable HTTP and over
// connections.
//
// It checks a request's envelope and headers, hands it to an mcp.Handler, stamps what
// the revision demands onto the result, and turns subscriptions/listen into a stream fed by
// a mailbox. A call whose handler asks back is answered with an input_required result, and
// waits for the retry that brings the answers.
//
// The package refuses to know where an answer comes from: what an upstream of the other
// era sends reaches it through package mcp only.
package front
