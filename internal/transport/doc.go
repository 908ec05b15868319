// Package transport answers one question for both eras: how do whole messages
// travel over something that is not a request and its response?
//
// A [Conn] carries them one at a time, in order, both ways. [Command] is a
// child process that speaks newline-delimited JSON on its standard streams;
// [WebSocket] has a message to a text message; [NewPipe] makes two connected ends in
// memory. The package looks at the first byte of what it carries and at line breaks,
// never at methods, ids or eras. Streamable HTTP differs by era and lives with each.
package transport
