package replicas

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/interop/internal/rig"
)

// TestLine12Left: sessions across replicas, each ended at another than its holder, leave no
// goroutine, descriptor or claim: not one, besides connections between replicas and with
// the engine, which are kept for a while.
func TestLine12Left(t *testing.T) {
	count := size(600, 10_000)
	beside(t)
	over(t, both, func(t *testing.T, engine string) {
		t.Parallel() // most of the time it waits
		w := newWorld(t, setup{engine: engine, warn: true, config: "limits: {client_sessions_each: 10000}"})
		w.comeAndGo(t, 600) // caches, connections, the heap
		before := w.quiet(t)
		keys := len(w.engine.keys())
		w.comeAndGo(t, count)
		w.wantNoMore(t, before)
		rig.Until(t, recovery, "the engine keeps nothing of them", func() string {
			if now := w.engine.keys(); len(now) > keys {
				return fmt.Sprintf("%d keys, and were %d: %.500s", len(now), keys, strings.Join(now, " "))
			}
			return ""
		})
	})
}

// comeAndGo opens sessions and streams at all replicas, uses them through others, and ends
// them. One in ten is with the legacy server, where each has a session of its own.
func (w *world) comeAndGo(t *testing.T, n int) {
	t.Helper()
	sessions := make([]*session, n)
	feeds := make([]*feed, n)
	begun := time.Now()
	err := each(n, func(i int) (err error) {
		f := w.modern
		if i%10 == 0 && i < 5000 {
			f = w.legacy
		}
		holder, other, third := w.replicas[i%3], w.replicas[(i+1)%3], w.replicas[(i+2)%3]
		if sessions[i], err = w.open(t.Context(), holder, f.name, nil); err != nil {
			return err
		}
		if i%5 == 0 {
			if feeds[i], err = sessions[i].follow(other, ""); err != nil {
				return err
			}
			if err := fails(sessions[i].subscribe(t.Context(), third, f.item(i%50))); err != nil {
				return err
			}
		}
		return fails(sessions[i].mark(t.Context(), other, fmt.Sprint("once ", i)))
	})
	if err != nil {
		t.Fatal(err)
	}
	streams := newCrowd(t, w, w.modern, 60, 20)
	opened := time.Since(begun)
	err = each(n, func(i int) error {
		if status := sessions[i].end(t.Context(), w.replicas[(i+1+i/3%2)%3]); status < 200 || status > 299 {
			return fmt.Errorf("DELETE = %d", status)
		}
		if feeds[i] != nil {
			feeds[i].close()
		}
		if i%50 == 0 {
			if a := sessions[i].mark(t.Context(), w.replicas[i%3], "ended"); a.status != http.StatusNotFound {
				return fmt.Errorf("a call of an ended session = %d %s", a.status, a.text)
			}
		}
		return nil
	})
	streams.close()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d sessions opened and used in %v, ended in %v", n, opened.Round(time.Millisecond), (time.Since(begun) - opened).Round(time.Millisecond))
}
