// Package transport has the connections for messages that both eras share.
//
// A [Conn] carries complete messages, in order, in both directions. [Command] is a child
// process with newline-delimited JSON on its standard streams. [WebSocket] carries each
// message in a text message. [NewPipe] returns two connected ends in memory. The package
// reads only the first byte of messages and line breaks, not methods, ids or eras.
// Streamable HTTP differs by era, and is in the packages of each era.
package transport
