// Package back sends requests to one modern server, over Streamable HTTP or a connection,
// for clients of either era.
//
// It finds out what the server is by server/discover, writes the envelope and the headers
// of each request, answers the server's input requests with what the client says, and
// keeps the listen streams on which changes of what clients watch are told.
//
// The package refuses to know who asked: requests reach it, and changes leave it, through
// package mcp only.
package back
