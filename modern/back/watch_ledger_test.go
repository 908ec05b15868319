package back

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/watchtest"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	"github.com/mcpbridge/mcpbridge/modern/protocol"
	"github.com/mcpbridge/mcpbridge/modern/watch"
)

// A ledger is a server that reports changes all the time, and knows which.
type ledger struct {
	// mu guards the fields below; changes are written with it held, so that they are
	// on every stream in the order of their numbers.
	mu      sync.Mutex
	last    map[string]int // the number of each URI's last change
	at      map[string][]time.Time
	opens   map[string][]begun
	streams map[int]*ledgerStream
	opened  int
	peak    int // streams open at a time
}

// A begun is when a stream was opened that has a URI, and the last change before.
type begun struct {
	at   time.Time
	last int
}

func newLedger() *ledger {
	return &ledger{last: make(map[string]int), at: make(map[string][]time.Time), opens: make(map[string][]begun), streams: make(map[int]*ledgerStream)}
}

type ledgerStream struct {
	id   wire.ID
	uris map[string]bool
	send func(format string, args ...any)
}

// listen serves one listen request until its client leaves.
func (l *ledger) listen(w http.ResponseWriter, r *http.Request, m wire.Message) {
	f, err := protocol.ReadFilter(wire.Get(m.Params, "notifications"))
	if err != nil {
		upFail(w, http.StatusBadRequest, m.ID, spec.CodeInvalidParams, "")
		return
	}
	s := &ledgerStream{id: m.ID, uris: make(map[string]bool), send: upStream(w)}
	for _, uri := range f.URIs {
		s.uris[uri] = true
	}
	l.mu.Lock()
	s.send(ackText, protocol.AppendFilter(nil, f), m.ID)
	l.opened++
	key := l.opened
	l.streams[key] = s
	for uri := range s.uris {
		l.opens[uri] = append(l.opens[uri], begun{time.Now(), l.last[uri]})
	}
	l.peak = max(l.peak, len(l.streams))
	l.mu.Unlock()
	<-r.Context().Done()
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.streams, key)
}

// change reports one more change of a URI to every stream that has it.
func (l *ledger) change(uri string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last[uri]++
	l.at[uri] = append(l.at[uri], time.Now())
	for _, s := range l.streams {
		if s.uris[uri] {
			s.send(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":%q,"_meta":{"io.modelcontextprotocol/subscriptionId":%s,"n":%d}}}`,
				uri, s.id, l.last[uri])
		}
	}
}

func (l *ledger) number(uri string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last[uri]
}

func (l *ledger) open() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.streams)
}

// openedAfter reports whether a stream that has a URI was opened soon after a change of it: that may
// have been on its way on another stream when the new one had the next change.
func (l *ledger) openedAfter(uri string, n int) bool {
	return slices.ContainsFunc(l.opens[uri], func(o begun) bool { return o.last >= n && o.at.Sub(l.at[uri][n-1]) < 5*time.Second })
}

// A tally counts what is told of each change.
type tally struct {
	l    *ledger
	mu   sync.Mutex
	told map[string]map[int]int // by URI and number
	last map[string]int         // the number of each URI's change that was told last
	back map[string]int         // how often an earlier one came after that
	all  map[string]int         // up to which number changes were said to have been missed, by URI
}

func (a *tally) Publish(ev fanout.Event) {
	n, err := strconv.Atoi(string(wire.Get(ev.Meta, "n")))
	last := a.l.number(ev.Topic.URI)
	a.mu.Lock()
	defer a.mu.Unlock()
	if err != nil {
		a.all[ev.Topic.URI] = last
		return
	}
	if a.told[ev.Topic.URI] == nil {
		a.told[ev.Topic.URI] = make(map[int]int)
	}
	a.told[ev.Topic.URI][n]++
	if n <= a.last[ev.Topic.URI] {
		a.back[ev.Topic.URI]++
	}
	a.last[ev.Topic.URI] = n
}

func (a *tally) Wanted(fanout.Topic) bool { return true }
func (a *tally) End(fanout.Topic, error)  {}

func (a *tally) has(uri string, n int) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.told[uri][n] > 0
}

