package back

import (
	"context"
	"sync"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// levelTimeout bounds the wait for logging/setLevel: a slow server must not delay the
// request that wants log messages.
const levelTimeout = 5 * time.Second

// logLevel sets the log level of a session. Safe for concurrent use.
type logLevel struct {
	s *sessionLink
	// turn has capacity 1: the goroutine that has put something in may set the level.
	turn chan struct{}
	// Of a profile that is one legacy client's: its scope, and the last levels by scope, which
	// outlive sessions. Nil for others.
	scope string
	kept  *upstream.Recent[string, spec.LogLevel]

	mu      sync.Mutex    // guards current; a leaf
	current spec.LogLevel // empty if never set
}

// raise sets the server's log level to the most verbose one of the requests in flight,
// including c, before c is sent. It does nothing if c wants no log messages. If the server
// refuses the level, raise logs that, and does not send it again. The error is that of
// ctx, or of a session that failed.
//
// Spec: 2025-11-25, server/utilities/logging, Setting Log Level.
func (l *logLevel) raise(ctx context.Context, c *call) error {
	if c.req.LogLevel == "" || l.wanted() == "" {
		return nil
	}
	select {
	case l.turn <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-l.turn }()
	want := l.wanted()
	if want == "" {
		return nil
	}
	return l.set(ctx, want)
}

// LevelChanged implements [mcp.ClientFollower]: the server of each open session that is the client's
// alone gets the level now, and each later one when it is opened, since it may log outside of calls.
func (b *Back) LevelChanged(req *mcp.Request) {
	if req.Profile.Revision == "" {
		return
	}
	b.levels.Put(req.Profile.Scope, req.LogLevel)
	for _, s := range b.sessions(req.Profile.Scope) {
		if s.caps.Logging {
			s.Later(context.Background(), s.level.restore)
		}
	}
}

// last returns the last level of the client that has the session for itself; empty if it is not
// known.
func (l *logLevel) last() spec.LogLevel { return l.kept.Get(l.scope) }

// restore sets the level that the client had set last, if the server has another one. An error
// doesn't matter: the next call sets it, too.
func (l *logLevel) restore(ctx context.Context) {
	if l.kept == nil {
		return
	}
	select {
	case l.turn <- struct{}{}:
	case <-ctx.Done():
		return
	}
	defer func() { <-l.turn }()
	want := l.last()
	l.mu.Lock()
	is := l.current
	l.mu.Unlock()
	if want != "" && want != is {
		_ = l.set(ctx, want)
	}
}

// set sends logging/setLevel. Only the holder of turn calls it.
func (l *logLevel) set(ctx context.Context, want spec.LogLevel) error {
	bounded, cancel := context.WithTimeout(ctx, levelTimeout)
	defer cancel()
	params := wire.AppendEdited(nil, nil, wire.Edit{Name: "level", Value: wire.Quote(string(want))})
	_, err := l.s.Request(bounded, spec.MethodSetLevel, params)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case upstream.AsFailure(err) != nil:
		return err
	case err != nil:
		l.s.log.Warn("server refused log level", "level", want, "error", err)
	}
	if l.kept != nil {
		l.kept.GetOr(l.scope, func() spec.LogLevel { return want })
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.current = want
	return nil
}

// wanted returns the most verbose level of the requests in flight, or "" if the server has
// that level already.
func (l *logLevel) wanted() spec.LogLevel {
	var want spec.LogLevel
	l.s.Calls.Each(func(c *upstream.Call) {
		if host := clientCallOf(c); host != nil {
			want = want.MoreVerbose(host.req.LogLevel)
		}
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	if want == l.current {
		return ""
	}
	return want
}
