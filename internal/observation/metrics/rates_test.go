package metrics

import (
	"bytes"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/status"
)

func served(server, client, outcome string, took time.Duration) mcp.Served {
	return mcp.Served{Server: server, Client: client, Method: "tools/call", Era: "modern", Outcome: outcome, Took: took}
}

// Requests are counted in the last minute, hour and day, and leave these in turn.
func TestRates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := New("test")
		for range 98 {
			m.Request(served("docs", "a/1", "ok", 10*time.Millisecond))
		}
		m.Request(served("docs", "b/1", "failed", time.Second))
		m.Request(served("docs", "b/1", "tool_error", time.Second))
		m.Request(served("docs", "b/1", "cancelled", time.Second))
		listen := served("docs", "a/1", "ok", time.Hour)
		listen.Method = "subscriptions/listen"
		m.Request(listen)
		r := m.Rates("docs")
		if len(r.Servers) != 1 || len(r.Clients) != 2 || r.Clients[0].Client != "a/1" || r.Clients[0].Minute.Calls != 98 || r.Clients[1].Minute.Errors != 2 {
			t.Fatalf("rates = %+v", r)
		}
		for _, w := range []status.Window{r.Servers[0].Minute, r.Servers[0].Hour, r.Servers[0].Day} {
			last := w.Slots[len(w.Slots)-1]
			if w.Calls != 101 || w.Errors != 2 || last[0] != 101 || last[1] != 2 || math.Abs(w.Median-10) > 3 || math.Abs(w.Late-1000) > 250 || last[3] != w.Late {
				t.Errorf("a window of slots of %v s = %+v", w.Seconds, w)
			}
		}
		for _, step := range []struct {
			after             time.Duration
			minute, hour, day uint64
		}{{59 * time.Second, 101, 101, 101}, {2 * time.Second, 0, 101, 101}, {time.Hour, 0, 0, 101}, {24 * time.Hour, 0, 0, 0}} {
			time.Sleep(step.after)
			s := m.Rates("").Servers[0]
			if s.Minute.Calls != step.minute || s.Hour.Calls != step.hour || s.Day.Calls != step.day {
				t.Errorf("%v later the calls are %d, %d and %d, want %+v", step.after, s.Minute.Calls, s.Hour.Calls, s.Day.Calls, step)
			}
		}
		m.Request(served("docs", "a/1", "ok", time.Millisecond)) // in a slot that was used before
		if s := m.Rates("").Servers[0]; s.Minute.Calls != 1 || s.Day.Calls != 1 {
			t.Errorf("a day later: %+v", s)
		}
		m.Forget("docs")
		if r := m.Rates("docs"); len(r.Servers)+len(r.Clients) != 0 {
			t.Errorf("a server that is not served any more has rates: %+v", r)
		}
	})
}

// At most 256 clients have a line of their own, and all others of a server are one, which is
// counted and logged. Whoever has sent nothing for a day leaves its line.
func TestRatesOfManyClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		m := New("test")
		m.NameTools(0, slog.New(slog.NewTextHandler(&log, nil)))
		for i := range status.MaxRatedClients + 10 {
			m.Request(served("docs", fmt.Sprint("client", i), "ok", time.Millisecond))
		}
		r := m.Rates("docs")
		if first := r.Clients[0]; len(r.Clients) != status.MaxRatedClients+1 || !first.Others || first.Client != "" || first.Minute.Calls != 10 {
			t.Errorf("%d clients, the first %+v", len(r.Clients), first)
		}
		if hits := m.LimitsHit("docs", 10); len(hits) != 1 || hits[0] != (status.Hit{Limit: "rated_clients", Count: 10}) {
			t.Errorf("limits hit: %+v", hits)
		}
		if n := strings.Count(log.String(), "client is one of others"); n != 1 {
			t.Errorf("%d lines:\n%s", n, log.String())
		}
		time.Sleep(forgotten + time.Minute)
		m.Request(served("docs", "late", "ok", time.Millisecond))
		if r := m.Rates("docs"); len(r.Clients) != 2 || r.Clients[0].Client != "late" {
			t.Errorf("a day later there are %d clients", len(r.Clients))
		}
	})
}

// Each time is in its place of the histogram, and places follow each other.
func TestTimes(t *testing.T) {
	before := 0
	for d := time.Duration(0); d < 20*time.Minute; d += max(d/50, 1000) {
		i := timeIndex(d)
		if i < before || i >= len(times{}) {
			t.Fatalf("%v is at %d, after %d", d, i, before)
		}
		ms := float64(d) / 1e6
		if i < len(times{})-1 && (ms < timeBound(i)-1e-6 || i > 0 && ms >= timeBound(i+1)+1e-6) {
			t.Fatalf("%v is at %d, from %v to %v ms", d, i, timeBound(i), timeBound(i+1))
		}
		before = i
	}
	if timeIndex(-time.Second) != 0 {
		t.Error("a clock that went back has no place")
	}
}

// What counting costs for each request, of one client, and of more than there are places for.
func BenchmarkRates(b *testing.B) {
	for _, clients := range []int{1, 100, 10_000} {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) {
			m := New("test")
			m.NameTools(0, slog.New(slog.DiscardHandler))
			all := make([]mcp.Served, clients)
			for i := range all {
				all[i] = served("docs", fmt.Sprint("client", i), "ok", time.Duration(i)*time.Microsecond)
			}
			last := new(lastClient)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				m.rate(&all[i%clients], last)
			}
		})
	}
}

// The same while all processors count.
func BenchmarkRatesInParallel(b *testing.B) {
	m, last := New("test"), new(lastClient)
	b.RunParallel(func(pb *testing.PB) {
		s := served("docs", "a/1", "ok", time.Millisecond)
		for pb.Next() {
			m.rate(&s, last)
		}
	})
}
