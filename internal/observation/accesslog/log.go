package accesslog

import (
	"io"
	"sync"
	"sync/atomic"

	"github.com/mcpbridge/mcpbridge/internal/linebuffer"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/observation/trace"
	"github.com/mcpbridge/mcpbridge/internal/redact"
)

// A Format is that of the lines.
type Format string

// The formats.
const (
	Text Format = "text" // key=value
	JSON Format = "json" // one object in a line
)

// Options configure a Log.
type Options struct {
	To      io.Writer
	Format  Format
	Secrets *redact.Redactor // are hidden in lines; nil for none
	// Direct writes each line at once, for a person who reads along.
	Direct bool
}

// A Log is a [trace.Observer] that writes lines. Its owner calls Close.
type Log struct {
	format  Format
	secrets *redact.Redactor
	to      io.Writer
	lines   *linebuffer.Writer // to; nil if each line is written at once
	seconds seconds
	clients mcp.ClientNames
}

// New returns a Log.
func New(o Options) *Log {
	l := &Log{format: o.Format, secrets: o.Secrets, to: o.To}
	if !o.Direct {
		l.lines = linebuffer.New(o.To)
		l.to = l.lines
	}
	return l
}

// Close writes what waits. Later lines are written at once.
func (l *Log) Close() {
	if l != nil && l.lines != nil {
		_ = l.lines.Close() // there is nobody to tell
	}
}

// Begin implements [trace.Observer].
func (l *Log) Begin(r *trace.Request) trace.Record {
	r.Subject() // is in the line
	return &record{l: l}
}

// A record counts what belongs into the line of one request.
type record struct {
	l         *Log
	exchanges atomic.Int32
}

// Upstream implements [trace.Record].
func (r *record) Upstream(*trace.Exchange) { r.exchanges.Add(1) }

// Answered implements [trace.Record].
func (r *record) Answered(*trace.Exchange) {}

// Event implements [trace.Record].
func (r *record) Event(trace.Event) {}

// Follows implements [trace.Record].
func (r *record) Follows(trace.Record) {}

// buffers are for lines.
var buffers = sync.Pool{New: func() any { b := make([]byte, 0, 1024); return &b }}

// End implements [trace.Record]: it writes the line.
func (r *record) End(req *trace.Request) {
	buf := buffers.Get().(*[]byte)
	defer buffers.Put(buf)
	outcome, _, _ := req.Outcome()
	*buf = r.append((*buf)[:0], req)
	_, _ = r.l.to.Write(*buf) // there is nobody to tell
	if outcome == "failed" && r.l.lines != nil {
		_ = r.l.lines.Flush()
	}
}
