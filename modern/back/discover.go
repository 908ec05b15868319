package back

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// everybody is the scope of a description that does not depend on who asks.
const everybody = ""

// described is an answer to server/discover.
type described struct {
	mcp.Description
	said  time.Time
	until time.Time // it is fresh
}

// An asking is a server/discover under way, for all of its profile.
type asking struct {
	done chan struct{} // closed when err is set
	err  error
}

// Describe implements [mcp.Describer]: it tells what the server answered to
// server/discover, as long as the server said. It does not wait where that is foretold.
//
// Spec: 2026-07-28, server/discover; server/utilities/caching.
func (b *Back) Describe(ctx context.Context, req *mcp.Request) (*mcp.Description, error) {
	d, err := b.description(ctx, req)
	if err != nil {
		return nil, err
	}
	d.Capabilities = b.describable(d.Capabilities, req.Era)
	return d, nil
}

// description returns what the server said of itself, all of it. It is the caller's.
func (b *Back) description(ctx context.Context, req *mcp.Request) (*mcp.Description, error) {
	scope := req.Profile.Scope
	if d := b.lastKnown(scope, everybody); d != nil && time.Now().Before(d.until) {
		return d.describe(), nil
	}
	if d := b.foretold(); d != nil {
		return d, nil
	}
	err := b.refresh(ctx, req.Profile)
	if d := b.lastKnown(scope, everybody, b.probeProfile().Scope); d != nil {
		return d.describe(), nil
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return nil, err
}

// foretold returns what a probe was told, until something is known of the server
// itself; then nil. It is not to be kept: the probe was another client.
func (b *Back) foretold() *mcp.Description {
	if state, _ := b.availability.State(); b.opts.Foretold == nil || state != upstream.Starting {
		return nil
	}
	d := *b.opts.Foretold
	d.Cache = mcp.CacheHint{}
	return &d
}

// refresh asks the server anew, and waits for the answer as long as that may take.
func (b *Back) refresh(ctx context.Context, p mcp.Profile) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if state, err := b.availability.State(); state == upstream.Down && b.availability.Want() {
		return b.clientError(spec.MethodDiscover, err)
	}
	a := b.asking(p)
	if a == nil {
		return b.clientError(spec.MethodDiscover, mcp.ErrShutdown)
	}
	select {
	case <-a.done: // by its time-out, too
		if a.err == nil {
			return nil
		}
		return b.clientError(spec.MethodDiscover, a.err)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// asking returns the request for a profile's description that is under way, and
// starts it if there is none; nil after Close.
func (b *Back) asking(p mcp.Profile) *asking {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil
	}
	if a := b.asks[p.Scope]; a != nil {
		return a
	}
	a := &asking{done: make(chan struct{})}
	b.asks[p.Scope] = a
	b.running.Go(func() { // ends by its time-out, or with the link
		a.err = b.discover(context.Background(), p)
		b.mu.Lock()
		delete(b.asks, p.Scope)
		b.mu.Unlock()
		close(a.done)
	})
	return a
}

// discover asks the server what it is and remembers the answer.
func (b *Back) discover(ctx context.Context, p mcp.Profile) error {
	ctx, cancel := context.WithTimeoutCause(ctx, b.opts.Timeouts.Connect, errSlowDiscover)
	defer cancel()
	result, err := b.request(ctx, spec.MethodDiscover, []byte("{}"), p)
	if err != nil {
		err = b.discoverError(ctx, err)
		if ctx.Err() == nil || context.Cause(ctx) == errSlowDiscover {
			b.availability.Report(err)
		}
		return err
	}
	versions := wire.Get(result, "supportedVersions")
	r := mutual(versions)
	if r == "" {
		foreign := newForeignRevision(versions)
		b.opts.Doubt("it " + foreign.Error())
		b.availability.Report(foreign)
		return foreign
	}
	b.negotiated.Store(r)
	b.remember(p.Scope, result)
	b.availability.Report(nil)
	return nil
}

// discoverError says of a refusal that it was not the client's request that was
// refused. What only a server of the other era does is doubted: so does a command
// that ends on the question, or has nothing to say to it.
func (b *Back) discoverError(ctx context.Context, err error) error {
	var refusal *wire.Error
	if !errors.As(err, &refusal) {
		f := upstream.AsFailure(err)
		silent := context.Cause(ctx) == errSlowDiscover
		if b.wasConnected() && (silent || f != nil && f.Fate == upstream.MayHaveRun) {
			b.opts.Doubt(fmt.Sprintf("it did not answer %s: %v", spec.MethodDiscover, upstream.Shorten(transport.Cause(err).Error())))
		}
		return err
	}
	if !spec.ModernError(refusal.Code) {
		b.opts.Doubt(fmt.Sprintf("it answered %s with %v", spec.MethodDiscover, upstream.Shorten(refusal.Error())))
	}
	return wire.Errorf(spec.CodeInternal, "server %q refused %s: %s", b.opts.Name, spec.MethodDiscover, upstream.Shorten(refusal.Error()))
}

var errSlowDiscover = fmt.Errorf("it did not answer %s within timeouts.connect", spec.MethodDiscover)

// remember keeps what a server said of itself to a scope, or to everybody.
func (b *Back) remember(scope string, result []byte) {
	ttl := ttlOf(wire.Get(result, "ttlMs"))
	now := time.Now()
	d := &described{Description: b.descriptionOf(result), said: now, until: now.Add(ttl)}
	if d.Cache.Public {
		scope = everybody
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.known.Add(scope, d)
}

func (b *Back) descriptionOf(result []byte) mcp.Description {
	d := mcp.Description{Capabilities: json.RawMessage("{}")}
	if caps := wire.Get(result, "capabilities"); wire.IsObject(caps) {
		d.Capabilities = caps
	}
	if info := wire.Get(wire.Get(result, "_meta"), spec.MetaServerInfo); wire.IsObject(info) {
		d.ServerInfo = info
	}
	if text := wire.Get(result, "instructions"); len(text) > 0 && text[0] == '"' {
		d.Instructions = text
	}
	scope, _ := wire.GetString(result, "cacheScope")
	d.Cache.Public = scope == spec.ScopePublic
	return d
}

// ttlOf reads a time to live in milliseconds. What makes no sense is zero.
func ttlOf(text []byte) time.Duration {
	ms, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil || ms < 0 {
		return 0
	}
	return time.Duration(min(ms, math.MaxInt64/int64(time.Millisecond))) * time.Millisecond
}

// describe returns the description with the time that it stays fresh for.
func (d *described) describe() *mcp.Description {
	out := d.Description
	out.Cache.TTL = max(0, time.Until(d.until).Milliseconds())
	return &out
}

// lastKnown returns the latest that is remembered for scopes, fresh or not, or nil.
// A scope is never told what was said to another's client.
func (b *Back) lastKnown(scopes ...string) *described {
	b.mu.Lock()
	defer b.mu.Unlock()
	var latest *described
	for _, s := range scopes {
		if d, ok := b.known.Get(s); ok && (latest == nil || d.said.After(latest.said)) {
			latest = d
		}
	}
	return latest
}

// declares reports whether the server declared what method needs, as far as is
// known. A method of no capability, an extension's say, is declared by nothing.
func (b *Back) declares(scope, method string) bool {
	name := spec.Capability(method)
	d := b.lastKnown(scope, everybody, b.probeProfile().Scope)
	return name != "" && (d == nil || mcp.Declares(d.Capabilities, name))
}
