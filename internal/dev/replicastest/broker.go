// Package replicastest has an engine in memory that the gateways of one
// process share. Tests switch off what may fail: the broker for all, or for
// one replica; what the broker remembers; a replica as a whole. It starts no
// goroutine but the engines' own, and takes its time from package time, so that
// it runs in a bubble of testing/synctest.
package replicastest

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/replicas"
	"github.com/mcpbridge/mcpbridge/internal/replicas/member"
	"github.com/mcpbridge/mcpbridge/internal/wake"
)

var errAway = errors.New("the broker of this test is away")

// A Broker is what the engines of a test share.
type Broker struct {
	// mu guards the fields below, and the switches of each handle.
	mu      sync.Mutex
	away    bool
	many    time.Duration // see SetMany
	delay   Delay         // see SetDelay
	calls   int
	reads   int // of records
	members map[string]kept
	claims  map[string]member.Entry
	records map[string]kept
	kept    map[string]member.Entry // by key; what was kept, and its version
	handles []*handle
	last    uint64 // revision
}

type kept struct {
	data  []byte
	ends  time.Time
	count uint64 // of a heartbeat
}

// New returns a Broker that is there, and empty.
func New() *Broker {
	b := new(Broker)
	b.clearLocked()
	return b
}

func (b *Broker) clearLocked() {
	b.members = make(map[string]kept)
	b.claims = make(map[string]member.Entry)
	b.records = make(map[string]kept)
	b.kept = make(map[string]member.Entry)
}

// SetAway has no engine reach the broker, or all again.
func (b *Broker) SetAway(away bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.away = away
}

// SetMany has the broker take some time to list all claims, as one with very many keys.
func (b *Broker) SetMany(takes time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.many = takes
}

// A Delay is how long a question of an engine to the broker takes, and its answer, of which it is
// asked when that sets out. Engines are counted from 0. What says what is asked for, as method of
// member.Store and of whom.
type Delay func(engine int, what string, answer bool) time.Duration

// SetDelay has questions and answers take their time; nil for none. A question arrives even if its
// engine does not wait for the answer any more.
func (b *Broker) SetDelay(delay Delay) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.delay = delay
}

// Empty has the broker forget everything, as one that is started again
// without its disk.
func (b *Broker) Empty() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.clearLocked()
}

// Calls is how often the engines have asked.
func (b *Broker) Calls() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.calls
}

// Reads is how often the engines have asked for a record.
func (b *Broker) Reads() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.reads
}

// Kept counts the claims in the broker, of the living and the dead.
func (b *Broker) Kept() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.claims)
}

// An Engine is the engine of one replica of the test.
type Engine struct {
	*member.Member
	h *handle
}

// Engine returns an engine that has not joined. The test's end closes it.
func (b *Broker) Engine(t testing.TB, opts member.Options) *Engine {
	t.Helper()
	h := b.handle()
	e := &Engine{Member: member.New(h, opts), h: h}
	t.Cleanup(func() {
		e.SetFrozen(false)
		if err := e.Close(context.Background()); err != nil {
			t.Errorf("closing the engine of %s: %v", e.View().Self.Instance, err)
		}
	})
	return e
}

// Open returns a store of the broker, as a package of an engine does.
func (b *Broker) Open(string, *slog.Logger) (any, error) { return b.handle(), nil }

// handle returns a store of the broker.
func (b *Broker) handle() *handle {
	b.mu.Lock()
	defer b.mu.Unlock()
	h := &handle{b: b, n: len(b.handles), hints: wake.NewSignal()}
	b.handles = append(b.handles, h)
	return h
}

// Unjoined returns an engine that has not joined, with default options.
func (b *Broker) Unjoined(t testing.TB) *Engine {
	t.Helper()
	return b.Engine(t, member.Options{})
}

// Join returns an engine of a replica that has joined.
func (b *Broker) Join(t testing.TB, instance, addr string) *Engine {
	t.Helper()
	e := b.Engine(t, member.Options{})
	if err := e.Member.Join(context.Background(), replicas.Replica{Instance: instance, Addr: addr, Version: "test", Revision: replicas.Revision}); err != nil {
		t.Fatal(err)
	}
	return e
}

