package replicas

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/interop/internal/rig"
)

// A company is sessions of legacy clients that live through faults behind the balancer, half of
// them on either server: each calls now and then and follows a resource. Others come new and go, and
// some write to the command lone, of which all replicas together have one process. It counts what
// a fault costs.
type company struct {
	w       *world
	door    *replica // the balancer
	ledgers *ledgers // of lone; nil without
	members []*member
	stop    context.CancelFunc
	running sync.WaitGroup

	mu      sync.Mutex // guards the fields below
	toll    toll
	touches map[string][]entry // by URI
	writes  []write
}

// companySize is how many sessions live.
const companySize = 60

// A toll is what was counted.
type toll struct {
	calls     int
	newcomers int      // sessions that were opened, used once and ended
	notFound  int      // 404s
	failed    int      // other errors
	refused   int      // 503s that said to try again, after which another try was answered
	ended     int      // streams that ended, which were opened anew
	said      []string // the first of the errors
}

// A member is one of the sessions.
type member struct {
	*session
	c   *company
	uri string

	mu    sync.Mutex // guards feeds
	feeds []*feed
}

// A write is an acknowledged call of lone.
type write struct {
	nonce        string
	begun, ended time.Time
}

// lone returns ledgers, and the entry of servers for the command that a company writes to.
func lone(t *testing.T) (*ledgers, string) {
	l := &ledgers{t, t.TempDir()}
	return l, l.command("lone", programs.legacy)
}

// gather opens the sessions of a company, which lives until end.
func (w *world) gather(t *testing.T, l *ledgers) *company {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	c := &company{w: w, door: w.door(), ledgers: l, members: make([]*member, companySize), stop: stop, touches: make(map[string][]entry)}
	t.Cleanup(c.disperse)
	if err := each(companySize, func(i int) (err error) {
		c.members[i], err = c.admit(i)
		return err
	}); err != nil {
		t.Fatalf("a session through the balancer: %v", err)
	}
	for _, m := range c.members {
		c.running.Go(func() { m.callOften(ctx) }) // ends with stop
		c.running.Go(func() { m.listen(ctx) })    // ends with stop
	}
	for range 2 {
		c.running.Go(func() { c.comeAndGo(ctx) }) // ends with stop
		if l != nil {
			c.running.Go(func() { c.write(ctx) }) // ends with stop
		}
	}
	for _, f := range []*fixture{w.legacy, w.modern} {
		c.running.Go(func() { c.change(ctx, t, f) }) // ends with stop
	}
	return c
}

// door is the balancer, as a replica to which requests are sent.
func (w *world) door() *replica {
	return &replica{w: w, name: "the balancer", listen: strings.TrimPrefix(w.balancer.base, "http://")}
}

func (c *company) admit(i int) (*member, error) {
	f := []*fixture{c.w.legacy, c.w.modern}[i%2]
	s, err := c.w.open(context.Background(), c.door, f.name, nil)
	if err != nil {
		return nil, err
	}
	m := &member{session: s, c: c, uri: f.item(i / 2 % 15)}
	if a, ok := c.try("a subscription", func() answer { return s.subscribe(context.Background(), c.door, m.uri) }); !ok {
		return nil, fmt.Errorf("subscribing: %s", a.problem())
	}
	events, err := s.follow(c.door, "")
	if err != nil {
		return nil, err
	}
	m.feeds = append(m.feeds, events)
	s.once = true
	return m, nil
}

// disperse ends all that runs.
func (c *company) disperse() {
	c.stop()
	c.running.Wait()
	for _, m := range c.members {
		if m == nil {
			continue
		}
		for _, f := range m.feeds {
			f.close()
		}
	}
}

// pause waits for about d.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d/2 + rand.N(d)):
	case <-ctx.Done():
	}
}

// patient is how long a client tries again what was refused with 503: longer than any replica may
// take until it is clear who serves. One that answers later than that, since it got no processor, is
// asked again all the same.
const patient = 3 * time.Second

