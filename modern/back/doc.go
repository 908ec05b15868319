// Package back sends requests to one modern server, over Streamable HTTP or a connection,
// for clients of either era.
//
// It detects the server's revision and capabilities by server/discover, writes the
// envelope and the headers of each request, gets the input that the server requests from
// the client, and opens the listen streams for the topics that clients subscribe to.
//
// The package does not know the clients: it gets requests and publishes changes through
// package mcp only.
package back
