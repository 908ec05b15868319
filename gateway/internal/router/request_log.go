package router

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/names"
	"github.com/mcpbridge/mcpbridge/internal/observation/trace"
	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// A requestLine is the log line of a request without its outcome.
type requestLine struct {
	lineKind
	subject string // the tool, prompt or resource
	requester
	group string // through which it has come; empty for none
}

// A lineKind is the part that many log lines have in common.
type lineKind struct {
	method string
	era    spec.Era
}

// A requester identifies the client in the log.
type requester struct {
	principal mcp.Principal
	session   string // empty for a modern client
	client    string // its own name and version
}

func (l *requestLog) callerOf(req *mcp.Request) requester {
	return requester{req.Principal, req.Session, l.clients.Of(req.ClientInfo)}
}

// A requestLog counts the requests to one server, and writes a line for each. Safe for
// concurrent use.
type requestLog struct {
	server  string
	quiet   bool       // only requests that failed have a line
	tools   bool       // metrics name tools
	names   *names.Map // lines and metrics have the server's own names
	metrics mcp.Metrics
	lines   slog.Handler // knows the server's name
	kinds   sync.Map     // lineKind -> slog.Handler, of lines
	clients mcp.ClientNames
	made    time.Time
}

// now returns the time for measuring, since made. It reads one clock, and time.Now two.
func (l *requestLog) now() time.Duration { return time.Since(l.made) }

// report counts a request that has ended, and writes its line. It began at a time of now.
func (l *requestLog) report(ctx context.Context, req *mcp.Request, begin time.Duration, err error) {
	took, result := l.countRequest(ctx, req, begin, err)
	l.write(ctx, req, took, result, err)
}

// countRequest counts a request that has ended. The group through which it has come says how it
// ended for the client.
func (l *requestLog) countRequest(ctx context.Context, req *mcp.Request, begin time.Duration, err error) (took time.Duration, result string) {
	served := l.served(req.Method, req.Params, req.Era)
	served.Client = l.clients.Of(req.ClientInfo)
	observed := req.Trace
	if served.Group = req.Passage.At(l.server); served.Group != "" {
		served.TraceID, observed = req.Trace.TraceID(), nil
	}
	return l.count(ctx, &served, begin, err, observed)
}

// isTold reports whether the request has no line here: a member of the group has written it, or
// the group writes one for a list of all members.
func (l *requestLog) isTold(req *mcp.Request, err error) bool {
	if req.Passage.At(l.server) != "" {
		return err == nil && spec.Lists(req.Method)
	}
	return req.Passage.IsTold()
}

// served returns what is counted of a request, without how it ended.
func (l *requestLog) served(method string, params []byte, era spec.Era) mcp.Served {
	s := mcp.Served{Server: l.server, Method: method, Era: era.String()}
	if l.tools && method == spec.MethodToolsCall {
		s.Tool = l.names.Subject(method, params)
	}
	return s
}

// count counts a request that has ended, and tells its observers, if there are any.
func (l *requestLog) count(ctx context.Context, s *mcp.Served, begin time.Duration, err error, observed *trace.Request) (took time.Duration, result string) {
	ended := l.now()
	s.Ended, s.Took, s.Outcome, s.Error = l.made.Add(ended), ended-begin, mcp.OutcomeName(ctx, err), err
	s.TraceID = cmp.Or(s.TraceID, observed.TraceID())
	l.metrics.Request(*s)
	observed.Note(s.Outcome, err)
	return s.Took, s.Outcome
}

func (l *requestLog) write(ctx context.Context, req *mcp.Request, took time.Duration, result string, err error) {
	if !l.enabled(ctx, levelOf(result)) || l.isTold(req, err) {
		return
	}
	line := requestLine{lineKind: lineKind{req.Method, req.Era}, subject: l.names.Subject(req.Method, req.Params), requester: l.callerOf(req), group: req.Passage.At(l.server)}
	l.writeLine(ctx, line, took, result, err)
}

func (l *requestLog) enabled(ctx context.Context, level slog.Level) bool {
	return (!l.quiet || level >= slog.LevelWarn) && l.lines.Enabled(ctx, level)
}

func levelOf(result string) slog.Level {
	if result == "failed" {
		return slog.LevelWarn
	}
	return slog.LevelInfo
}

// writeLine writes a line directly to the handler: a Logger would look up its caller's
// source position each time.
func (l *requestLog) writeLine(ctx context.Context, line requestLine, took time.Duration, result string, err error) {
	level := levelOf(result)
	if !l.enabled(ctx, level) {
		return
	}
	attrs := make([]slog.Attr, 0, 9)
	if who := line.principal.Attr(); who.Key != "" {
		attrs = append(attrs, who)
	}
	for _, a := range [...]slog.Attr{slog.String("group", line.group), slog.String("name", line.subject), slog.String("session", line.session), slog.String("client", line.client)} {
		if a.Value.String() != "" {
			attrs = append(attrs, a)
		}
	}
	attrs = append(attrs, slog.Duration("took", took), slog.String("outcome", result))
	if err != nil && !errors.Is(err, mcp.ErrToolFailed) {
		attrs = append(attrs, slog.String("err", err.Error()))
	}
	r := slog.NewRecord(time.Now(), level, "request", 0)
	r.AddAttrs(attrs...)
	_ = l.linesOf(line.lineKind).Handle(ctx, r) // Logger also ignores the error
}

// linesOf returns the handler for lines of a kind, which has their common attributes. It
// stores the handlers of defined methods alone, because clients can invent others.
func (l *requestLog) linesOf(k lineKind) slog.Handler {
	if h, ok := l.kinds.Load(k); ok {
		return h.(slog.Handler)
	}
	h := l.lines.WithAttrs([]slog.Attr{slog.String("method", k.method), slog.String("era", k.era.String())})
	if spec.Defined(k.method) {
		l.kinds.Store(lineKind{strings.Clone(k.method), k.era}, h)
	}
	return h
}
