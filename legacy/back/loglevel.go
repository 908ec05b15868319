package back

import (
	"context"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// levelTimeout bounds the wait for logging/setLevel: a server that is slow with
// it must not hold up the request that asked for messages.
const levelTimeout = 5 * time.Second

// raiseLevel makes the upstream's log level the most verbose of the requests in
// flight, c among them, before c is sent. It does nothing if c wants no
// messages or the server has no logging; a refusal is logged and not asked for
// again. The error is that of ctx, or a session's that failed.
//
// Spec: 2025-11-25, server/utilities/logging, Setting Log Level.
func (s *session) raiseLevel(ctx context.Context, c *call) error {
	if c.req.LogLevel == "" || !s.caps.Logging || s.levelWanted() == "" {
		return nil
	}
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-s.turn }()
	want := s.levelWanted()
	if want == "" {
		return nil
	}
	return s.setLevel(ctx, want)
}

// setLevel asks for a level. Only the holder of turn calls it.
func (s *session) setLevel(ctx context.Context, want spec.LogLevel) error {
	bounded, cancel := context.WithTimeout(ctx, levelTimeout)
	defer cancel()
	params := wire.AppendEdited(nil, nil, wire.Edit{Name: "level", Value: wire.Quote(string(want))})
	_, err := s.request(bounded, spec.MethodSetLevel, params)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case asFailure(err) != nil:
		return err
	case err != nil:
		s.log.Warn("server refused log level", "level", want, "error", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.level = want
	return nil
}

// levelWanted returns the most verbose level of the requests in flight, or ""
// if that is the upstream's already.
func (s *session) levelWanted() spec.LogLevel {
	var want spec.LogLevel
	s.calls.each(func(c *wireCall) {
		if host := hostOf(c); host != nil {
			want = want.MoreVerbose(host.req.LogLevel)
		}
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	if want == s.level {
		return ""
	}
	return want
}

// soleCall returns the client's request to which a message belongs that names none:
// the only one that the server has been sent. There is none where there are several,
// nor while the server may be speaking of the session itself.
func (s *session) soleCall() *call {
	if s.roots.isSettling() {
		return nil
	}
	var sole *call
	several := false
	s.calls.each(func(c *wireCall) {
		if host := clientCall(c); host != nil && host.hasLeft() {
			several = several || sole != nil
			sole = host
		}
	})
	if several {
		return nil
	}
	return sole
}
