package replicas

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/interop/internal/rig"
)

// idle is by how much goroutines and descriptors may differ: replicas keep connections to
// each other for a while, now more, now less.
const idle = 30

// TestLine12Left: sessions across replicas, each ended at another than its holder, leave no
// goroutine, descriptor or claim.
func TestLine12Left(t *testing.T) {
	count := size(600, 10_000)
	beside(t)
	over(t, both, func(t *testing.T, engine string) {
		t.Parallel() // most of the time it waits
		w := newWorld(t, setup{engine: engine, warn: true, config: "limits: {client_sessions_each: 10000}"})
		w.comeAndGo(t, 600) // caches, connections, the heap
		before := w.quiet()
		keys := len(w.engine.keys())
		w.comeAndGo(t, count)
		for i, r := range w.replicas {
			rig.Until(t, 2*time.Minute, r.name+" has nothing left", func() string {
				w.clients.CloseIdleConnections()
				now := r.gauges()
				for name, slack := range map[string]float64{"go_goroutines": idle, "process_open_fds": idle, ownClaims: 0, otherClaims: 0} {
					if now[name] > before[i][name]+slack {
						return fmt.Sprintf("%s = %v, and was %v", name, now[name], before[i][name])
					}
				}
				return ""
			})
			now := r.gauges()
			t.Logf("%s: goroutines %v to %v, descriptors %v to %v, claims %v to %v", r.name, before[i]["go_goroutines"], now["go_goroutines"],
				before[i]["process_open_fds"], now["process_open_fds"], before[i][ownClaims], now[ownClaims])
		}
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

// quiet returns the gauges once nothing is in flight and idle connections have gone.
func (w *world) quiet() (all []map[string]float64) {
	w.t.Helper()
	for _, r := range w.replicas {
		last, since := r.gauges(), time.Now()
		rig.Until(w.t, time.Minute, r.name+" comes to rest", func() string {
			w.clients.CloseIdleConnections()
			now := r.gauges()
			if now["go_goroutines"] < last["go_goroutines"] || now["process_open_fds"] < last["process_open_fds"] || now[ownClaims] != last[ownClaims] {
				last, since = now, time.Now()
			}
			if time.Since(since) < 4*time.Second {
				return "it does not stand still yet"
			}
			return ""
		})
		all = append(all, last)
	}
	return all
}
