package forward

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/mcpbridge/mcpbridge/internal/replicas"
)

const (
	// maxNames bounds the names that this replica wants. Beyond that it forgets the one that
	// was not used for longest.
	maxNames = 16384
	// look is how often it is checked which names were not used for long.
	look = 5 * time.Second
	// claimTimeout bounds a question to the engine that is asked again, or can be done without.
	claimTimeout = time.Second
)

// Claims are what an Engine has of them.
type Claims interface {
	Claim(ctx context.Context, name string) (replicas.Claim, error)
	Holder(name string) (replicas.Claim, bool)
	Release(name string)
}

// tableOptions configure a table. Engine and Claims are required.
type tableOptions struct {
	Engine replicas.Engine
	Claims Claims // those of Engine, or what shares them with others
	// Full is called when a name is forgotten because there are too many. It must not block.
	Full func()
	// Reaches reports whether a replica can be reached. Nil means that one can't again, once it could not.
	Reaches func(replicas.Replica) bool
	Logger  *slog.Logger // nil discards
}

// A table knows which replica serves the calls of a principal, if a server has a state of its
// own: the one that holds the claim on its name, by which it also watches for the others. It
// claims at the first call, and knows the holder of later ones without asking the engine. Without
// claims all replicas choose the same one by [replicas.View.Pick]; while the engine is away, too,
// if all others have answered that they don't hold the name. It is safe for concurrent use.
type table struct {
	opts    tableOptions
	live    context.Context // ends with Close
	stop    context.CancelFunc
	running sync.WaitGroup // the loop

	unclaimed atomic.Bool // the engine keeps no claims
	lost      losses

	// mu guards the fields below. It is held for map work only.
	mu     sync.Mutex
	names  *simplelru.LRU[string, *wanted]
	begun  bool
	closed bool
}

// A wanted name was claimed, if asked is closed.
type wanted struct {
	asked chan struct{}
	calls int           // that run under it: it stays wanted
	used  time.Time     // when the last one began or ended
	hold  time.Duration // how long it stays wanted after that
}