// try sends a request until it is not refused any more, and counts what came of it.
func (c *company) try(whose string, send func() answer) (a answer, ok bool) {
	begun, refused := time.Now(), 0
	for a = send(); a.status == http.StatusServiceUnavailable && (time.Since(begun) < patient || refused == 0); a = send() {
		refused++
		time.Sleep(200 * time.Millisecond)
	}
	c.mu.Lock()
	c.toll.refused += refused
	c.mu.Unlock()
	return a, c.note(whose, a)
}

// note counts what came of a request.
func (c *company) note(whose string, a answer) (ok bool) {
	problem := a.problem()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.toll.calls++
	switch {
	case problem == "":
		return true
	case a.status == http.StatusNotFound:
		c.toll.notFound++
	default:
		c.toll.failed++
	}
	if len(c.toll.said) < 5 {
		c.toll.said = append(c.toll.said, fmt.Sprintf("%s, begun at %s: %s", whose, clock(time.Now().Add(-a.took).UnixNano()), problem))
	}
	return false
}

// callOften calls until ctx ends. A session that is lost counts once.
func (m *member) callOften(ctx context.Context) {
	for n := 0; ctx.Err() == nil; n++ {
		a, _ := m.c.try("a session on "+m.server, func() answer {
			return m.mark(context.Background(), m.c.door, fmt.Sprint("company ", n))
		})
		if a.status == http.StatusNotFound {
			return
		}
		pause(ctx, time.Second)
	}
}

// listen follows the stream, and opens it anew when it ends, until ctx ends.
func (m *member) listen(ctx context.Context) {
	for last := m.feeds[0]; ; {
		select {
		case <-last.done:
		case <-ctx.Done():
			return
		}
		m.c.mu.Lock()
		m.c.toll.ended++
		m.c.mu.Unlock()
		id := ""
		for _, e := range last.all() {
			id = e.id
		}
		for last = nil; last == nil && ctx.Err() == nil; pause(ctx, 200*time.Millisecond) {
			last, _ = m.follow(m.c.door, id) // its former stream may be about to end; what it misses counts
		}
		if last == nil {
			return
		}
		m.mu.Lock()
		m.feeds = append(m.feeds, last)
		m.mu.Unlock()
	}
}

// comeAndGo opens sessions, uses each once and ends it, until ctx ends.
func (c *company) comeAndGo(ctx context.Context) {
	for n := 0; ctx.Err() == nil; n++ {
		server := []string{"legacy", "modern"}[n%2]
		s, err := c.w.open(context.Background(), c.door, server, nil)
		if err != nil {
			c.note("a new session on "+server, answer{err: err})
		} else {
			s.once = true
			c.try("a new session on "+server, func() answer { return s.mark(context.Background(), c.door, fmt.Sprint("new ", n)) })
			s.end(context.Background(), c.door)
		}
		c.mu.Lock()
		c.toll.newcomers++
		c.mu.Unlock()
		pause(ctx, time.Second)
	}
}

// change changes resources until ctx ends, each once in some 3 s.
func (c *company) change(ctx context.Context, t *testing.T, f *fixture) {
	for n := 0; ctx.Err() == nil; n++ {
		touched, err := f.tell().Touch(1, f.item(n%15))
		if err != nil {
			t.Errorf("a change: %v", err)
			return
		}
		c.mu.Lock()
		c.touches[touched[0].URI] = append(c.touches[touched[0].URI], touched...)
		c.mu.Unlock()
		pause(ctx, 200*time.Millisecond)
	}
}

// write calls lone until ctx ends.
func (c *company) write(ctx context.Context) {
	for ctx.Err() == nil {
		var w write
		if _, ok := c.try("a write", func() answer {
			w = write{nonce: fmt.Sprint("write ", lastID.Add(1)), begun: time.Now()}
			return c.w.mark(context.Background(), c.door.url("lone"), w.nonce)
		}); ok {
			w.ended = time.Now()
			c.mu.Lock()
			c.writes = append(c.writes, w)
			c.mu.Unlock()
		}
		pause(ctx, 300*time.Millisecond)
	}
}

