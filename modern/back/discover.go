package back

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// publicScope returns the scope of a public description. It is shared by all profiles of a
// principal, but not by principals: what the server sent for one is not shown to another.
// The gateway's own requests are anonymous. No profile's scope has the same prefix.
func publicScope(p mcp.Profile) string {
	if p.Principal == mcp.Anonymous {
		p.Principal = ""
	}
	return "*" + string(p.Principal)
}

// A cachedDescription is a response to server/discover.
type cachedDescription struct {
	mcp.Description
	receivedAt time.Time
	freshUntil time.Time // until then it need not be requested again
}

// discovery requests and caches descriptions of the server. Safe for concurrent use.
type discovery struct {
	b      *Back            // sends the requests
	probed *mcp.Description // see Options.Probed

	running sync.WaitGroup // the requests

	// mu guards the fields below.
	mu       sync.Mutex
	cache    *simplelru.LRU[string, *cachedDescription] // the last descriptions, by scope
	requests map[string]*discoverRequest                // requests in flight, by scope
	closed   bool
}

func newDiscovery(b *Back) (*discovery, error) {
	known, err := simplelru.NewLRU[string, *cachedDescription](maxScopes, nil)
	if err != nil {
		return nil, err
	}
	return &discovery{b: b, probed: b.opts.Probed, cache: known, requests: make(map[string]*discoverRequest)}, nil
}

// A discoverRequest is a server/discover in flight, for which all requests of its profile
// wait.
type discoverRequest struct {
	done chan struct{} // closed when err is set
	err  error
}