// SetAway cuts this replica off from the broker, or lets it reach it again.
func (e *Engine) SetAway(away bool) {
	e.h.b.mu.Lock()
	defer e.h.b.mu.Unlock()
	e.h.away = away
}

// SetFrozen stops this engine where it asks the broker, whatever its time
// limits, as SIGSTOP stops a process; or has it go on.
func (e *Engine) SetFrozen(frozen bool) {
	e.h.b.mu.Lock()
	defer e.h.b.mu.Unlock()
	switch {
	case frozen && e.h.frozen == nil:
		e.h.frozen = make(chan struct{})
	case !frozen && e.h.frozen != nil:
		close(e.h.frozen)
		e.h.frozen = nil
	}
}

// Meet has this engine reach the others as long as it is not frozen.
func (e *Engine) Meet(n replicas.Neighbors) { e.Member.Meet(stallable{n, e.h}) }

type stallable struct {
	replicas.Neighbors
	h *handle
}

func (s stallable) Greet(ctx context.Context, to replicas.Replica) error {
	if err := s.h.goOn(ctx); err != nil {
		return err
	}
	return s.Neighbors.Greet(ctx, to)
}

func (s stallable) Tell(ctx context.Context, to replicas.Replica, record []byte) error {
	if err := s.h.goOn(ctx); err != nil {
		return err
	}
	return s.Neighbors.Tell(ctx, to, record)
}

func (s stallable) Ask(ctx context.Context, to replicas.Replica, key string) (uint64, error) {
	if err := s.h.goOn(ctx); err != nil {
		return 0, err
	}
	return s.Neighbors.Ask(ctx, to, key)
}

