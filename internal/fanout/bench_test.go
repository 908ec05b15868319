package fanout_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
)

var sizes = []int{1, 100, 10_000}

func BenchmarkPutNext(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprintf("topics=%d", n), func(b *testing.B) {
			mail, events := fanout.NewMailbox(fanout.MailboxOptions{}), makeEvents(n)
			b.ReportAllocs()
			for b.Loop() {
				for i := range events {
					mail.Put(events[i])
				}
				drain(mail)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/topic")
		})
	}
}

// BenchmarkPutPending puts a pending event again, as into the mailbox of a stream whose
// writer is blocked.
func BenchmarkPutPending(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprintf("topics=%d", n), func(b *testing.B) {
			mail, events := fanout.NewMailbox(fanout.MailboxOptions{}), makeEvents(n)
			for i := range events {
				mail.Put(events[i])
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				mail.Put(events[i%n])
			}
		})
	}
}

// BenchmarkFanOut puts one event into every mailbox, and drains each of them. Package
// index measures how to find the mailboxes.
func BenchmarkFanOut(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprintf("mailboxes=%d", n), func(b *testing.B) {
			ev := makeEvents(1)[0]
			all := make([]*fanout.Mailbox, n)
			for i := range all {
				all[i] = fanout.NewMailbox(fanout.MailboxOptions{})
			}
			b.ReportAllocs()
			for b.Loop() {
				for _, mail := range all {
					mail.Put(ev)
				}
				for _, mail := range all {
					drain(mail)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/mailbox")
		})
	}
}

// The budget of an idle listen stream is 6 KiB. Its mailbox may take a twentieth of that,
// before its first event and after.
func TestIdleMailboxBytes(t *testing.T) {
	const n, most = 10_000, 6 << 10 / 20
	ev := makeEvents(1)[0]
	all := make([]*fanout.Mailbox, n)
	before := heapAlloc()
	for i := range all {
		all[i] = fanout.NewMailbox(fanout.MailboxOptions{})
	}
	fresh := float64(heapAlloc()-before) / n
	for _, mail := range all {
		mail.Put(ev)
		drain(mail)
	}
	used := float64(heapAlloc()-before) / n
	runtime.KeepAlive(all)
	t.Logf("%.0f bytes fresh, %.0f after an event", fresh, used)
	if fresh > most || used > most {
		t.Errorf("an idle mailbox takes %.0f bytes, %.0f after an event, want at most %d", fresh, used, most)
	}
}

func drain(mail *fanout.Mailbox) {
	for _, ok := mail.Next(); ok; _, ok = mail.Next() {
	}
}

func makeEvents(n int) []fanout.Event {
	events := make([]fanout.Event, n)
	for i := range events {
		events[i].Topic = fanout.Topic{Scope: "notebook#4f1c", Kind: fanout.ResourceUpdated, URI: fmt.Sprintf("note://%07d", i)}
	}
	return events
}

func heapAlloc() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