// newTable returns a table. The caller must call Close.
func newTable(o tableOptions) (*table, error) {
	if o.Engine == nil || o.Claims == nil {
		return nil, errors.New("forward: Engine and Claims are required")
	}
	if o.Full == nil {
		o.Full = func() {}
	}
	if o.Reaches == nil {
		o.Reaches = func(replicas.Replica) bool { return false }
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	names, err := simplelru.NewLRU[string, *wanted](maxNames+1, nil) // it never evicts by itself
	if err != nil {
		return nil, err
	}
	t := &table{opts: o, names: names}
	t.live, t.stop = context.WithCancel(context.Background())
	return t, nil
}

// Close gives up all names. Call it after all calls have ended.
func (t *table) Close() {
	t.mu.Lock()
	t.closed = true
	names := t.names.Keys()
	t.names.Purge()
	t.mu.Unlock()
	t.stop()
	t.running.Wait()
	for _, name := range names {
		t.opts.Claims.Release(name)
	}
}

// Find returns the replica that serves calls under a name, which may be this one. If there is
// none, it becomes this one: it holds the name for as long as hold after the last call; see use. While it
// can't be known yet who holds the name, Find waits, for Pace.Takeover at most.
func (t *table) Find(ctx context.Context, name string, hold time.Duration) replicas.Replica {
	view := t.opts.Engine.View()
	end := time.Now().Add(view.Slowest.Takeover())
	if !view.Self.Draining {
		t.want(ctx, end, name, hold)
	}
	c, ok := t.opts.Claims.Holder(name)
	switch {
	case ok:
		return c.Holder
	case view.Self.Draining:
		return view.Choose(name)
	case !view.Away.IsZero():
		if teller, there := t.opts.Engine.Teller(); there {
			return teller // it can claim
		}
		return t.inquire(ctx, name)
	}
	return t.claim(ctx, end, name, t.opts.Engine.Claim) // it is wanted already
}

// inquire returns who serves a name that nobody is known to hold while the engine is away: who says that
// it holds it, or the one that all choose, which serves it only if all others have answered.
func (t *table) inquire(ctx context.Context, name string) replicas.Replica {
	if err := t.opts.Engine.Inquire(ctx, name); err != nil {
		t.opts.Logger.Debug("it is not known whether another replica holds a claim", "claim", replicas.Key(name), "err", err)
	}
	if c, ok := t.opts.Claims.Holder(name); ok {
		return c.Holder
	}
	return t.opts.Engine.View().Choose(name)
}

// Heir returns who serves calls under a name once this replica has ended. It gives the name away
// if it has it, so that nobody else becomes the heir in the meantime.
func (t *table) Heir(name string) replicas.Replica {
	view := t.opts.Engine.View()
	c, ok := t.opts.Claims.Holder(name)
	if ok && c.Holder.Instance != view.Self.Instance && !c.Holder.Draining {
		return c.Holder
	}
	next := view.Choose(name)
	if next.Instance == view.Self.Instance {
		return next
	}
	ctx, cancel := context.WithTimeout(t.live, claimTimeout)
	defer cancel()
	c, err := t.opts.Engine.Yield(ctx, name, next)
	if err != nil || c.Holder.Instance == "" || c.Holder.Draining {
		return next
	}
	return c.Holder
}

// Lost says that a replica that was found can't be reached. It returns the next one: who has
// claimed the name since or, of a name that nobody holds, the one that all choose who know that. A
// claim moves if the engine has not heard its holder for some seconds, which are waited for; one that
// was silent for a moment, and holds the name still, is the next one itself. Until then, and if the
// holder can't be reached from here alone, it may serve others, and Lost reports false.
func (t *table) Lost(ctx context.Context, name string, gone replicas.Replica) (next replicas.Replica, found bool) {
	end := t.lost.since(gone.Instance, time.Now()).Add(gone.Pace.Slower(t.opts.Engine.View().Slowest).Takeover())
	ctx, cancel := context.WithDeadline(ctx, end)
	defer cancel()
	for {
		view := t.opts.Engine.View()
		c, ok := t.opts.Claims.Holder(name)
		switch {
		case ok && c.Holder.Instance != gone.Instance:
			return c.Holder, true
		case ok && t.opts.Reaches(c.Holder):
			t.lost.forget(gone.Instance)
			return c.Holder, true
		case !ok && (!view.Away.IsZero() || !t.wants(name)):
			return view.PickBut(replicas.Key(name), gone.Instance), true
		case !ok:
			if c, err := t.ask(ctx, name); err == nil && c.Holder.Instance != "" && c.Holder.Instance != gone.Instance {
				return c.Holder, true
			}
		}
		if !view.Away.IsZero() {
			return replicas.Replica{}, false
		}
		select {
		case <-view.Changed:
		case <-time.After(lookAgain):
		case <-ctx.Done():
			return replicas.Replica{}, false
		}
	}
}

// Taken has this replica take a name from one that says itself that it does not serve it any
// more. It returns who holds the name then.
func (t *table) Taken(ctx context.Context, name string, from replicas.Replica) (next replicas.Replica, found bool) {
	c, ok := t.opts.Claims.Holder(name)
	if !ok || c.Holder.Instance != from.Instance {
		return t.Lost(ctx, name, from)
	}
	ctx, cancel := context.WithTimeout(ctx, claimTimeout)
	defer cancel()
	c, err := t.opts.Engine.Seize(ctx, name, c)
	return c.Holder, err == nil && c.Holder.Instance != from.Instance
}

const (
	// lookAgain is how often who waits for that looks, beside changes.
	lookAgain = replicas.Heartbeat / 4
	// maxLost bounds the replicas that are known to be unreachable, and lostFor is how long
	// that is known: a request after that waits once more.
	maxLost = 1024
	lostFor = time.Minute
)

// wants reports whether a name is claimed, or about to be.
func (t *table) wants(name string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.unclaimed.Load() && t.names.Contains(name)
}

// ask asks the engine who holds a name that is wanted already.
func (t *table) ask(ctx context.Context, name string) (replicas.Claim, error) {
	ctx, cancel := context.WithTimeout(ctx, claimTimeout)
	defer cancel()
	return t.opts.Engine.Claim(ctx, name)
}

// A losses knows since when replicas can't be reached, so that only the first requests wait. It is
// safe for concurrent use.
type losses struct {
	mu sync.Mutex // guards at; a leaf
	at map[string]time.Time
}

func (l *losses) since(instance string, now time.Time) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	if at, known := l.at[instance]; known && now.Sub(at) < lostFor {
		return at
	}
	if l.at == nil || len(l.at) >= maxLost {
		l.at = make(map[string]time.Time)
	}
	l.at[instance] = now
	return now
}

// forget is told that a replica can be reached.
func (l *losses) forget(instance string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.at, instance)
}

var (
	// errElsewhere says that another replica holds a name, or may.
	errElsewhere = errors.New("another replica serves this by now")
	// errUnheard says that the others have not heard this replica, so that one of them may
	// take what it holds.
	errUnheard = errors.New("the other replicas have not heard this one for a moment")
	// errStranger says that a replica which this one does not know may hold something.
	errStranger = errors.New("this replica does not know the others yet")
	// errUnasked says that this replica may serve what no other one holds, and does not know that.
	errUnasked = errors.New("the engine of the replicas is away, and not all of them have answered whether another one serves this")
)