// describe returns the server's description with all its capabilities. The caller owns it.
func (k *discovery) describe(ctx context.Context, req *mcp.Request) (*mcp.Description, error) {
	scope := req.Profile.Scope
	if d := k.latest(scope, publicScope(req.Profile)); d != nil && time.Now().Before(d.freshUntil) {
		return d.describe(), nil
	}
	if d := k.probedDescription(); d != nil {
		return d, nil
	}
	err := k.refresh(ctx, req.Profile)
	if d := k.latest(scope, publicScope(req.Profile), k.b.probeProfile().Scope); d != nil {
		return d.describe(), nil
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return nil, err
}

// probedDescription returns a probe's description until the server was reached or not;
// then nil. Clients must not cache it, because the probe was another client.
func (k *discovery) probedDescription() *mcp.Description {
	if state, _ := k.b.availability.State(); k.probed == nil || state != upstream.Starting {
		return nil
	}
	d := *k.probed
	d.Cache = mcp.CacheHint{}
	return &d
}

// refresh sends server/discover, and waits for the response.
func (k *discovery) refresh(ctx context.Context, p mcp.Profile) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if state, err := k.b.availability.State(); state == upstream.Down && k.b.availability.Want() {
		return k.b.clientError(spec.MethodDiscover, err)
	}
	a := k.request(p)
	if a == nil {
		return k.b.clientError(spec.MethodDiscover, mcp.ErrShutdown)
	}
	select {
	case <-a.done: // by its time-out, too
		if a.err == nil {
			return nil
		}
		return k.b.clientError(spec.MethodDiscover, a.err)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// request returns the request in flight for a profile's description, and sends one if
// there is none; nil after Close.
func (k *discovery) request(p mcp.Profile) *discoverRequest {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return nil
	}
	if a := k.requests[p.Scope]; a != nil {
		return a
	}
	a := &discoverRequest{done: make(chan struct{})}
	k.requests[p.Scope] = a
	k.running.Go(func() { // ends by its time-out, or with the link
		a.err = k.discover(context.Background(), p)
		k.mu.Lock()
		delete(k.requests, p.Scope)
		k.mu.Unlock()
		close(a.done)
	})
	return a
}

// discover sends server/discover and caches the description.
func (k *discovery) discover(ctx context.Context, p mcp.Profile) error {
	ctx, cancel := context.WithTimeoutCause(ctx, k.b.opts.Settings.Timeouts.Connect, errSlowDiscover)
	defer cancel()
	result, err := k.b.request(ctx, spec.MethodDiscover, []byte("{}"), p)
	if err != nil {
		err = k.discoverError(ctx, err)
		if ctx.Err() == nil || context.Cause(ctx) == errSlowDiscover {
			k.b.availability.Report(err)
		}
		return err
	}
	versions := wire.Get(result, "supportedVersions")
	r := mutual(versions)
	if r == "" {
		foreign := newUnsupportedRevision(versions)
		k.b.opts.Doubt("it " + foreign.Error())
		k.b.availability.Report(foreign)
		return foreign
	}
	k.b.negotiated.Store(r)
	k.remember(p, result)
	k.b.availability.Report(nil)
	return nil
}

// discoverError returns the error for clients, which does not look like a response to
// their request. If a modern server would not have failed like this, the era is in doubt:
// for example if a command exits on the request or does not respond.
func (k *discovery) discoverError(ctx context.Context, err error) error {
	var refusal *wire.Error
	if !errors.As(err, &refusal) {
		f := upstream.AsFailure(err)
		silent := context.Cause(ctx) == errSlowDiscover
		if k.b.link.connected() && (silent || f != nil && f.Fate == upstream.MayHaveRun) {
			k.b.opts.Doubt(fmt.Sprintf("it did not answer %s: %v", spec.MethodDiscover, mcp.Shorten(transport.Cause(err).Error())))
		}
		return err
	}
	if !spec.ModernError(refusal.Code) {
		k.b.opts.Doubt(fmt.Sprintf("it answered %s with %v", spec.MethodDiscover, mcp.Shorten(refusal.Error())))
	}
	return wire.Errorf(spec.CodeInternal, "server %q refused %s: %s", k.b.opts.Name, spec.MethodDiscover, mcp.Shorten(refusal.Error()))
}

var errSlowDiscover = fmt.Errorf("it did not answer %s within timeouts.connect", spec.MethodDiscover)

// remember caches the description for a profile.
func (k *discovery) remember(p mcp.Profile, result []byte) {
	ttl := ttlOf(wire.Get(result, "ttlMs"))
	now := time.Now()
	d := &cachedDescription{Description: descriptionOf(result), receivedAt: now, freshUntil: now.Add(ttl)}
	scope := p.Scope
	if d.Cache.Public {
		scope = publicScope(p)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.cache.Add(scope, d)
}

func descriptionOf(result []byte) mcp.Description {
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

// ttlOf reads a time to live in milliseconds. Invalid values are zero.
func ttlOf(text []byte) time.Duration {
	ms, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil || ms < 0 {
		return 0
	}
	return time.Duration(min(ms, math.MaxInt64/int64(time.Millisecond))) * time.Millisecond
}

// describe returns the description with the remaining time to live.
func (d *cachedDescription) describe() *mcp.Description {
	out := d.Description
	out.Cache.TTL = max(0, time.Until(d.freshUntil).Milliseconds())
	return &out
}

// latest returns the latest cached description of the scopes, fresh or not, or nil. It
// never looks at other scopes, whose descriptions may depend on their clients.
func (k *discovery) latest(scopes ...string) *cachedDescription {
	k.mu.Lock()
	defer k.mu.Unlock()
	var latest *cachedDescription
	for _, s := range scopes {
		if d, ok := k.cache.Get(s); ok && (latest == nil || d.receivedAt.After(latest.receivedAt)) {
			latest = d
		}
	}
	return latest
}

// declares reports whether the server has declared the capability that a method needs, as
// far as is known. It is false for a method without a capability, for example one of an
// extension.
func (k *discovery) declares(p mcp.Profile, method string) bool {
	name := spec.Capability(method)
	d := k.latest(p.Scope, publicScope(p), k.b.probeProfile().Scope)
	return name != "" && (d == nil || mcp.Declares(d.Capabilities, name))
}

// close waits for the requests in flight, which end with the link. Call stop first.
func (k *discovery) close() { k.running.Wait() }

// stop prevents further requests.
func (k *discovery) stop() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.closed = true
}
