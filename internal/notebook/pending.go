package notebook

import (
	"slices"
	"sync"

	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wake"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A change is a notification for a subscriber: a list has changed, the resource uri has
// changed, or a listen stream is acknowledged.
type change struct {
	to          *subscriber
	method, uri string
}

// message returns the notification. On a listen stream it has the stream's id.
func (c change) message() []byte {
	var edits []wire.Edit
	if c.uri != "" {
		edits = append(edits, wire.Edit{Name: "uri", Value: wire.Quote(c.uri)})
	}
	if c.method == spec.NotifyAcknowledged {
		edits = append(edits, wire.Edit{Name: "notifications", Value: c.to.honored})
	}
	if !c.to.id.IsZero() {
		id := wire.Edit{Name: spec.MetaSubscriptionID, Value: c.to.id.Append(nil)}
		edits = append(edits, wire.Edit{Name: "_meta", Value: wire.AppendEdited(nil, nil, id)})
	}
	var params []byte
	if len(edits) > 0 {
		params = wire.AppendEdited(nil, nil, edits...)
	}
	return wire.AppendNotification(nil, c.method, params, nil)
}

// A pending set holds the changes that have not been sent to one client. A change is in
// it at most once. So a client that does not read takes no more memory than its
// subscriptions, and does not delay others.
type pending struct {
	ready wake.Signal // there may be changes

	mu     sync.Mutex // guards the fields below
	open   bool       // changes may be sent
	order  []change
	queued map[change]struct{}
}

func newPending() *pending {
	return &pending{ready: wake.NewSignal(), queued: make(map[change]struct{})}
}

// add queues a change unless it is queued. It never blocks.
func (p *pending) add(c change) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, queued := p.queued[c]; queued {
		return
	}
	p.queued[c] = struct{}{}
	p.order = append(p.order, c)
	p.signalLocked()
}

// start lets next return changes, including earlier ones.
func (p *pending) start() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open = true
	p.signalLocked()
}

// remove removes the changes for which drop reports true.
func (p *pending) remove(drop func(change) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.order = slices.DeleteFunc(p.order, func(c change) bool {
		if !drop(c) {
			return false
		}
		delete(p.queued, c)
		return true
	})
}

// next removes and returns the oldest change.
func (p *pending) next() (c change, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.open || len(p.order) == 0 {
		return change{}, false
	}
	c = p.order[0]
	p.order = p.order[1:]
	delete(p.queued, c)
	return c, true
}

func (p *pending) signalLocked() {
	if !p.open {
		return
	}
	p.ready.Send()
}