// Owns returns the epoch in which this replica may serve calls under a name, and acknowledge them:
// look again before that, since only the same epoch counts. It is zero if nobody claims names, or
// can: what nobody holds is served without a claim while no replica hears the engine, by the one
// that all choose, once all others have answered that they don't hold it.
func (t *table) Owns(name string) (epoch uint64, err error) {
	c, ok := t.opts.Claims.Holder(name) // before the view: a replica knows that it drains before another one takes the name
	view := t.opts.Engine.View()
	switch {
	case t.unclaimed.Load():
		return 0, nil
	case !t.opts.Engine.Leased():
		return 0, errUnheard
	case ok && c.Holder.Instance == view.Self.Instance, view.Self.Draining: // which serves what it has until the end
		return c.Epoch, nil
	case ok:
		return 0, errElsewhere
	}
	chosen := !view.Away.IsZero() && view.Choose(name).Instance == view.Self.Instance
	if _, there := t.opts.Engine.Teller(); there {
		return 0, errElsewhere
	}
	switch {
	case chosen && t.opts.Engine.Vacant(name) > 0:
		return 0, nil
	case chosen:
		return 0, errUnasked
	}
	return 0, errUnheard // another one is about to take it, or may, or this one
}

// StillOwns returns nil if what was begun in an epoch may be acknowledged: nobody else can have
// become the one to serve the name since. A replica that is draining ends what it has begun, though
// another one takes the name: it alone has served that.
func (t *table) StillOwns(name string, epoch uint64) error {
	now, err := t.Owns(name)
	if err == nil && now != epoch && epoch != 0 && !t.opts.Engine.View().Self.Draining {
		return errElsewhere
	}
	return err
}

// want notes that a name is used, and claims it the first time, until end.
func (t *table) want(ctx context.Context, end time.Time, name string, hold time.Duration) {
	t.mu.Lock()
	w, known := t.names.Get(name)
	if !known && !t.closed {
		w = &wanted{asked: make(chan struct{})}
		t.names.Add(name, w)
		t.beginLocked()
	}
	if w == nil {
		t.mu.Unlock()
		return
	}
	w.used, w.hold = time.Now(), hold
	extra := t.extraLocked()
	t.mu.Unlock()
	if !known {
		t.claim(ctx, end, name, t.opts.Claims.Claim)
		close(w.asked)
	}
	if extra != "" {
		t.opts.Claims.Release(extra)
		t.opts.Full()
	}
	select {
	case <-w.asked:
	case <-ctx.Done():
	}
}

// use has a name that is wanted stay so while a call runs under it: until done, from which on its hold
// counts.
func (t *table) use(name string) (done func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	w, known := t.names.Get(name)
	if !known {
		return func() {}
	}
	w.calls++
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		w.calls, w.used = w.calls-1, time.Now()
	}
}

// extraLocked forgets the name that was not used for longest, if there are too many.
func (t *table) extraLocked() string {
	if t.names.Len() <= maxNames {
		return ""
	}
	for range maxNames { // one with calls is in use now
		name, w, _ := t.names.GetOldest()
		if w.calls == 0 {
			break
		}
		t.names.Get(name)
	}
	name, _, _ := t.names.RemoveOldest()
	return name
}

// claim asks the engine who holds a name, and returns that; without an answer, the replica
// that all choose.
func (t *table) claim(ctx context.Context, end time.Time, name string, by func(context.Context, string) (replicas.Claim, error)) replicas.Replica {
	ctx, cancel := context.WithDeadline(context.WithoutCancel(ctx), end)
	defer cancel()
	c, err := by(ctx, name)
	if errors.Is(err, replicas.ErrNoClaims) {
		t.unclaimed.Store(true)
	}
	if err != nil {
		return t.opts.Engine.View().Choose(name)
	}
	return c.Holder
}

func (t *table) beginLocked() {
	if !t.begun {
		t.begun = true
		t.running.Go(t.run) // ends with Close
	}
}

// run gives up names that were not used for long.
func (t *table) run() {
	tick := time.NewTicker(look)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-t.live.Done():
			return
		}
		for _, name := range t.idle() {
			t.opts.Claims.Release(name)
		}
	}
}

// idle forgets the names that were not used for long, and returns them.
func (t *table) idle() (names []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, name := range t.names.Keys() {
		if w, _ := t.names.Peek(name); w.calls == 0 && time.Since(w.used) >= w.hold {
			t.names.Remove(name)
			names = append(names, name)
		}
	}
	return names
}
