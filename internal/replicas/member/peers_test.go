package member

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/replicas"
)

// A world of records, as a store has told them.
type records struct {
	*peers
	t   *testing.T
	now time.Time
}

func newRecords(t *testing.T) *records {
	return &records{newPeers(newJournal(slog.New(slog.DiscardHandler)), replicas.Unobserved{}), t, time.Now()}
}

// hear takes in a snapshot as a round does, without greetings.
func (r *records) hear(now time.Time, snap Snapshot, self string, fresh bool) {
	r.peers.hear(now, snap, replicas.Replica{Instance: self}, fresh)
	r.judge(now, 0, false)
}

func (r *records) tell(beat uint64, left bool) {
	r.t.Helper()
	data, err := encode(replicas.Replica{Addr: "10.0.0.2:2528"}, beat, left, 0)
	if err != nil {
		r.t.Fatal(err)
	}
	r.hear(r.now, Snapshot{Members: map[string][]byte{"bbbb": data}}, "aaaa", false)
}

func (r *records) want(what string, lives bool) {
	r.t.Helper()
	if got := len(r.living()) == 1; got != lives {
		r.t.Errorf("%s: the replica lives: %v, want %v", what, got, lives)
	}
}

// A heartbeat that arrives after the last record of its replica is no return: requests would be
// sent there for three more seconds.
func TestHeartbeatAfterTheEnd(t *testing.T) {
	for name, before := range map[string]uint64{"one that was known": 6, "one that was not": 0} {
		t.Run(name, func(t *testing.T) {
			r := newRecords(t)
			if before > 0 {
				r.tell(before, false)
			}
			r.tell(8, true)
			r.want("after its last record", false)
			r.tell(7, false)
			r.want("after a heartbeat that was overtaken", false)
			r.tell(8, true)
			r.want("after the last record once more", false)
		})
	}
}

// An old record that comes back, from a store that was restored, is no sign of life.
func TestOldRecordComesBack(t *testing.T) {
	r := newRecords(t)
	r.tell(100, false)
	r.now = r.now.Add(replicas.MemberTTL)
	r.tell(50, false)
	r.want("a record of before", false)
	r.tell(101, false)
	r.want("its next heartbeat", true)
}

// What others write below the same keys hurts nobody.
func TestGarbageRecords(t *testing.T) {
	for _, text := range []string{``, `{}`, `null`, `[]`, `{"addr":""}`, `{"addr":7,"beat":1}`, `{"addr":"a:1","beat":-1}`, "\xff"} {
		r := newRecords(t)
		r.hear(r.now, Snapshot{Members: map[string][]byte{"bbbb": []byte(text)}}, "aaaa", false)
		r.want(strconv.Quote(text), false)
	}
	for _, text := range []string{"", " ", "bbbb", "bbbb x", "bbbb -1", "bbbb " + strconv.FormatUint(math.MaxUint64, 10)} {
		if c := parse(text); c != (claim{}) {
			t.Errorf("the claim %q is held by %+v, want nobody", text, c)
		}
	}
}

// A replica of a version that wrote its address as it was configured is reached by a URL.
func TestAddressInBrackets(t *testing.T) {
	r, _, err := decode("BBBBBBBB", []byte(`{"addr":"[10.0.0.7]:2528","beat":1}`))
	if err != nil || r.Addr != "10.0.0.7:2528" {
		t.Errorf("decode = %+v, %v, want 10.0.0.7:2528", r, err)
	}
}

// Records of whoever else writes to the engine take no place of a replica that is known, and
// their lines in the log are gathered.
func TestBoundedRecords(t *testing.T) {
	var log bytes.Buffer
	r := newRecords(t)
	r.journal.logger = slog.New(slog.NewTextHandler(&log, nil))
	r.tell(1, false)
	told := make(map[string][]byte)
	for i := range 20_000 {
		told["junk"+strconv.Itoa(i)] = []byte(`{"addr":"10.0.0.1:` + strconv.Itoa(i+1) + `","beat":1}`)
	}
	r.hear(r.now, Snapshot{Members: told}, "aaaa", false)
	if n := len(r.living()); n != replicas.MaxMembers || !strings.Contains(log.String(), "records=19001") {
		t.Errorf("%d replicas live, want %d; log:\n%s", n, replicas.MaxMembers, &log)
	}
	r.now = r.now.Add(replicas.MemberTTL - 1)
	r.tell(2, false)
	r.now = r.now.Add(time.Minute)
	r.tell(60, false)
	r.want("after the others were silent", true)
	r.now = r.now.Add(time.Minute)
	r.tell(120, false)
	for _, want := range []string{`what="a replica joined" times=950`, `what="a replica is silent" times=949`} {
		if strings.Count(log.String(), want) != 1 {
			t.Errorf("the log does not have %s once", want)
		}
	}
	if lines := strings.Count(log.String(), "\n"); lines > 2*changes+5 {
		t.Errorf("%d lines:\n%s", lines, &log)
	}
}

