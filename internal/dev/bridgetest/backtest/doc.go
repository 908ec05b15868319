// Package backtest plays, for tests of the backs of either era, who makes a request and the
// server at the far end of a connection, and counts what a back drops. An [OddServer] answers
// over HTTP as servers do that leave their era open. It is imported by tests only.
package backtest
