package handover

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/replicas"
	"github.com/mcpbridge/mcpbridge/internal/wake"
)

const (
	// maxPlaces bounds the sessions whose places are known.
	maxPlaces = 16384
	// maxAsking bounds the places that are looked up at the same time.
	maxAsking = 64
	// sameFor is how long it stands that no living replica has a session, unless what is known
	// of the replicas changes before.
	sameFor = time.Second
	// findTimeout bounds looking up a place, and findPatience bounds it where nobody else could say
	// who has the session: an engine that is slow or away is asked again until then.
	findTimeout  = time.Second
	findPatience = 15 * time.Second
)

// again are the pauses between these tries.
var again = wake.Backoff{Min: 50 * time.Millisecond, Max: 500 * time.Millisecond}

// A place is which replica goes on with a session.
type place struct {
	instance string // empty if none was known
	asked    time.Time
	changed  <-chan struct{} // of the view
}

// A placeRecord is what the engine keeps of a place. Members that a later version adds are
// skipped.
type placeRecord struct {
	At string `json:"at"` // instance
}

// ErrUnknown says that it can't be found out at this moment which replica has a session.
var ErrUnknown = errors.New("it is not known at the moment which replica holds this session")

// Find returns the instance that goes on with a session, whose own replica is draining or
// gone; empty if there is none. The engine is asked once for each session, and again once in a
// while if there is none or that ends. One that does not answer is asked again for up to fifteen
// seconds if patient. The error wraps ErrUnknown.
func (g *Group) Find(ctx context.Context, id string, patient bool) (instance string, err error) {
	key, view := sha256.Sum256([]byte(id)), g.opts.Engine.View()
	known, ok := g.places.Get(key)
	if ok && (stays(view, known.instance) || known.changed == view.Changed && time.Since(known.asked) < sameFor) {
		return known.instance, nil
	}
	bound := findTimeout
	if patient {
		bound = findPatience
	}
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	at, err := g.ask(ctx, id, patient)
	if err != nil {
		return "", errors.Join(ErrUnknown, err)
	}
	g.places.Add(key, place{at, time.Now(), view.Changed})
	return at, nil
}

// Forget has Find ask again for a session: the replica that it has named is gone.
func (g *Group) Forget(id string) { g.places.Remove(sha256.Sum256([]byte(id))) }

// ask asks the engine who goes on with a session, and again until ctx is done if patient.
func (g *Group) ask(ctx context.Context, id string, patient bool) (instance string, err error) {
	for failures := 0; ; failures++ {
		at, err := g.load(ctx, id)
		switch {
		case err == nil:
			return at.At, nil
		case !patient, errors.Is(err, errUnreadable), errors.Is(err, replicas.ErrClosed), wake.Wait(ctx, again.After(failures)) != nil:
			return "", err
		}
	}
}

// errUnreadable says that a record is not what a replica has put.
var errUnreadable = errors.New("the record of its place can't be read")

// load asks the engine for the record of a place, which is empty if there is none.
func (g *Group) load(ctx context.Context, id string) (at placeRecord, err error) {
	select {
	case g.asking <- struct{}{}:
		defer func() { <-g.asking }()
	case <-ctx.Done():
		return at, context.Cause(ctx)
	}
	text, err := g.opts.Engine.Get(ctx, keyOf(id))
	switch {
	case errors.Is(err, replicas.ErrNotFound), errors.Is(err, replicas.ErrNoClaims):
		return at, nil
	case err != nil:
		return at, err
	}
	if json.Unmarshal(text, &at) != nil {
		return placeRecord{}, errUnreadable
	}
	return at, nil
}

// stays reports whether a replica lives, and goes on to do so.
func stays(view *replicas.View, instance string) bool {
	r, lives := view.Member(instance)
	return lives && !r.Draining
}
