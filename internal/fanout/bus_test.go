package fanout

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
)

func TestBusCallsInSubscriptionOrder(t *testing.T) {
	b := NewBus(BusOptions{})
	if err := b.Publish(t.Context(), Event{Topic: todo}); err != nil {
		t.Errorf("publishing to nobody: %v", err)
	}
	var heard []string
	listen := func(name string) func() {
		return b.Subscribe(func(ev Event) { heard = append(heard, name+" "+ev.Topic.URI) })
	}
	listen("one")
	cancel := listen("two")
	listen("three")
	publish(t, b, todo)
	cancel()
	cancel()
	publish(t, b, diary)
	want := []string{"one note://todo", "two note://todo", "three note://todo", "one note://diary", "three note://diary"}
	if !slices.Equal(heard, want) {
		t.Errorf("heard %q, want %q", heard, want)
	}
}

func TestBusIsolatesAPanic(t *testing.T) {
	var log bytes.Buffer
	for _, logger := range []*slog.Logger{nil, slog.New(slog.NewTextHandler(&log, nil))} {
		b := NewBus(BusOptions{Logger: logger})
		heard := 0
		b.Subscribe(func(Event) { panic("boom") })
		b.Subscribe(func(Event) { heard++ })
		publish(t, b, todo)
		publish(t, b, todo)
		if heard != 2 {
			t.Errorf("the listener after one that panics heard %d of 2 events", heard)
		}
	}
	if got := strings.Count(log.String(), "panic=boom"); got != 2 {
		t.Errorf("%d panics logged, want 2:\n%s", got, &log)
	}
}

func TestBusListenerMayCallTheBus(t *testing.T) {
	b := NewBus(BusOptions{})
	var heard []string
	var cancels [2]func()
	cancels[0] = b.Subscribe(func(ev Event) {
		heard = append(heard, "first")
		cancels[0]() // itself
		cancels[1]() // one that would be next
		b.Subscribe(func(Event) { heard = append(heard, "late") })
		publish(t, b, ev.Topic)
	})
	cancels[1] = b.Subscribe(func(Event) { heard = append(heard, "second") })
	publish(t, b, todo)
	if want := []string{"first", "late"}; !slices.Equal(heard, want) {
		t.Errorf("heard %q, want %q", heard, want)
	}
}

func TestBusPublishChecksTheKindAlone(t *testing.T) {
	b, heard := NewBus(BusOptions{}), 0
	b.Subscribe(func(Event) { heard++ })
	if err := b.Publish(t.Context(), Event{Topic: Topic{Scope: "s"}}); err == nil || heard != 0 {
		t.Errorf("invalid kind: error %v, heard by %d", err, heard)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := b.Publish(gone, Event{Topic: tools}); err != nil || heard != 1 {
		t.Errorf("context done: error %v, heard by %d, want the event to be delivered", err, heard)
	}
}

func TestBusConcurrentUse(t *testing.T) {
	const goroutines, rounds = 6, 500
	b := NewBus(BusOptions{})
	constant := make(chan Event, goroutines*rounds)
	b.Subscribe(func(ev Event) { constant <- ev })
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			for i := range rounds {
				cancel := b.Subscribe(func(Event) {})
				publish(t, b, Topic{fmt.Sprint(g), ResourceUpdated, fmt.Sprint(i)})
				cancel()
			}
		})
	}
	wg.Wait()
	close(constant)
	next := make(map[string]int) // by publisher, whose order is kept
	for ev := range constant {
		if want := fmt.Sprint(next[ev.Topic.Scope]); ev.Topic.URI != want {
			t.Fatalf("publisher %s: heard %s, want %s", ev.Topic.Scope, ev.Topic.URI, want)
		}
		next[ev.Topic.Scope]++
	}
	for g := range goroutines {
		if got := next[fmt.Sprint(g)]; got != rounds {
			t.Errorf("heard %d of %d events of publisher %d", got, rounds, g)
		}
	}
	if len(b.listeners) != 1 {
		t.Errorf("%d listeners left, want 1", len(b.listeners))
	}
}

func publish(t *testing.T, b *LocalBus, topic Topic) {
	t.Helper()
	if err := b.Publish(t.Context(), Event{Topic: topic}); err != nil {
		t.Error(err)
	}
}
