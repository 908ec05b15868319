package pool

import (
	"context"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wake"
)

// enter finds or adds an entry, and uses it. reserved says that it has a reserved place.
// failing is the server's last error if it keeps failing.
func (p *Pool) enter(ctx context.Context, profile mcp.Profile, private, reserved bool, client Client, dial DialFunc) (found *entry, failing, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shared == nil {
		return nil, nil, mcp.ErrShutdown
	}
	if reserved {
		p.unreserveLocked(profile.Share)
		defer p.grantLocked() // if it needs no place after all
	}
	server, _ := p.pauses.Get(allScopes) // nil unless the server failed lately
	if server != nil {
		failing = server.Failing()
	}
	if e := p.shared[profile.Scope]; e != nil && !private {
		if !e.opened() || e.s.Alive() {
			p.useLocked(e)
			return e, failing, nil
		}
		p.detachLocked(e)
	}
	if failing != nil && server.trial {
		return nil, nil, notSent(failing)
	}
	wait, err := p.mayOpenLocked(profile)
	if err != nil {
		return nil, nil, err
	}
	if server != nil {
		server.trial = true
	}
	e := &entry{scope: profile.Scope, owner: profile.Share, private: private || profile.Single, client: client, info: profile.ClientInfo, ready: make(chan struct{}), uses: 1}
	p.all[e] = struct{}{}
	p.each[e.owner]++
	if !private {
		p.shared[e.scope] = e
	}
	// It ends by the dial's time-out, or with Close.
	dialCtx, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	p.stops[e] = stop
	of := profile // captured only here: most calls find an open session
	p.running.Go(func() { p.open(dialCtx, e, of, dial, wait) })
	return e, failing, nil
}

// mayOpenLocked makes room for a session. It returns the pause before the next attempt, or
// the error if there can be no session.
func (p *Pool) mayOpenLocked(profile mcp.Profile) (time.Duration, error) {
	var wait time.Duration
	for _, key := range []string{allScopes, profile.Scope} {
		pause, ok := p.pauses.Get(key)
		if !ok {
			continue
		}
		left, err := pause.Left()
		if err != nil {
			return 0, notSent(err)
		}
		wait = max(wait, left)
	}
	return wait, p.makeRoomLocked(profile.Share)
}

// open opens the session of e after a pause.
func (p *Pool) open(ctx context.Context, e *entry, profile mcp.Profile, dial DialFunc, pause time.Duration) {
	var s Session
	err := wake.Wait(ctx, pause)
	begun := time.Now()
	if err == nil {
		s, err = dial(ctx, profile)
	}
	stopped := Stopped(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stops[e](nil)
	delete(p.stops, e)
	p.endTrialLocked()
	e.s, e.err, e.since = s, err, time.Now()
	close(e.ready)
	switch {
	case err != nil && stopped:
		p.endLocked(e, endLost)
	case err != nil:
		key := allScopes
		if f := upstream.AsFailure(err); f != nil && f.Spoke {
			p.pauses.Remove(allScopes)
			key = e.scope
		}
		p.pauseLocked(key, begun, err)
		p.endLocked(e, endLost)
	case e.ended || p.shared == nil: // Close was called meanwhile
		p.opts.Metrics.SessionOpened(p.opts.Name)
		e.ended = false
		p.endLocked(e, endClosed)
	default:
		p.pauses.Remove(allScopes)
		p.opts.Metrics.SessionOpened(p.opts.Name)
		p.running.Go(func() { p.reap(e) }) // ends with the session
		if e.uses == 0 {
			p.idleLocked(e)
		}
	}
}

// reap removes a session that was lost, so that an exited child process is collected even
// if no request follows.
func (p *Pool) reap(e *entry) {
	<-e.s.Done()
	p.mu.Lock()
	defer p.mu.Unlock()
	if !e.ended {
		p.detachLocked(e)
	}
}

// detachLocked removes e, whose session was lost, so that the next Get opens another. The
// session ends with its last user: over HTTP, running requests may still get responses.
func (p *Pool) detachLocked(e *entry) {
	if p.shared[e.scope] == e {
		delete(p.shared, e.scope)
	}
	p.tellLocked(e, endLost)
	if e.uses == 0 {
		p.endLocked(e, endLost)
	}
}
