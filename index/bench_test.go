package index

import (
	"fmt"
	"testing"
	"time"
)

const (
	hot     = "file:///hot"
	million = 1_000_000
)

func BenchmarkAppendSubscribers(b *testing.B) {
	for _, n := range []int{1, 100, 10_000} {
		b.Run(fmt.Sprintf("subs=%d", n), func(b *testing.B) {
			x, dst := hotKey(n), make([]int, 0, n)
			b.ReportAllocs()
			for b.Loop() {
				dst = x.AppendSubscribers(dst[:0], hot)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/sub")
		})
	}
}

// BenchmarkJoinLeave adds one subscriber to a key that has n, and removes it.
func BenchmarkJoinLeave(b *testing.B) {
	for _, n := range []int{1, 100, 10_000} {
		b.Run(fmt.Sprintf("subs=%d", n), func(b *testing.B) {
			x := hotKey(n)
			b.ReportAllocs()
			for b.Loop() {
				x.Subscribe(hot, -1)
				x.Unsubscribe(hot, -1)
			}
		})
	}
}

func BenchmarkPrune(b *testing.B) {
	for _, n := range []int{1, 100, 10_000} {
		b.Run(fmt.Sprintf("keys=%d", n), func(b *testing.B) {
			x := New[int, int](Options{})
			b.ReportAllocs()
			for b.Loop() {
				for key := range n {
					x.Subscribe(key, 1)
				}
				x.Prune(1)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/key")
		})
	}
}

// BenchmarkEvent measures the look-up that each event needs, among few URIs and among
// many, in the index and in a plain map.
func BenchmarkEvent(b *testing.B) {
	for _, n := range []int{10, million} {
		x := fill(makeURIs(n), makeSubscribers(perKey), func(uri string) string { return uri })
		plain, asked := x.Snapshot(), randomURIs(1<<16, n)
		dst := make([]*subscriber, 0, perKey)
		b.Run(fmt.Sprintf("index/uris=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				dst = x.AppendSubscribers(dst[:0], asked[i%len(asked)])
			}
		})
		b.Run(fmt.Sprintf("map/uris=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				dst = append(dst[:0], plain[asked[i%len(asked)]]...)
			}
		})
	}
}

// BenchmarkLookupRatio compares the look-up of an event's subscribers with that in a
// plain map without a reverse direction. It looks up the same URIs in both, in turns, and
// takes the best turn of each, because noise on the machine only adds time.
func BenchmarkLookupRatio(b *testing.B) {
	x := fill(makeURIs(million), makeSubscribers(perKey), func(uri string) string { return uri })
	plain, asked, dst := x.Snapshot(), randomURIs(100_000, million), make([]*subscriber, 0, perKey)
	indexed := func() {
		for _, uri := range asked {
			dst = x.AppendSubscribers(dst[:0], uri)
		}
	}
	mapped := func() {
		for _, uri := range asked {
			dst = append(dst[:0], plain[uri]...)
		}
	}
	best := [2]time.Duration{time.Hour, time.Hour}
	for b.Loop() {
		best[0] = min(best[0], timed(indexed))
		best[1] = min(best[1], timed(mapped))
	}
	b.ReportMetric(0, "ns/op") // it would be the sum of both
	b.ReportMetric(float64(best[0])/float64(best[1]), "ratio")
	b.ReportMetric(2, "at-most")
}

func timed(f func()) time.Duration {
	start := time.Now()
	f()
	return time.Since(start)
}

// BenchmarkParallel mixes ten look-ups with one join and one leave.
func BenchmarkParallel(b *testing.B) {
	x := fill(makeURIs(10_000), makeSubscribers(100), func(uri string) string { return uri })
	asked := randomURIs(1<<12, 10_000)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		me, dst := new(subscriber), make([]*subscriber, 0, perKey)
		for i := 0; pb.Next(); i++ {
			key := asked[i%len(asked)]
			switch i % 12 {
			case 10:
				x.Subscribe(key, me)
			case 11:
				x.Unsubscribe(asked[(i-1)%len(asked)], me)
			default:
				dst = x.AppendSubscribers(dst[:0], key)
			}
		}
	})
}

func hotKey(n int) *Index[string, int] {
	x := New[string, int](Options{})
	for i := range n {
		x.Subscribe(hot, i)
	}
	return x
}
