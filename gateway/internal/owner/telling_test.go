package owner

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/budget"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
)

var (
	errAway    = errors.New("away")
	errUnknown = errors.New("no such record")
	errNone    = errors.New("no records")
)

// engine keeps records for the replicas of a test.
type engine struct {
	mu   sync.Mutex
	kept map[string][]byte
	err  error // of each question; nil: it answers
	puts int
}

func (e *engine) set(change func(*engine)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	change(e)
}

// count returns how many records were to be put.
func (e *engine) count() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.puts
}

func (e *engine) Put(_ context.Context, key string, record []byte, _ time.Duration) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.puts++
	if e.err == nil {
		e.kept[key] = record
	}
	return e.err
}

func (e *engine) Get(_ context.Context, key string) ([]byte, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if record, known := e.kept[key]; known || e.err != nil {
		return record, e.err
	}
	return nil, errUnknown
}

// newReplica returns the Guard of one replica.
func (e *engine) newReplica(t *testing.T) *Guard {
	t.Helper()
	memory := budget.New(1 << 20)
	g, err := New(Options{
		Server: "here", Full: func() {}, Account: func(s mcp.Share) *budget.Account { return memory.Account(s) },
		Shared: &Shared{Records: e, Unknown: []error{errUnknown, errNone}}, Unshared: func(error) {},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	return g
}

func wantForeign(t *testing.T, what string, g *Guard, ids ...string) {
	t.Helper()
	for _, id := range ids {
		if foreign, err := g.isForeign(t.Context(), mcp.Share{Principal: bob}, id); !foreign || err != nil {
			t.Errorf("%s: alice's task %s is foreign to bob: %v, %v", what, id, foreign, err)
		}
	}
}

// Whose a task is, another replica learns though the engine was away when it was created, has forgotten
// everything since, or only what it was told last, as the server does that takes over from another one.
func TestT03OtherReplicasLearnWhoseATaskIs(t *testing.T) {
	for what, happens := range map[string]func(e *engine, note func(id string)){
		"the engine was away": func(e *engine, note func(string)) {
			e.set(func(e *engine) { e.err = errAway })
			note("a")
			note("b")
			time.Sleep(time.Minute)
			e.set(func(e *engine) { e.err = nil })
		},
		"the engine was emptied": func(e *engine, note func(string)) {
			note("a")
			note("b")
			time.Sleep(time.Hour)
			e.set(func(e *engine) { e.kept = make(map[string][]byte) })
		},
		"the engine was emptied once more": func(e *engine, note func(string)) {
			note("a")
			for range 3 {
				time.Sleep(time.Minute)
				e.set(func(e *engine) { e.kept = make(map[string][]byte) })
			}
			note("b")
		},
		"another server of the engine took over": func(e *engine, note func(string)) {
			note("a")
			time.Sleep(time.Minute)
			note("b")
			e.set(func(e *engine) { delete(e.kept, (&Guard{server: "here"}).recordOf(keyOfTask("b"))) })
		},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := &engine{kept: make(map[string][]byte)}
				creates, other := e.newReplica(t), e.newReplica(t)
				happens(e, func(id string) { creates.note(t.Context(), mcp.Share{Principal: alice}, id) })
				time.Sleep(2 * tellEvery)
				wantForeign(t, what, other, "a", "b")
			})
		})
	}
}

// An engine that keeps no records is asked once for each task, and records older than they last are not put
// again.
func TestT03WhatIsNotToldAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &engine{kept: make(map[string][]byte), err: errNone}
		g := e.newReplica(t)
		for i := range 3 {
			g.note(t.Context(), mcp.Share{Principal: alice}, fmt.Sprint(i))
		}
		time.Sleep(time.Minute)
		if n := e.count(); n != 3 {
			t.Errorf("%d puts of 3 tasks", n)
		}
		e.set(func(e *engine) { e.err = nil })
		g.note(t.Context(), mcp.Share{Principal: alice}, "old")
		time.Sleep(sharedTTL + time.Minute)
		e.set(func(e *engine) { e.kept, e.puts = make(map[string][]byte), 0 })
		time.Sleep(time.Minute)
		if n := e.count(); n != 0 {
			t.Errorf("%d puts of what is over", n)
		}
	})
}
