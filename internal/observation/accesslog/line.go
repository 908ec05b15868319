package accesslog

import (
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/observation/trace"
	"github.com/mcpbridge/mcpbridge/internal/redact"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// mostText bounds one text of a line, in bytes.
const mostText = 256

// append appends the line of a request.
func (r *record) append(dst []byte, req *trace.Request) []byte {
	outcome, took, err := req.Outcome()
	in, out := req.Size()
	a := line{dst, r.l.format == JSON, r.l.secrets}
	if a.json {
		a.dst = append(a.dst, '{')
	}
	a.time("time", req.Began().Add(took), &r.l.seconds)
	var few [32]byte // which is as much as a string needs no memory for
	a.text("request", string(req.AppendRequestID(few[:0])))
	server, group, name := req.Served()
	a.text("upstream", server)
	a.text("group", group)
	a.text("method", req.Method)
	a.text("name", name)
	a.text("era", req.Era)
	a.text("id", req.ID)
	a.text("session", req.Session)
	a.text("client", r.l.clients.Of(req.ClientInfo))
	a.text("principal", req.Principal)
	if req.Arrival != nil {
		a.text("downstream", req.Arrival.Peer)
		a.text("via", req.Arrival.Via)
	}
	a.text("trace", req.TraceID())
	a.number("in", in)
	a.number("out", out)
	a.number("requests", int64(r.exchanges.Load()))
	a.duration("took", took)
	a.text("outcome", outcome)
	a.text("error", mcp.ErrorType(err))
	if a.json {
		return append(a.dst, '}', '\n')
	}
	return append(a.dst, '\n')
}

// A line is one that is being written.
type line struct {
	dst     []byte
	json    bool
	secrets *redact.Redactor
}

// key begins a member.
func (l *line) key(name string) {
	if n := len(l.dst); n > 0 && l.dst[n-1] != '{' {
		if l.json {
			l.dst = append(l.dst, ',')
		} else {
			l.dst = append(l.dst, ' ')
		}
	}
	if l.json {
		l.dst = append(append(append(l.dst, '"'), name...), '"', ':')
	} else {
		l.dst = append(append(l.dst, name...), '=')
	}
}

// text adds a text, cut, unless it is empty.
func (l *line) text(name, text string) {
	if text == "" {
		return
	}
	l.key(name)
	text = mcp.Truncate(l.secrets.String(text), mostText)
	switch {
	case l.json:
		l.dst = wire.AppendString(l.dst, text)
	case plain(text):
		l.dst = append(l.dst, text...)
	default:
		l.dst = strconv.AppendQuote(l.dst, text)
	}
}

// plain reports whether a text needs no quotes: it can't be taken for the end of a value,
// another key or another line.
func plain(text string) bool {
	for i := range len(text) {
		if c := text[i]; c <= ' ' || c == '"' || c == '=' || c == '\\' || c >= utf8.RuneSelf || c == 0x7f {
			return false
		}
	}
	return true
}

func (l *line) number(name string, n int64) {
	l.key(name)
	l.dst = strconv.AppendInt(l.dst, n, 10)
}

func (l *line) duration(name string, d time.Duration) {
	l.key(name)
	micros := d.Round(time.Microsecond).Microseconds()
	l.dst = append(strconv.AppendInt(l.dst, micros/1e6, 10), '.')
	l.dst = appendDigits(l.dst, int(micros%1e6), 1e5)
}

// appendDigits appends the digits of a number from that of unit on.
func appendDigits(dst []byte, n, unit int) []byte {
	for ; unit > 0; unit /= 10 {
		dst = append(dst, '0'+byte(n/unit%10))
	}
	return dst
}

func (l *line) time(name string, at time.Time, seconds *seconds) {
	l.key(name)
	if l.json {
		l.dst = append(l.dst, '"')
	}
	l.dst = seconds.append(l.dst, at)
	if l.json {
		l.dst = append(l.dst, '"')
	}
}
