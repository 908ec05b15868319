// Command stateful is a server on standard input and output that keeps something for its
// client, as servers do which a desktop client starts. Built as it is, on go-sdk v1.6.1, it
// knows legacy revisions alone; with -modfile v1.8.0.mod -tags modern, 2026-07-28 alone.
//
// With -kind browser it has a page: navigate and snapshot. The first navigate locks the
// profile until the process ends, which takes 200 ms. With -kind database it has entries:
// put and get. It reads them from its file at the start, and saves them at its end, which
// takes as long as -save says. With -kind tick it has a count: advance makes it one more,
// and tells who subscribes to tick://now.
//
// All have the tools pid, which returns the process id, and die, which ends the process
// without an answer. Files are in the folder -dir. A process that finds as many others in it
// as -clients says writes a line to the file overlap there.
package main
