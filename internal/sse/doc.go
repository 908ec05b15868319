// Package sse answers two questions: which events does this text/event-stream
// hold, and how is an event written to one?
//
// It implements the grammar of the WHATWG HTML standard, section 9.2, and no
// dialect of it: a line ends with CR, LF or CRLF wherever reads happen to be
// split, a line without a colon is a field without a value, one space after the
// colon is dropped and no other, and an event that the stream's end cuts short
// is not an event (though [Reader.Rest] still has its bytes). Text is not
// decoded: bytes that are not UTF-8 pass as they are.
//
// The package does not know what events carry, does not reconnect, does not
// flush and starts no goroutine.
package sse