// A machine that was suspended has no lease: its own clock stood still, and that of the wall went
// on. A wall's clock that is set back ends none.
func TestASuspendedMachineHasNoLease(t *testing.T) {
	for _, tt := range []struct {
		machine, wall time.Duration
		want          bool
	}{
		{time.Second, time.Second, true},
		{time.Second, -time.Hour, true},
		{time.Second, 5 * time.Second, false},
		{5 * time.Second, time.Second, false},
	} {
		if got := recent(tt.machine, tt.wall, 0); got != tt.want {
			t.Errorf("after %v by the machine and %v by the wall a lease lasts: %v, want %v", tt.machine, tt.wall, got, tt.want)
		}
	}
}

// Who is taking a claim from somebody does not say that the engine is away, which would be a promise
// to take none; and who has said so takes none.
func TestTakingAndPromisingExcludeEachOther(t *testing.T) {
	cl := &New(nil, Options{}).claims
	if !cl.beginTaking("key", false) || cl.promise() {
		t.Error("it is taking, and promises to take nothing")
	}
	cl.endTaking()
	if !cl.promise() || cl.beginTaking("key", false) {
		t.Error("it has promised to take nothing, and takes")
	}
}

type crowds struct {
	replicas.Unobserved
	n int
}

func (c *crowds) Crowded()   { c.n++ }
func (c *crowds) Overasked() { c.n++ }

