package gateway

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// maxSubject and maxClient bound what a client chose of its line in the log, in bytes.
const (
	maxSubject = 256
	maxClient  = 128
)

// A requestLine is what the log says of a request, but for how it ended.
type requestLine struct {
	lineKind
	subject string // the tool, prompt or resource
	requester
}

// A lineKind is what many lines have in common.
type lineKind struct {
	method string
	era    spec.Era
}

// A requester is who asks, as the log has it.
type requester struct {
	principal mcp.Principal
	session   string // empty for a modern client
	client    string // its own name and version
}

func callerOf(req *mcp.Request) requester {
	return requester{req.Principal, req.Session, clientName(req.ClientInfo)}
}

// A requestLog counts the requests to one server, and writes a line for each. Safe for
// concurrent use.
type requestLog struct {
	server  string
	metrics mcp.Metrics
	lines   slog.Handler // knows the server's name
	kinds   sync.Map     // lineKind -> slog.Handler, of lines
}

// report counts a request that has ended, and writes its line.
func (l *requestLog) report(ctx context.Context, req *mcp.Request, begin time.Time, err error) {
	took, result := l.count(ctx, req.Method, req.Era, begin, err)
	l.write(ctx, req, took, result, err)
}

func (l *requestLog) count(ctx context.Context, method string, era spec.Era, begin time.Time, err error) (took time.Duration, result string) {
	took, result = time.Since(begin), outcome(ctx, err)
	l.metrics.Request(l.server, method, era.String(), result, took)
	return took, result
}

func (l *requestLog) write(ctx context.Context, req *mcp.Request, took time.Duration, result string, err error) {
	if !l.enabled(ctx, levelOf(result)) {
		return
	}
	l.writeLine(ctx, requestLine{lineKind{req.Method, req.Era}, subject(req.Method, req.Params), callerOf(req)}, took, result, err)
}

func (l *requestLog) enabled(ctx context.Context, level slog.Level) bool {
	return l.lines.Enabled(ctx, level)
}

func levelOf(result string) slog.Level {
	if result == "failed" {
		return slog.LevelWarn
	}
	return slog.LevelInfo
}

// writeLine writes a line past the Logger, which would look for its caller's place in
// the source each time.
func (l *requestLog) writeLine(ctx context.Context, line requestLine, took time.Duration, result string, err error) {
	level := levelOf(result)
	if !l.enabled(ctx, level) {
		return
	}
	attrs := make([]slog.Attr, 0, 8)
	if line.principal != mcp.Anonymous && line.principal != "" {
		attrs = append(attrs, slog.String("principal", string(line.principal)))
	}
	for _, a := range [...]slog.Attr{slog.String("name", line.subject), slog.String("session", line.session), slog.String("client", line.client)} {
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
	_ = l.linesOf(line.lineKind).Handle(ctx, r) // as Logger does: there is nobody to tell
}

// linesOf returns the handler for lines of a kind, which has written already what they
// have in common. Those of methods that a client has made up are not kept.
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

// outcome sorts how a request ended: "ok", "tool_error" if a tool said that it failed,
// "cancelled", "refused" by the gateway, "error" from the upstream's handler, or "failed"
// on the way.
func outcome(ctx context.Context, err error) string {
	if err == nil {
		return "ok" // most requests get here, and what follows is on the heap
	}
	var refusal *mcp.Refusal
	var we *wire.Error
	switch {
	case errors.Is(err, mcp.ErrToolFailed):
		return "tool_error"
	case ctx.Err() != nil, errors.Is(err, mcp.ErrCancelled):
		return "cancelled"
	case errors.As(err, &refusal):
		return "refused"
	case errors.As(err, &we):
		return "error"
	}
	return "failed"
}

// subject is the tool, prompt or resource that a request is about, "" if it is about none.
func subject(method string, params []byte) string {
	member := spec.Named(method)
	switch method {
	case spec.MethodSubscribe, spec.MethodUnsubscribe:
		member = "uri"
	case spec.MethodComplete:
		ref := wire.Get(params, "ref")
		if name, ok := wire.GetString(ref, "name"); ok {
			return truncate(name, maxSubject)
		}
		params, member = ref, "uri"
	case spec.MethodSetLevel:
		member = "level"
	case spec.MethodTaskGet, spec.MethodTaskUpdate, spec.MethodTaskCancel:
		return "" // whoever knows a task's id may use it
	}
	if member == "" {
		return ""
	}
	name, _ := wire.GetString(params, member)
	return truncate(name, maxSubject)
}

// clientName is a client's name and version, by its own account.
func clientName(info []byte) string {
	var name, version []byte
	for k, v := range wire.Members(info) {
		switch {
		case name == nil && k.Is("name"):
			name = unquoted(v)
		case version == nil && k.Is("version"):
			version = unquoted(v)
		}
	}
	if len(version) == 0 {
		return truncate(string(name), maxClient)
	}
	return truncate(string(name)+"/"+string(version), maxClient)
}

// unquoted returns the text of a JSON string, its own bytes where they say it as they
// are, and an empty text of any other value.
func unquoted(v []byte) []byte {
	if len(v) > 1 && v[0] == '"' && bytes.IndexByte(v, '\\') < 0 {
		return v[1 : len(v)-1]
	}
	return []byte(wire.Unquote(v))
}

// truncate returns text as far as it has no more than most bytes, in memory of its own.
func truncate(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most--; !utf8.RuneStart(text[most]); {
		most--
	}
	return strings.Clone(text[:most]) + "…"
}
