package handover

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/replicas"
	"github.com/mcpbridge/mcpbridge/internal/wake"
	legacyfront "github.com/mcpbridge/mcpbridge/legacy/front"
)

const (
	// maxBatch bounds the sessions that are taken out at the same time, and maxText what one
	// request has of them, in bytes, if it has more than one.
	maxBatch = 64
	maxText  = 1 << 20
	// pause is how often sessions are looked at that were in use, failedPause how long it
	// takes until a replica is asked again that did not go on with a session: package peer asks one
	// that was silent a second after it last did not answer.
	pause       = 20 * time.Millisecond
	failedPause = time.Second
	// maxFailures bounds how often in a row, once this replica ends: one that is there again is heard by
	// the fourth time.
	maxFailures = 4
	// sendTimeout bounds one request.
	sendTimeout = 5 * time.Second
	// maxReceipt bounds the response to it, in bytes.
	maxReceipt = 1 << 20
)

// A Pace says how far this replica has come to its end.
type Pace struct {
	// Hurry is closed once sessions are handed over whose clients have not read a response.
	Hurry <-chan struct{}
	// Ending is closed once there will be no new sessions.
	Ending <-chan struct{}
}

// Leave hands over the sessions of servers, until ctx ends, or none is left while Ending.
func (g *Group) Leave(ctx context.Context, servers []Server, p Pace) {
	if _, err := g.opts.Engine.Get(ctx, keyOf("")); errors.Is(err, replicas.ErrNoClaims) {
		return // others would not find them
	}
	defer g.tellLeft(servers)
	for failures := 0; ; {
		last, wait := wake.Closed(p.Ending), pause
		left, failed := g.pass(ctx, servers, wake.Closed(p.Hurry))
		failures++
		if failed {
			wait = failedPause
		} else {
			failures = 0
		}
		if last && (left == 0 || failures >= maxFailures || !g.hasHeirs()) {
			return
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
	}
}

// tellLeft logs and counts the sessions that no other replica goes on with.
func (g *Group) tellLeft(servers []Server) {
	for _, s := range servers {
		if !s.Stateless() {
			continue
		}
		if n := s.Front.Detachable(); n > 0 {
			g.opts.Metrics.HandedOver("ended", "", n)
			g.opts.Logger.Warn("client sessions end with this replica: their clients initialize anew", "upstream", s.Name, "sessions", n)
		}
	}
}

// hasHeirs reports whether another replica lives, and goes on to do so.
func (g *Group) hasHeirs() bool {
	view := g.opts.Engine.View()
	return slices.ContainsFunc(view.Members, func(r replicas.Replica) bool { return r.Instance != view.Self.Instance && !r.Draining })
}

// pass hands over the sessions that can be at this moment. It returns how many are left, and
// whether some were refused.
func (g *Group) pass(ctx context.Context, servers []Server, hurry bool) (left int, failed bool) {
	heirs := g.hasHeirs()
	for _, s := range servers {
		if !s.Stateless() {
			continue
		}
		refused := false // sessions of this server
		for heirs && ctx.Err() == nil && !refused {
			batch := s.Front.Detach(maxBatch, hurry)
			if len(batch) == 0 {
				break
			}
			refused = g.handOver(ctx, s, batch) < len(batch)
		}
		failed = failed || refused
		left += s.Front.Detachable()
	}
	return left, failed
}

// handOver hands over sessions that were taken out, and restores those that no replica goes on
// with.
func (g *Group) handOver(ctx context.Context, s Server, batch []*legacyfront.Detached) (moved int) {
	view := g.opts.Engine.View()
	to := make(map[replicas.Replica]*delivery)
	for _, d := range batch {
		h := d.Handover()
		r, next := newRecord(h), s.Heir(h)
		if next.Instance == view.Self.Instance || next.Draining {
			d.Restore() // there is nobody else
			continue
		}
		p := to[next]
		if p != nil && p.size+r.size() > maxText {
			moved += g.deliver(ctx, s, next, p)
			p = nil
		}
		if p == nil {
			p = new(delivery)
			to[next] = p
		}
		p.add(d, r)
	}
	for next, p := range to {
		moved += g.deliver(ctx, s, next, p)
	}
	return moved
}

// A delivery is what one request hands over.
type delivery struct {
	parcel
	sessions []*legacyfront.Detached
	size     int
}

func (p *delivery) add(d *legacyfront.Detached, r record) {
	p.Sessions, p.sessions = append(p.Sessions, r), append(p.sessions, d)
	p.size += r.size()
}

// deliver hands over sessions to one replica.
func (g *Group) deliver(ctx context.Context, s Server, to replicas.Replica, p *delivery) (moved int) {
	back := g.forget(p.Sessions) // before the other puts its records
	got, err := g.send(ctx, s, to, &p.parcel)
	var why error
	for i, d := range p.sessions {
		if refused := got.refusal(i, err); refused != nil {
			why = refused
			g.regain(back[i])
			d.Restore()
			continue
		}
		moved++
		d.Adopted(to.Instance)
	}
	if moved > 0 {
		g.opts.Metrics.HandedOver("given", "", moved)
		g.opts.Logger.Info("client sessions handed over", "upstream", s.Name, "replica", to.Instance, "sessions", moved)
	}
	if failed := len(p.sessions) - moved; failed > 0 {
		g.opts.Metrics.HandedOver("failed", failure(err), failed)
		g.failed.Warn(g.opts.Logger, "client sessions not handed over", "upstream", s.Name, "replica", to.Instance, "sessions", failed, "err", why)
	}
	return moved
}

// failure is why sessions were not handed over, for metrics. err is that of sending them.
func failure(err error) string {
	if err != nil {
		return "unanswered"
	}
	return "refused"
}

// send sends sessions to a replica, and returns which of them it does not go on with.
func (g *Group) send(ctx context.Context, s Server, to replicas.Replica, p *parcel) (*receipt, error) {
	text, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, g.opts.URL(to, Path+s.Name), bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := g.opts.RoundTripper(to, nil).RoundTrip(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }() // it was read, or is of no use
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("HTTP status %d", resp.StatusCode)
	}
	got := new(receipt)
	return got, json.NewDecoder(io.LimitReader(resp.Body, maxReceipt)).Decode(got)
}