// The whole way: net/http on both sides of loopback, a thousand sessions, and changes
// all the time.
func TestL2M21LedgerOverHTTP(t *testing.T) {
	bridgetest.CheckLeaks(t)
	const sessions, uris = 1000, 200
	l := newLedger()
	p := newUpPeer(t)
	p.on[spec.MethodListen] = l.listen
	b := p.back(Options{})
	told := &tally{l: l, told: make(map[string]map[int]int), all: make(map[string]int), last: make(map[string]int), back: make(map[string]int)}
	o := b.opts.Options
	o.Changes = told
	ws := watch.New(&o, b.openListen, b.isStarting, false)
	defer ws.Close()

	names := make([]string, uris)
	for i := range names {
		names[i] = fmt.Sprintf("file:///%d", i)
	}
	ctx, stop := context.WithCancel(t.Context())
	next := make(chan struct{}) // some changes later
	var firing sync.WaitGroup
	firing.Go(func() { // ends by stop
		for i := 0; ctx.Err() == nil; i++ {
			l.change(names[rand.N(uris)])
			if i%20 == 0 {
				select {
				case next <- struct{}{}:
				case <-time.After(time.Millisecond):
				}
			}
		}
	})
	since := newFirsts(l)
	var watching sync.WaitGroup
	for n := range sessions {
		watching.Go(func() {
			for _, i := range rand.Perm(uris) {
				if n < 3 {
					<-next // the first ones take their time
				}
				topic := watchtest.URITopics(listenProfile.Scope, names[i])[0]
				honored, _, err := ws.Watch(t.Context(), listenProfile, []fanout.Topic{topic})
				if err != nil || len(honored) != 1 {
					t.Errorf("Watch(%s) = %v, %v", topic.URI, honored, err)
					return
				}
				since.note(topic.URI)
			}
		})
		if n == 2 {
			watching.Wait()
		}
	}
	watching.Wait()
	bridgetest.Eventually(t, "4 upstream streams at most", func() bool { return l.open() <= 4 })
	bridgetest.Eventually(t, "one upstream stream", func() bool { return l.open() == 1 })
	stop()
	firing.Wait()
	for _, uri := range names {
		l.change(uri) // the last of each
		bridgetest.Eventually(t, "the last change of "+uri, func() bool { return told.has(uri, l.number(uri)) })
	}
	sum := since.check(t, told)
	t.Logf("%d sessions, %d URIs: %d listen streams in all, %d at a time, 1 once settled; %+v", sessions, uris, l.opened, l.peak, sum)
	if l.opened < 10 {
		t.Errorf("%d streams opened: the test has seen too few merges", l.opened)
	}
}

// firsts are the numbers of the first changes that somebody must have been told of.
type firsts struct {
	l  *ledger
	mu sync.Mutex
	of map[string]int
}

func newFirsts(l *ledger) *firsts { return &firsts{l: l, of: make(map[string]int)} }

// note says that somebody was promised the URI's changes.
func (f *firsts) note(uri string) {
	f.mu.Lock()
	_, noted := f.of[uri]
	f.mu.Unlock()
	if noted {
		return
	}
	n := f.l.number(uri) + 1
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, noted = f.of[uri]; !noted {
		f.of[uri] = n
	}
}

// A sum says how changes were told: how many had to be, how many were told twice, how many only by
// the next one, since they were on their way when streams were merged, and how many as missed: on a
// busy machine some may be unread when a stream is closed.
type sum struct{ changes, twice, next, missed int }

// check compares what was told with the ledger. With each stream that is opened for a URI it goes
// back once to what was told, and once more if the last change of the former one was about to be told
// then: what comes on the former one later is not told.
func (f *firsts) check(t *testing.T, told *tally) (s sum) {
	var wrong []string
	for uri, first := range f.of {
		for n := first; n <= f.l.last[uri]; n++ {
			s.changes++
			switch got := told.told[uri][n]; {
			case got == 2:
				s.twice++
			case got == 0 && n <= told.all[uri]:
				s.missed++
			case got == 0 && f.l.openedAfter(uri, n):
				s.next++
			case got != 1:
				wrong = append(wrong, fmt.Sprintf("change %d of %s told %d times (promised from %d)", n, uri, got, first))
			}
		}
		if most := 2 * len(f.l.opens[uri]); told.back[uri] > most {
			wrong = append(wrong, fmt.Sprintf("%d times an earlier change of %s told after a later one, want %d at most", told.back[uri], uri, most))
		}
	}
	slices.Sort(wrong)
	if len(wrong) > 0 {
		t.Errorf("%d of %d changes not told as they should, as:\n%s", len(wrong), s.changes, strings.Join(wrong[:min(5, len(wrong))], "\n"))
	}
	return s
}