// goOn waits until the engine is not frozen.
func (h *handle) goOn(ctx context.Context) error {
	h.b.mu.Lock()
	frozen := h.frozen
	h.b.mu.Unlock()
	if frozen == nil {
		return nil
	}
	select {
	case <-frozen:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// handle is the Store of one engine.
type handle struct {
	b      *Broker
	n      int
	hints  wake.Signal
	away   bool          // guarded by b.mu, as is frozen
	frozen chan struct{} // closed when it goes on; nil if it is not frozen
}

// ask has f done at the broker, with its lock held. It returns when the answer has come.
func (h *handle) ask(ctx context.Context, what string, f func()) error {
	h.b.mu.Lock()
	for h.frozen != nil {
		frozen := h.frozen
		h.b.mu.Unlock()
		<-frozen
		h.b.mu.Lock()
	}
	delay := h.b.delay
	if delay == nil {
		defer h.b.mu.Unlock()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return h.arriveLocked(f)
	}
	h.b.mu.Unlock()
	arrived := make(chan error, 1)
	time.AfterFunc(delay(h.n, what, false), func() {
		h.b.mu.Lock()
		defer h.b.mu.Unlock()
		arrived <- h.arriveLocked(f)
	})
	select {
	case err := <-arrived:
		if err != nil {
			return err
		}
		return wait(ctx, delay(h.n, what, true))
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// arriveLocked does what a question asks for, if it arrives.
func (h *handle) arriveLocked(f func()) error {
	h.b.calls++
	if h.away || h.b.away {
		return errAway
	}
	f()
	return nil
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// tellLocked tells all others that something changed.
func (h *handle) tellLocked() {
	for _, other := range h.b.handles {
		if other != h && !other.away && !h.b.away {
			other.hints.Send()
		}
	}
}

func (h *handle) Beat(ctx context.Context, b member.Beat) error {
	return h.ask(ctx, "Beat "+b.Instance, func() {
		if was := h.b.members[b.Instance]; was.count > b.Count && time.Now().Before(was.ends) {
			return
		}
		h.b.members[b.Instance] = kept{b.Record, time.Now().Add(b.Lasts), b.Count}
		if b.News {
			h.tellLocked()
		}
	})
}

func (h *handle) Poll(ctx context.Context, _ []string, _ bool) (snap member.Snapshot, err error) {
	told := member.Snapshot{Members: make(map[string][]byte)}
	err = h.ask(ctx, "Poll", func() {
		told.Claims = maps.Clone(h.b.claims)
		for instance, k := range h.b.members {
			if time.Now().Before(k.ends) {
				told.Members[instance] = k.data
			}
		}
	})
	if err != nil {
		return member.Snapshot{}, err
	}
	return told, nil
}

func (h *handle) Load(ctx context.Context, key string) (member.Entry, error) {
	var e member.Entry
	if err := h.ask(ctx, "Load "+key, func() { e = h.b.claims[key] }); err != nil {
		return member.Entry{}, err
	}
	return e, nil
}

func (h *handle) Swap(ctx context.Context, key string, old member.Entry, value string) (bool, error) {
	done := false
	err := h.ask(ctx, "Swap "+key, func() {
		if done = h.b.claims[key] == old; !done {
			return
		}
		if h.tellLocked(); value == "" {
			delete(h.b.claims, key)
			return
		}
		h.b.last++
		h.b.claims[key] = member.Entry{Value: value, Revision: h.b.last}
	})
	return err == nil && done, err
}

func (h *handle) Claims(ctx context.Context, f func(string, member.Entry)) error {
	var all map[string]member.Entry
	var takes time.Duration
	if err := h.ask(ctx, "Claims", func() { all, takes = maps.Clone(h.b.claims), h.b.many }); err != nil {
		return err
	}
	if takes > 0 {
		if err := wait(ctx, takes); err != nil {
			return err
		}
	}
	for key, e := range all {
		f(key, e)
	}
	return nil
}

func (h *handle) Put(ctx context.Context, key string, data []byte, ttl time.Duration) error {
	data = append([]byte(nil), data...)
	return h.ask(ctx, "Put "+key, func() { h.b.records[key] = kept{data: data, ends: time.Now().Add(ttl)} })
}

func (h *handle) Get(ctx context.Context, key string) ([]byte, error) {
	return h.read(ctx, key, false)
}

func (h *handle) Take(ctx context.Context, key string) ([]byte, error) {
	return h.read(ctx, key, true)
}

func (h *handle) read(ctx context.Context, key string, take bool) ([]byte, error) {
	var k kept
	found := false
	err := h.ask(ctx, "Get "+key, func() {
		h.b.reads++
		k, found = h.b.records[key]
		if take {
			delete(h.b.records, key)
		}
	})
	switch {
	case err != nil:
		return nil, err
	case !found || !time.Now().Before(k.ends):
		return nil, replicas.ErrNotFound
	}
	return k.data, nil
}

func (h *handle) Kept(ctx context.Context, key string) ([]byte, string, error) {
	var e member.Entry
	err := h.ask(ctx, "Kept "+key, func() {
		h.b.reads++
		e = h.b.kept[key]
	})
	if err != nil {
		return nil, "", err
	}
	return []byte(e.Value), versionOf(e), nil
}

func (h *handle) Keep(ctx context.Context, key, version string, data []byte) (kept string, err error) {
	err = h.ask(ctx, "Keep "+key, func() {
		if versionOf(h.b.kept[key]) != version {
			return
		}
		h.b.last++
		e := member.Entry{Value: string(data), Revision: h.b.last}
		h.b.kept[key] = e
		kept = versionOf(e)
	})
	return kept, err
}

func (h *handle) EachKept(ctx context.Context, f func([]byte)) error {
	var all map[string]member.Entry
	if err := h.ask(ctx, "EachKept", func() { all = maps.Clone(h.b.kept) }); err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		f([]byte(all[key].Value))
	}
	return nil
}

func (h *handle) Discard(ctx context.Context, key string) error {
	return h.ask(ctx, "Discard "+key, func() { delete(h.b.kept, key) })
}

// versionOf returns the version of what was kept; empty for nothing.
func versionOf(e member.Entry) string {
	if e.Revision == 0 {
		return ""
	}
	return strconv.FormatUint(e.Revision, 10)
}

func (h *handle) Changed() <-chan struct{}    { return h.hints }
func (h *handle) Close(context.Context) error { return nil }
