// Package matrix takes each client through a short round on each server, over each
// transport on either side, with one mcpbridge in between that has all servers in
// its configuration. What a client sees in depth is the matter of the package
// above; here it is that every pairing works.
//
// ../../matrix/table.json says which clients, servers and transports there are,
// what each server has to show, and for each cell and step that can't be, why. A
// cell is one client, the transport that it speaks to mcpbridge (the front), one
// server, and the transport that mcpbridge speaks to it (the back). `make interop`
// tries one cell of each client with each server, so chosen that every client uses
// all its fronts and every server all its backs; `make matrix` tries all cells.
// One process per client goes from server to server. Those on standard input and
// output have an `mcpbridge wrap` for each cell, as desktop clients do.
package matrix
