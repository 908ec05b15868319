// Package firststart asks what people see on the first day: does a command that
// works with their client directly work through mcpbridge at the first try, as fast,
// and without being started more often?
//
// Each test starts mcpbridge, as wrap or as serve, with a cache folder of its own,
// and takes published clients (interop/remote) to servers that are slow to start or
// odd (interop/odd), which write down each of their starts. The clients and servers
// are what interop/build made; MCPBRIDGE names another mcpbridge than that one.
// FIRSTSTART=all adds the slowest starts, more clients in a row, and the figures that
// only an idle machine can meet.
package firststart
