// Package sse reads and writes event streams (text/event-stream).
//
// It implements the grammar of the WHATWG HTML standard, section 9.2, exactly: a line
// ends with CR, LF or CRLF, however reads are split; a line without a colon is a field
// without a value; exactly one space after the colon is removed; and an event that is
// incomplete at the end of the stream is discarded (but [Reader.Rest] returns its bytes).
// Text is not decoded: invalid UTF-8 passes unchanged.
//
// The package does not interpret the data of events, does not reconnect, does not flush
// and starts no goroutines.
package sse