// wantUnharmed ends the company, and wants a fault to have cost nothing.
func (c *company) wantUnharmed(t *testing.T) {
	t.Helper()
	c.stop()
	c.running.Wait()
	var longest time.Duration
	var lost []string
	rig.Until(t, recovery, "all changes are told to all", func() string {
		if longest, lost = c.owed(); len(lost) > 0 {
			return fmt.Sprintf("%s, and %d others", lost[0], len(lost)-1)
		}
		return ""
	})
	more, fewer := c.balance()
	l := c.toll
	t.Logf("%d calls, %d of them 404, %d failed otherwise, 503 came %d times before an answer; %d new sessions; %d streams ended; changes: 0 lost, %d told once more, %d with another one, %v at most; %d writes",
		l.calls, l.notFound, l.failed, l.refused, l.newcomers, l.ended, more, fewer, longest.Round(time.Millisecond), len(c.writes))
	if l.notFound+l.failed > 0 {
		t.Errorf("%d requests were 404, %d failed otherwise, want none:\n%s", l.notFound, l.failed, strings.Join(l.said, "\n"))
	}
	if full && l.refused > 0 { // beside other tests, on a busy machine, a replica may not answer in time
		t.Errorf("%d requests were refused with 503 before they were answered, want none", l.refused)
	}
	if c.ledgers != nil {
		c.ledgers.wantOneOwner(t, "lone", c.writes)
	}
}

// events returns what a session was told of its resource, in order.
func (m *member) events() (told []event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, f := range m.feeds {
		told = append(told, f.with(`"`+m.uri+`"`)...)
	}
	slices.SortFunc(told, func(a, b event) int { return int(a.at - b.at) })
	return told
}

// owed returns how long a change took at most until a session was told, and the changes that
// none was told of at all, or later.
func (c *company) owed() (longest time.Duration, lost []string) {
	for _, m := range c.members {
		told, next := m.events(), 0
		for _, e := range c.touches[m.uri] {
			for next < len(told) && told[next].at < e.At {
				next++
			}
			if next == len(told) {
				lost = append(lost, fmt.Sprintf("a session on %s was not told of %s, changed at %s", m.server, m.uri, clock(e.At)))
				break
			}
			longest = max(longest, time.Duration(told[next].at-e.At))
		}
	}
	return longest, lost
}

// balance returns how many changes were told more than once, and how many with a later one.
func (c *company) balance() (more, fewer int) {
	for _, m := range c.members {
		n := len(m.events()) - len(c.touches[m.uri])
		more, fewer = more+max(n, 0), fewer+max(-n, 0)
	}
	return more, fewer
}

// wantOneOwner wants each acknowledged write to have been done once, and no process to have
// acknowledged one that was begun after another one had acknowledged later ones than it.
func (l *ledgers) wantOneOwner(t *testing.T, name string, writes []write) {
	t.Helper()
	by, lost, twice := l.calls(name), 0, 0
	type span struct{ firstEnd, lastBegin time.Time }
	spans := make(map[string]*span)
	for _, w := range writes {
		files := by[w.nonce]
		switch len(files) {
		case 0:
			lost++
			continue
		case 1:
		default:
			twice++
		}
		for _, file := range files {
			s := spans[file]
			if s == nil {
				s = &span{w.ended, w.begun}
				spans[file] = s
			}
			if w.ended.Before(s.firstEnd) {
				s.firstEnd = w.ended
			}
			if w.begun.After(s.lastBegin) {
				s.lastBegin = w.begun
			}
		}
	}
	for a, one := range spans {
		for b, other := range spans {
			if a < b && one.firstEnd.Before(other.lastBegin) && other.firstEnd.Before(one.lastBegin) {
				t.Errorf("two processes acknowledge writes at the same time: %s from %v to %v, %s from %v to %v", a, one.firstEnd, one.lastBegin, b, other.firstEnd, other.lastBegin)
			}
		}
	}
	t.Logf("%d acknowledged writes, by %d processes one after the other", len(writes), len(spans))
	if lost+twice > 0 || len(spans) == 0 {
		t.Errorf("of %d acknowledged writes by %d processes %d were not done, %d twice", len(writes), len(spans), lost, twice)
	}
}