// Calls that wait are bounded: one more is refused, counted and logged.
func TestTooManyWait(t *testing.T) {
	var log bytes.Buffer
	seen := new(crowds)
	m := New(nil, Options{Observer: seen, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	m.state = joined
	m.answered(nil, false)
	w := m.wishes.want("key")
	brief, cancel := context.WithCancel(t.Context())
	cancel()
	for _, waiting := range []int{maxWaiting - 1, maxWaiting} {
		m.claims.waiting = waiting
		_, err := m.claims.await(brief, "key", w, w.decisions, errEarly)
		if full := waiting == maxWaiting; errors.Is(err, errCrowded) != full || errors.Is(err, replicas.ErrAway) != full || (seen.n == 1) != full || strings.Contains(log.String(), "too many calls wait") != full {
			t.Errorf("with %d others: %v, counted %d times; the log:\n%s", waiting, err, seen.n, &log)
		}
		if m.claims.waiting != waiting {
			t.Errorf("%d wait after the call, want %d", m.claims.waiting, waiting)
		}
	}
}

// A promise that was made while a round was under way, which may have asked the engine before, is kept
// by the next one.
func TestAPromiseOutlastsARound(t *testing.T) {
	now := time.Now()
	m := New(nil, Options{Now: func() time.Time { return now }})
	m.clock.heard = now
	before := m.clock.promises
	if !m.claims.promise() {
		t.Fatal("no promise was made")
	}
	for i, known := range []uint64{before, m.clock.promises} {
		if m.claims.beginTaking("key", false) {
			t.Fatal("it takes what it has promised not to")
		}
		m.picture.mu.Lock()
		m.settleClockLocked(now, nil, known, false)
		quiet := m.clock.quiet.Sub(now)
		m.picture.mu.Unlock()
		if last := i == 1; m.clock.failed == last || last && quiet < replicas.MemberTTL {
			t.Errorf("after a round that knew %d promises: failed %v, and it claims nothing anew for %v", known, m.clock.failed, quiet)
		}
	}
	m.picture.mu.Lock() // a short absence in which nobody has asked
	m.clock.failed = true
	m.settleClockLocked(now.Add(replicas.Heartbeat), nil, m.clock.promises, false)
	m.picture.mu.Unlock()
	for _, d := range []time.Duration{0, replicas.MemberTTL, replicas.Heartbeat} {
		now = now.Add(d)
		if takes := m.claims.beginTaking("key", false); takes != (d == replicas.Heartbeat) {
			t.Errorf("it takes what it has not held: %v, %v after %v; want that only once its whole time is over", takes, d, d)
		}
	}
}

// A replica that hears the engine for the first time after a round that failed takes nothing for the
// whole time, if others are reached without it: they don't know it, and one may serve without a claim.
func TestTheFirstAnswerAfterAnAbsence(t *testing.T) {
	for _, reached := range []bool{true, false} {
		now := time.Now()
		m := New(&slowStore{}, Options{Now: func() time.Time { return now }})
		if reached {
			m.Meet(nobodyNear{})
		}
		m.clock.failed = true
		m.round(t.Context())
		if takes := m.claims.beginTaking("key", false); takes == reached {
			t.Errorf("it takes what it has not held: %v, where others are reached: %v", takes, reached)
		}
	}
}

// nobodyNear are no neighbors.
type nobodyNear struct{ replicas.Neighbors }

// What others have said of the engine, and whom they know.
func TestAgreed(t *testing.T) {
	to := []replicas.Replica{{Instance: "bbbb"}, {Instance: "cccc"}}
	says := func(knows ...string) error { return &replicas.AwayError{Knows: knows, Err: replicas.ErrAway} }
	for what, tt := range map[string]struct {
		errs        []error
		away, alike bool
	}{
		"all know the same":          {[]error{says("aaaa", "bbbb", "cccc"), says("aaaa", "bbbb", "cccc")}, true, true},
		"one is gone":                {[]error{says("aaaa", "bbbb", "cccc"), replicas.ErrGone}, true, true},
		"one is of before":           {[]error{replicas.ErrAway, says("aaaa", "bbbb", "cccc")}, true, true},
		"one does not know this one": {[]error{says("aaaa", "bbbb", "cccc"), says("bbbb", "cccc")}, true, false},
		"one knows another":          {[]error{says("aaaa", "bbbb", "cccc", "dddd"), says("aaaa", "bbbb", "cccc")}, false, false},
		"one has written it":         {[]error{says("aaaa", "bbbb", "cccc"), nil}, false, false},
		"one is about to take":       {[]error{says("aaaa", "bbbb", "cccc"), errTaking}, false, false},
	} {
		away, among := agreed("aaaa", to, tt.errs)
		if alike := slices.Equal(among, []string{"aaaa", "bbbb", "cccc"}); away != tt.away || alike != tt.alike || len(among) > 0 != alike {
			t.Errorf("%s: away %v, among %q; want %v, and that all know the same: %v", what, away, among, tt.away, tt.alike)
		}
	}
}

// The names that others are asked for are bounded, in all and at the same time: beyond that they are
// refused, counted and logged.
func TestTooManyAreAsked(t *testing.T) {
	for what, fill := range map[string]func(*inquiries){
		"names": func(qs *inquiries) {
			for i := range maxInquiries {
				q, _ := qs.begin(1, strconv.Itoa(i), time.Now())
				qs.end(q, strconv.Itoa(i), replicas.Claim{}, nil, false)
			}
		},
		"at once": func(qs *inquiries) {
			for range inquiriesAtOnce {
				qs.turns <- struct{}{}
			}
		},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				seen := new(crowds)
				m := New(nil, Options{Observer: seen, Logger: slog.New(slog.NewTextHandler(&log, nil))})
				m.state, m.self.Instance, m.news = joined, "aaaa", true
				m.publishLocked()
				m.clock.heard, m.clock.since = time.Now(), time.Now().Add(-time.Minute)
				m.lease.renew(time.Now(), time.Now(), 0)
				m.lease.extend(time.Now(), time.Now().Add(1), replicas.Replica{}, []string{"aaaa"})
				if err := m.Inquire(t.Context(), "name"); err != nil || m.Vacant("name") != 1 {
					t.Fatalf("Inquire = %v of one alone, and the name is vacant in outage %d", err, m.Vacant("name"))
				}
				delete(m.inquiries.by, replicas.Key("name"))
				fill(m.inquiries)
				err := m.Inquire(t.Context(), "name")
				if !errors.Is(err, errOverasked) || !errors.Is(err, replicas.ErrUnasked) || seen.n != 1 || !strings.Contains(log.String(), "too many names are asked for") || m.Vacant("name") > 0 {
					t.Errorf("Inquire = %v, counted %d times, and the name is vacant in outage %d; the log:\n%s", err, seen.n, m.Vacant("name"), &log)
				}
			})
		})
	}
}
