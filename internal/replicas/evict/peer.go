package evict

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/replicas"
	"github.com/mcpbridge/mcpbridge/internal/wake"
)

const (
	// postTimeout bounds one attempt to tell a replica.
	postTimeout = 2 * time.Second
	// maxPending and maxBytes bound the changes that a replica is to be told of, and the
	// bytes of their URIs. Beyond that it is told to forget all results of their servers.
	maxPending = 4096
	maxBytes   = 8 << 20
)

var pauses = wake.Backoff{Min: 100 * time.Millisecond, Max: 2 * time.Second}

// A message is what replicas tell each other. Scopes are those of mcp.PlainScope.
type message struct {
	Events []fanout.Event `json:"events,omitempty"`
	Forget []string       `json:"forget,omitempty"` // servers
	Ask    bool           `json:"ask,omitempty"`    // is there something that could not be told?
}

// A change is what of an event decides on what it makes stale.
type change struct {
	topic fanout.Topic
	uri   string
}

func (c change) size() int { return len(c.topic.Scope) + len(c.topic.URI) + len(c.uri) }

// A peer is a replica that has something to be told. Group.mu guards its fields but the first
// two.
type peer struct {
	g  *Group
	to replicas.Replica

	events  map[change]bool
	bytes   int // of the URIs of events
	forget  map[string]bool
	waiting []chan struct{} // closed when all of that is told
	failing bool            // the last attempt has failed
}

// addLocked adds changes of a server.
func (p *peer) addLocked(server string, events []fanout.Event) {
	if p.events == nil {
		p.events, p.forget = make(map[change]bool), make(map[string]bool)
	}
	for _, ev := range events {
		c := change{ev.Topic, ev.URI}
		c.topic.Scope = mcp.PlainScope(c.topic.Scope)
		if p.events[c] || p.forget[mcp.ServerOf(c.topic.Scope)] {
			continue
		}
		p.events[c] = true
		p.bytes += c.size()
	}
	if len(p.events) > maxPending || p.bytes > maxBytes {
		p.forgetLocked(server)
	}
}

// forgetLocked has the replica forget all results of the servers of what it is to be told of.
func (p *peer) forgetLocked(server string) {
	for c := range p.events {
		p.forget[mcp.ServerOf(c.topic.Scope)] = true
	}
	p.events, p.bytes = make(map[change]bool), 0
	p.g.opts.Metrics.Limit(server, "peer_evictions")
	p.g.many.Warn(p.g.opts.Logger, "many changes wait for a replica: it evicts all cached results of their servers", "upstream", server, "replica", p.to.Instance, "limit", maxPending, "limit_bytes", maxBytes)
}

// waitLocked returns a channel that is closed when the replica has been told all. It is nil if
// the last attempt has failed: nobody waits for such a replica.
func (p *peer) waitLocked() <-chan struct{} {
	if p.failing {
		return nil
	}
	done := make(chan struct{})
	p.waiting = append(p.waiting, done)
	return done
}

// hasNothingLocked reports whether there is nothing to tell.
func (p *peer) hasNothingLocked() bool {
	return len(p.events) == 0 && len(p.forget) == 0 && len(p.waiting) == 0
}

// run tells the replica until there is nothing left, or the replica is gone.
func (p *peer) run() {
	for failures := 0; ; {
		m, waiting, ok := p.take()
		if !ok {
			return
		}
		_, err := p.post(m)
		if err == nil {
			failures = 0
			p.told(waiting)
			continue
		}
		failures++
		if !p.again(m, waiting) {
			p.g.late.Warn(p.g.opts.Logger, "telling a replica what to evict, trying again", "replica", p.to.Instance, "err", err)
		}
		if wake.Wait(p.g.live, wake.Jitter(pauses.After(failures-1))) != nil {
			return
		}
	}
}

// take returns what is to be told. It returns false, and forgets the replica, if that is
// nothing or the replica is gone: it serves no cached results then, see Fresh.
func (p *peer) take() (m message, waiting []chan struct{}, ok bool) {
	_, lives := p.g.opts.Engine.View().Member(p.to.Instance)
	p.g.mu.Lock()
	defer p.g.mu.Unlock()
	if p.hasNothingLocked() || !lives {
		delete(p.g.peers, p.to.Instance)
		for _, done := range p.waiting {
			close(done)
		}
		return m, nil, false
	}
	for c := range p.events {
		m.Events = append(m.Events, fanout.Event{Topic: c.topic, URI: c.uri})
	}
	for server := range p.forget {
		m.Forget = append(m.Forget, server)
	}
	waiting = p.waiting
	p.events, p.bytes, p.forget, p.waiting = nil, 0, nil, nil
	return m, waiting, true
}

// told tells those who wait that the replica has evicted.
func (p *peer) told(waiting []chan struct{}) {
	p.g.mu.Lock()
	defer p.g.mu.Unlock()
	p.failing = false
	for _, done := range waiting {
		close(done)
	}
}

// again keeps what could not be told for the next attempt, and reports whether the last one
// had failed, too.
func (p *peer) again(m message, waiting []chan struct{}) (failing bool) {
	p.g.mu.Lock()
	defer p.g.mu.Unlock()
	failing, p.failing = p.failing, true
	p.addLocked("", m.Events)
	for _, server := range m.Forget {
		p.forget[server] = true
	}
	p.waiting = append(p.waiting, waiting...)
	return failing
}

// post tells or asks the replica. owed says that it could not tell this one something.
func (p *peer) post(m message) (owed bool, err error) {
	body, err := json.Marshal(m)
	if err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(p.g.live, postTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, p.g.opts.URL(p.to, Path), bytes.NewReader(body))
	if err != nil {
		return false, err
	}
	r.Header.Set("Content-Type", "application/json")
	resp, err := p.g.opts.RoundTripper(p.to).RoundTrip(r)
	if err != nil {
		return false, err
	}
	_ = resp.Body.Close() // the status is all
	switch resp.StatusCode {
	case http.StatusNoContent, http.StatusConflict:
		return resp.StatusCode == http.StatusConflict, nil
	}
	return false, fmt.Errorf("it answered with status %d", resp.StatusCode)
}
