// Package audit writes the audit log: who did what on which server, one JSON object per
// line.
//
// A line never has arguments of a request, or any part of its result. Lines are collected
// in memory and written by one goroutine of the [Log], so that requests do not wait for a
// disk. Lines that can't be written are kept, up to a limit, and tried again. Those that are
// lost after all are counted, and logged as an error: they are not lost silently. A Log that
// is required says meanwhile that requests are to be refused.
package audit
