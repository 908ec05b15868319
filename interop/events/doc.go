// Command events is a modern MCP server of the events extension (SEP-3415, a draft),
// written against the wire since no SDK has it: over stdio, or over Streamable HTTP.
//
//	events [-http ADDR]
//
// It serves events/list, events/poll and events/stream. There is one type of events,
// "ticks", whose arguments say what a stream does:
//
//	count      so many events come at once, as fast as they can be written
//	error      an error is told after so many of them; 0 is none
//	heartbeats so many come after them; -1 is until the request is cancelled
//	everyMs    the time before each heartbeat
//	terminate  the end is announced before the result
//
// The tool "streams" says how many streams are open, and how many were cancelled. The
// draft has the ids of events; here they are the event's number in its stream, from 0.
package main
