package back

import (
	"bytes"
	"context"
	"encoding/json"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	"github.com/mcpbridge/mcpbridge/legacy/pool"
)

// newPool returns the pool of the server's sessions.
func (b *Back) newPool() (*pool.Pool, error) {
	o := &b.opts
	return pool.New(pool.Options{
		Name: o.Name, MaxSessions: o.MaxSessions, MaxSessionsEach: o.MaxSessionsEach, Idle: o.Settings.Idle, Wait: o.Settings.Timeouts.Connect,
		Lasts: b.lasts, Lingers: b.lingers, Unneeded: b.unneeded, Lost: func() { o.Doubt("a session was lost") },
		Eager:  o.URL != "" || o.Eager,
		Logger: o.Logger, Metrics: o.Metrics,
	}, b.connect)
}

// lasts returns how long a session stays open unused; negative for ever.
func (b *Back) lasts(of pool.Session) time.Duration {
	s, ok := of.(*session)
	if !ok {
		return b.opts.Settings.Idle
	}
	least := max(b.opts.Settings.Idle, time.Duration(s.ownTasks.Load()))
	switch {
	case b.opts.Launcher == nil || !s.mayHaveState.Load():
		return least
	case b.opts.OneClient:
		return -1
	}
	return max(least, b.opts.ClientIdle)
}

// heldIn returns what is lost when the server ends a session.
func (o *Options) heldIn() string {
	if o.Launcher != nil {
		return upstream.LostExit
	}
	return upstream.LostSession
}

// unneeded reports whether a session that nobody has used for a time may end because a client
// needs another process. If it may have state, that client must have left it, and the command
// must allow one process only.
func (b *Back) unneeded(of pool.Session, info json.RawMessage, unused time.Duration) bool {
	s, ok := of.(*session)
	if !ok || !s.mayHaveState.Load() {
		return true
	}
	return b.opts.Launcher.Locks() && unused >= pool.RestTime && s.user.is(info)
}

// A soleUser is the client of a session that may have state, if there is only one.
type soleUser struct {
	info atomic.Pointer[[]byte] // its clientInfo; nil before the first, and empty if unknown or several
}

// maxSoleInfo bounds a clientInfo that is stored, in bytes.
const maxSoleInfo = 1 << 10

// note records that a client uses the session.
func (u *soleUser) note(info []byte) {
	was := u.info.Load()
	if was == nil {
		first := new([]byte)
		if len(info) <= maxSoleInfo {
			*first = bytes.Clone(info) // so that the message can be freed
		}
		if u.info.CompareAndSwap(nil, first) {
			return
		}
		was = u.info.Load()
	}
	if len(*was) > 0 && !bytes.Equal(*was, info) {
		u.info.Store(new([]byte))
	}
}

// is reports whether a client, whose clientInfo is canonical, is the only one.
func (u *soleUser) is(info []byte) bool {
	was := u.info.Load()
	return was != nil && len(*was) > 0 && bytes.Equal(wire.AppendCanonical(nil, *was), info)
}

// lingers reports whether only a watch without subscribers uses the session of a scope.
func (b *Back) lingers(scope string) bool {
	w := b.watches.Of(scope)
	return w != nil && w.Unwanted()
}

// session returns a session of the profile, and a function that releases it; see
// [pool.Pool.Get].
func (b *Back) session(ctx context.Context, p mcp.Profile, private bool) (*session, func(), error) {
	of, release, err := b.pool.Get(ctx, p, private)
	s, _ := of.(*session) // what connect opens
	return s, release, err
}

// ClientLeft implements [mcp.ClientFollower]: the sessions that the client had for itself end once
// nobody uses them.
func (b *Back) ClientLeft(req *mcp.Request) {
	if req.Profile.Revision != "" {
		b.pool.Release(req.Profile.Scope)
	}
}

// sessions returns the open sessions of a scope, including those of its lanes.
func (b *Back) sessions(scope string) (out []*session) {
	for _, of := range b.pool.Sessions(scope) {
		if s, ok := of.(*session); ok { // not a relay
			out = append(out, s)
		}
	}
	return out
}

// connect opens a session for the pool, and reports how that went.
func (b *Back) connect(ctx context.Context, p mcp.Profile) (pool.Session, error) {
	s, err := b.open(ctx, p)
	if err := b.noteConnect(ctx, err); err != nil {
		return nil, err
	}
	s.held = b.opts.Hold(b.opts.heldIn(), false)
	if !pool.Stopped(ctx) {
		scope, _ := pool.CutLane(p.Scope)
		b.remember(scope, s)
		b.watches.Respond(scope)
	}
	return s, nil
}
