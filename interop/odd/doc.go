// Command odd runs an MCP server that speaks on its pipes, and makes it one of
// those that are met in the field: one that can't take a first request it doesn't
// know, or one of which only a single process may run.
//
//	odd [-starts FILE] [-unknown exit|wedge|silent|noise|pin] [-modern] [-lock FILE | -port ADDR | -lazy FILE] [-release TIME] COMMAND ARGS...
//
// -starts appends a line to a file at each start, before anything else may fail.
//
// -unknown says what comes of a first request that the server doesn't know, which is
// any but initialize, or with -modern initialize alone. The models are rmcp, which
// exits; servers whose reader dies of what it can't decode (wedge), or that drop it;
// the Python SDK 1.x, which writes some ninety lines to standard error, and those
// that print what they are doing to standard output; and the Python SDK 2.x, which
// refuses for good what is of another era than its first request.
//
// -lock and -port are held while the process runs, as a database, a browser's
// profile or a callback's address is; -release is how long giving them back takes
// after the end of the input. -lazy is held from the first call of a tool on: a second
// process starts, and answers calls with an error. It writes a line to FILE.beside.
package main
