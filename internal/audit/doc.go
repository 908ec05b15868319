// Package audit writes who did what on which server, one JSON object per line.
//
// A line never has arguments of a request, or anything of its result. Lines are gathered
// in memory and written by one goroutine of the [Log], so that a request does not wait for
// a disk. Lines that can't be written are counted, and the log of the process says so as
// an error: they are not lost in silence.
package audit
