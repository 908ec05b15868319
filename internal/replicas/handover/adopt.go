package handover

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/wake"
	legacyfront "github.com/mcpbridge/mcpbridge/legacy/front"
)

const (
	// maxParcel bounds the body of a request, in bytes.
	maxParcel = 16 << 20
	// maxPuts bounds the records that are put at the same time.
	maxPuts = 16
	// settleTimeout bounds how long the receipt waits until others can find the sessions.
	settleTimeout = 2 * time.Second
)

// settlePauses are the pauses between attempts to record places.
var settlePauses = wake.Backoff{Min: 50 * time.Millisecond, Max: 500 * time.Millisecond}

// adopted is a session of another replica that goes on here.
type adopted struct {
	id    legacyfront.SessionID
	front *legacyfront.Front

	put     time.Time // when its place was last recorded; zero if that has failed
	checked bool      // the record was there some time later
}

var errStateful = errors.New("the server keeps something of its sessions, or is not known well enough yet")

// Why a session is refused, for metrics.
const (
	reasonStateful  = "stateful"  // see errStateful
	reasonMalformed = "malformed" // it can't be read
	reasonFull      = "full"      // there is no room for it, or this replica ends too
)

// Serve takes sessions of another replica, from, whose envelope was opened.
func (g *Group) Serve(w http.ResponseWriter, r *http.Request, from string, s Server) {
	var p parcel
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxParcel))
	if err == nil {
		err = json.Unmarshal(body, &p)
	}
	if err != nil || r.Method != http.MethodPost || len(p.Sessions) > maxBatch {
		http.Error(w, http.StatusText(http.StatusBadRequest), http.StatusBadRequest)
		return
	}
	got := receipt{Refused: make([]string, len(p.Sessions))}
	var taken []*adopted
	for i := range p.Sessions {
		a, reason, err := adopt(s, &p.Sessions[i])
		if err != nil {
			got.Refused[i] = err.Error()
			g.opts.Metrics.HandedOver("refused", reason, 1)
			continue
		}
		taken = append(taken, a)
	}
	g.add(taken)
	g.settle(r.Context(), taken)
	g.tellTaken(from, s.Name, len(taken), got.Refused)
	text, _ := json.Marshal(got) // strings alone
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(text) // the other has gone if it fails: then its sessions are here
}

// tellTaken logs and counts what was taken, and logs why the others were not.
func (g *Group) tellTaken(from, server string, taken int, refused []string) {
	if taken > 0 {
		g.opts.Metrics.HandedOver("taken", "", taken)
		g.opts.Logger.Info("client sessions of another replica go on here", "upstream", server, "replica", from, "sessions", taken)
	}
	if n := len(refused) - taken; n > 0 {
		g.failed.Warn(g.opts.Logger, "client sessions of another replica refused", "upstream", server, "replica", from, "sessions", n, "err", last(refused))
	}
}

// last returns the last text that is not empty.
func last(texts []string) (found string) {
	for _, text := range texts {
		found = cmp.Or(text, found)
	}
	return found
}

// adopt goes on with a session, or returns why not.
func adopt(s Server, r *record) (a *adopted, reason string, err error) {
	if !s.Stateless() {
		return nil, reasonStateful, errStateful
	}
	h, err := r.handover()
	if err != nil {
		return nil, reasonMalformed, err
	}
	if err := s.Front.Adopt(h); err != nil {
		return nil, reasonFull, err
	}
	s.Took(h)
	return &adopted{id: h.ID, front: s.Front}, "", nil
}

// add remembers sessions that go on here, and has their records renewed.
func (g *Group) add(all []*adopted) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, a := range all {
		g.adopted[a.id] = a
	}
	if len(all) > 0 && !g.begun && !g.closed {
		g.begun = true
		g.running.Go(g.renew) // ends with Close
	}
}

// forget forgets sessions that are handed over to another replica, and returns what regain
// needs: nil for sessions that were opened here.
func (g *Group) forget(all []record) []*adopted {
	g.mu.Lock()
	defer g.mu.Unlock()
	out := make([]*adopted, len(all))
	for i, r := range all {
		id := legacyfront.SessionID(r.ID)
		out[i] = g.adopted[id]
		delete(g.adopted, id)
	}
	return out
}

// regain is for a session that was not handed over. The other may have recorded another place.
func (g *Group) regain(a *adopted) {
	if a != nil {
		g.mu.Lock()
		a.put = time.Time{}
		g.mu.Unlock()
		g.add([]*adopted{a})
	}
}

// settle records the places of sessions that were just taken, and tries again for a moment while the
// engine is there: once their former replica has ended, nobody else can say where they are.
func (g *Group) settle(ctx context.Context, all []*adopted) {
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	for failures := 0; ; failures++ {
		g.record(ctx, all)
		if all = g.unrecorded(all); len(all) == 0 || !g.opts.Engine.View().Away.IsZero() || wake.Wait(ctx, settlePauses.After(failures)) != nil {
			return
		}
	}
}

// unrecorded returns the sessions whose places could not be recorded. One that was handed on meanwhile
// is another replica's to record.
func (g *Group) unrecorded(all []*adopted) []*adopted {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(all), func(a *adopted) bool { return g.adopted[a.id] != a || !a.put.IsZero() })
}

// record puts the places of sessions into the engine.
func (g *Group) record(ctx context.Context, all []*adopted) {
	text, _ := json.Marshal(placeRecord{g.opts.Engine.View().Self.Instance}) // a string alone
	g.each(all, func(a *adopted) {
		err := g.opts.Engine.Put(ctx, keyOf(string(a.id)), text, recordTTL)
		if err != nil {
			if ctx.Err() == nil {
				g.hidden.Warn(g.opts.Logger, "other replicas can't find sessions that go on here, trying again", "in", look, "err", err)
			}
			return
		}
		g.mu.Lock()
		defer g.mu.Unlock()
		a.put, a.checked = time.Now(), false
	})
}

// each calls f with some at the same time, and waits.
func (g *Group) each(all []*adopted, f func(*adopted)) {
	var wg sync.WaitGroup
	next := make(chan *adopted)
	for range min(maxPuts, len(all)) {
		wg.Go(func() {
			for a := range next {
				f(a)
			}
		})
	}
	for _, a := range all {
		next <- a
	}
	close(next)
	wg.Wait()
}

// renew renews the records of places, puts those again that the engine has lost, and deletes those of sessions that have ended.
func (g *Group) renew() {
	tick := time.NewTicker(look)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-g.opts.Engine.View().Changed: // the engine may be back, and empty
		case <-g.live.Done():
			return
		}
		g.check()
		due, over := g.due()
		g.record(g.live, due)
		g.each(over, func(a *adopted) {
			_, _ = g.opts.Engine.Take(g.live, keyOf(string(a.id))) // it ends by itself else
		})
	}
}

// due returns the sessions whose records are to be renewed, and those that have ended, which
// it forgets.
func (g *Group) due() (due, over []*adopted) {
	g.mu.Lock()
	all := make([]*adopted, 0, len(g.adopted))
	for _, a := range g.adopted {
		all = append(all, a)
	}
	g.mu.Unlock()
	for _, a := range all {
		lives := a.front.Has(a.id)
		g.mu.Lock()
		switch {
		case g.adopted[a.id] != a:
		case !lives:
			delete(g.adopted, a.id)
			over = append(over, a)
		case time.Since(a.put) >= renewEvery:
			due = append(due, a)
		}
		g.mu.Unlock()
	}
	return due, over
}
