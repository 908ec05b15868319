// Package endings asks whether anything is left of mcpbridge and its commands once it has
// ended, whatever ended it: kill -9, SIGHUP, SIGTERM, a terminal that was closed, the end
// of its input, at every stage of the handshake, with commands that heed nothing of it.
//
// Each cell of the table runs mcpbridge as a process, with the test's own binary as the
// server, and goes by what that says it has read. All processes of a cell carry the name
// of its folder in their environment or their arguments, and are looked for in /proc. A
// part of the table that covers every pair of its columns is run; ENDINGS=all runs all.
package endings
