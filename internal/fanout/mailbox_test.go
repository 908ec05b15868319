package fanout

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/mcpbridge/mcpbridge/internal/wake"
)

var (
	tools = Topic{Scope: "notebook", Kind: ToolsListChanged}
	todo  = Topic{Scope: "notebook", Kind: ResourceUpdated, URI: "note://todo"}
	diary = Topic{Scope: "notebook", Kind: ResourceUpdated, URI: "note://diary"}
)

// under is an event of topic that names uri and carries meta.
func under(topic Topic, uri, meta string) Event {
	ev := Event{Topic: topic, URI: uri}
	if meta != "" {
		ev.Meta = json.RawMessage(meta)
	}
	return ev
}

func drain(m *Mailbox) (events []Event) {
	for ev, ok := m.Next(); ok; ev, ok = m.Next() {
		events = append(events, ev)
	}
	return events
}

// line is a short form of events: kind or URI, and the meta.
func line(events []Event) string {
	words := make([]string, len(events))
	for i, ev := range events {
		if words[i] = ev.URI; ev.URI == "" {
			words[i] = ev.Topic.Kind.String()
		}
		words[i] += string(ev.Meta)
	}
	return strings.Join(words, " ")
}

func TestM2L35Coalescing(t *testing.T) {
	other := todo
	other.Scope = "files"
	for _, tt := range []struct {
		name string
		max  int
		put  []Event
		want string
	}{
		{"nothing", 0, nil, ""},
		{"in order", 0, []Event{under(todo, "", ""), under(tools, "", ""), under(diary, "", "")}, "note://todo toolsListChanged note://diary"},
		{"a pending topic keeps its place", 0, []Event{under(todo, "", ""), under(tools, "", ""), under(todo, "", "")}, "note://todo toolsListChanged"},
		{"the latest meta travels", 0, []Event{under(todo, "", "{1}"), under(todo, "", "{2}")}, "note://todo{2}"},
		{"so does its absence", 0, []Event{under(todo, "", "{1}"), under(todo, "", "")}, "note://todo"},
		{"the topic's URI named or not is the same", 0, []Event{under(todo, "", ""), under(todo, todo.URI, "")}, "note://todo"},
		{"scopes are apart", 0, []Event{under(todo, "", "{1}"), under(other, "", "{2}")}, "note://todo{1} note://todo{2}"},
		{"a sub-resource is apart from its topic", 0, []Event{under(todo, "note://todo/1", ""), under(todo, "", "")}, "note://todo/1 note://todo"},
		{"sub-resources coalesce by URI", 2, []Event{under(todo, "a", "{1}"), under(todo, "b", ""), under(todo, "a", "{2}")}, "a{2} b"},
		{"one too many collapses", 2, []Event{under(todo, "a", ""), under(tools, "", ""), under(todo, "b", ""), under(todo, "c", "{3}")}, "note://todo{3} toolsListChanged"},
		{"into what is pending", 2, []Event{under(todo, "a", ""), under(tools, "", ""), under(todo, "", ""), under(todo, "b", ""), under(todo, "c", "{3}")}, "toolsListChanged note://todo{3}"},
		{"and stays collapsed", 2, []Event{under(todo, "a", ""), under(todo, "b", ""), under(todo, "c", ""), under(todo, "d", ""), under(todo, "a", "{5}")}, "note://todo{5}"},
		{"each topic has its own bound", 2, []Event{under(todo, "a", ""), under(todo, "b", ""), under(diary, "a", ""), under(diary, "b", "")}, "a b a b"},
		{"negative collapses at once", -1, []Event{under(todo, "a", ""), under(tools, "", ""), under(todo, "b", "{2}")}, "note://todo{2} toolsListChanged"},
		{"an invalid kind is nothing", 0, []Event{{URI: "a"}, {Topic: Topic{Kind: 9}}}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := NewMailbox(MailboxOptions{MaxSubresources: tt.max})
			for _, ev := range tt.put {
				m.Put(ev)
			}
			n := m.Len()
			got := drain(m)
			if line(got) != tt.want || n != len(got) {
				t.Errorf("%d pending, drained %q, want %q", n, line(got), tt.want)
			}
			if m.Len() != 0 {
				t.Errorf("Len = %d after draining", m.Len())
			}
		})
	}
}

func TestM2L35SixtyFourSubresources(t *testing.T) {
	m := NewMailbox(MailboxOptions{})
	for round := range 2 { // draining starts afresh
		for i := range 64 {
			m.Put(under(todo, fmt.Sprint("note://todo/", i), ""))
		}
		if m.Len() != 64 {
			t.Fatalf("round %d: %d of 64 sub-resources pending", round, m.Len())
		}
		for i := range 1000 {
			m.Put(under(todo, fmt.Sprint("note://todo/more/", i), fmt.Sprint(i)))
		}
		if got := line(drain(m)); got != "note://todo999" {
			t.Fatalf("round %d: drained %q, want the topic's own URI alone", round, got)
		}
	}
}

// The mailbox of a blocked writer takes no more memory than its topics need, whatever is
// put and dropped meanwhile.
// What stands for several events has the highest of their numbers, in whatever order they were put.
func TestM2L35TheHighestNumberStays(t *testing.T) {
	numbered := func(uri string, number uint64) Event { return Event{Topic: todo, URI: uri, Number: number} }
	for name, put := range map[string][]Event{
		"one after the other":     {numbered("", 1), numbered("", 3)},
		"changed places":          {numbered("", 3), numbered("", 2)},
		"a later one collapses":   {numbered("a", 1), numbered("b", 3), numbered("c", 2)},
		"into one that was first": {numbered("a", 1), numbered("", 3), numbered("b", 1), numbered("c", 2)},
	} {
		m := NewMailbox(MailboxOptions{MaxSubresources: 2})
		for _, ev := range put {
			m.Put(ev)
		}
		if got := drain(m); len(got) != 1 || got[0].Number != 3 {
			t.Errorf("%s: %v, want one with the number 3", name, got)
		}
	}
}

func TestM2L35StuckWriterIsBounded(t *testing.T) {
	m := NewMailbox(MailboxOptions{})
	for i := range 20_000 {
		m.Put(under(tools, "", ""))
		m.Put(under(todo, "", ""))
		m.Put(under(diary, fmt.Sprint("note://diary/", i), ""))
		drop(m, todo)
	}
	if m.Len() != 2 || cap(m.queue) > 4*DefaultMaxSubresources {
		t.Errorf("%d events pending in room for %d, want 2 in little", m.Len(), cap(m.queue))
	}
}

func TestMovedEventsAreNotKeptAlive(t *testing.T) {
	m := NewMailbox(MailboxOptions{})
	for _, uri := range []string{"a", "b", "c", "d"} {
		m.Put(under(Topic{"s", ResourceUpdated, uri}, "", ""))
	}
	m.Next()
	m.Next()
	m.Put(under(todo, "", "")) // there is room in front
	if len(m.queue) != 3 || m.queue[:4][3].URI != "" {
		t.Errorf("queue = %v of %v, want three events and no trace of a fourth", m.queue, m.queue[:cap(m.queue)])
	}
}

// drop removes the pending events of topics: later ones become pending again.
func drop(m *Mailbox, topics ...Topic) {
	m.Refuse(topics...)
	m.Accept(topics...)
}

func TestDropAndRefuse(t *testing.T) {
	for _, n := range []int{0, 100} { // with and without an index of places
		m := NewMailbox(MailboxOptions{})
		fill := func() {
			m.Put(under(todo, "", ""))
			m.Put(under(todo, "note://todo/1", ""))
			for i := range n {
				m.Put(under(Topic{"s", ResourceUpdated, fmt.Sprint(i)}, "", ""))
			}
			m.Put(under(tools, "", ""))
		}
		fill()
		if drop(m, todo, diary); m.Len() != n+1 {
			t.Errorf("with %d others: Len after dropping = %d, want %d", n, m.Len(), n+1)
		}
		if fill(); m.Len() != n+3 {
			t.Errorf("with %d others: Len after putting again = %d, want %d", n, m.Len(), n+3)
		}
		m.Refuse(todo)
		if fill(); m.Len() != n+1 {
			t.Errorf("with %d others: Len after Refuse = %d, want %d", n, m.Len(), n+1)
		}
		for _, ev := range drain(m) {
			if ev.Topic == todo {
				t.Errorf("with %d others: refused topic came out", n)
			}
		}
	}
}

// One writer may wait for several mailboxes.
func TestReadyOfSeveral(t *testing.T) {
	ready := wake.NewSignal()
	a, b := NewMailbox(MailboxOptions{Ready: ready}), NewMailbox(MailboxOptions{Ready: ready})
	for _, m := range []*Mailbox{a, b} {
		m.Put(Event{Topic: todo})
		if !woken(ready) {
			t.Error("not woken by an event")
		}
		m.End(nil)
		if !woken(ready) {
			t.Error("not woken by an end")
		}
	}
}

// Turns that are to be told hear of what is pending already, of what comes, and of the end; once they are
// told no more, Ready says it.
func TestNotify(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, told := NewMailbox(MailboxOptions{}), 0
		want := func(n int) {
			t.Helper()
			if synctest.Wait(); told != n {
				t.Errorf("told %d times, want %d", told, n)
			}
		}
		var turns wake.Turns
		turns.Start(func() bool { told++; return false })
		m.Put(Event{Topic: todo})
		m.Notify(&turns)
		want(1)
		m.Next()
		m.Notify(nil)
		m.Notify(&turns)
		want(1)
		m.Put(Event{Topic: todo})
		want(2)
		m.Next()
		m.Notify(nil)
		ready := m.Ready()
		if woken(ready) {
			t.Error("woken by nothing")
		}
		m.End(nil)
		if want(2); !woken(ready) {
			t.Error("not woken by the end")
		}
		m.Notify(&turns)
		want(3)
	})
}

func woken(ready <-chan struct{}) bool {
	select {
	case <-ready:
		return true
	default:
		return false
	}
}

// Several may hide sub-resources.
func TestG13EachHidesSubresources(t *testing.T) {
	m := NewMailbox(MailboxOptions{})
	for _, uri := range []string{"note://todo/1", "note://todo/2"} {
		m.Hide(func(ev Event) bool { return ev.URI == uri })
	}
	for _, uri := range []string{"note://todo/1", "note://todo/2", "note://todo/3", "note://todo"} {
		m.Put(under(todo, uri, ""))
	}
	if got := line(drain(m)); got != "note://todo/3 note://todo" {
		t.Errorf("got %q, want what nobody hides", got)
	}
}

// What hides resources has no say in whose session was lost.
func TestG14HidesResourcesAlone(t *testing.T) {
	m := NewMailbox(MailboxOptions{})
	m.Hide(func(Event) bool { return true })
	lost := Topic{Scope: "all", Kind: StateLost}
	for _, ev := range []Event{under(lost, "files", ""), under(lost, "docs", ""), under(todo, "note://todo/1", ""), under(lost, "files", "")} {
		m.Put(ev)
	}
	if got := line(drain(m)); got != "files docs" {
		t.Errorf("got %q, want each server once", got)
	}
}

func TestReadyWakesForTheFirstMarkAndTheEnd(t *testing.T) {
	m := NewMailbox(MailboxOptions{})
	woken := func() bool {
		select {
		case <-m.Ready():
			return true
		default:
			return false
		}
	}
	if woken() {
		t.Error("an empty mailbox is ready")
	}
	m.Put(under(todo, "", ""))
	m.Put(under(tools, "", ""))
	if !woken() || woken() {
		t.Error("two events should wake the writer once")
	}
	m.Put(under(todo, "", "{}"))
	if woken() {
		t.Error("a repeated event wakes the writer")
	}
	m.End(nil)
	if !woken() {
		t.Error("the end doesn't wake the writer")
	}
}

func TestEnd(t *testing.T) {
	m, why := NewMailbox(MailboxOptions{}), errors.New("shutting down")
	m.Put(under(todo, "", ""))
	if _, ended := m.Ended(); ended || m.Closed() {
		t.Error("ended before End")
	}
	m.End(why)
	m.End(errors.New("another"))
	m.Put(under(tools, "", ""))
	if _, ended := m.Ended(); ended || !m.Closed() {
		t.Error("ended before what was pending is drained, or not closed")
	}
	if got := line(drain(m)); got != "note://todo" {
		t.Errorf("drained %q after End, want what was pending before", got)
	}
	if reason, ended := m.Ended(); !ended || reason != why {
		t.Errorf("Ended = %v, %v, want the first reason", reason, ended)
	}
}

// TestM2L35ConcurrentPut has many producers and one consumer. Whatever was coalesced, the
// last event of each producer must come out.
func TestM2L35ConcurrentPut(t *testing.T) {
	const producers, puts = 6, 5_000
	m := NewMailbox(MailboxOptions{MaxSubresources: 2})
	told := make(map[Topic]bool)
	done := make(chan struct{})
	go func() { // ends when the mailbox has ended
		defer close(done)
		for ended := false; !ended; _, ended = m.Ended() {
			<-m.Ready()
			for ev, ok := m.Next(); ok; ev, ok = m.Next() {
				told[ev.Topic] = told[ev.Topic] || string(ev.Meta) == "last"
			}
		}
	}()
	topic := func(p int) Topic { return Topic{"s", ResourceUpdated, fmt.Sprint(p)} }
	var wg sync.WaitGroup
	for p := range producers {
		wg.Go(func() {
			for i := range puts {
				m.Put(under(topic(p), fmt.Sprint(p, "/", i%4), fmt.Sprint(i)))
				if i%100 == 0 {
					drop(m, diary)
					m.Len()
				}
			}
			m.Put(under(topic(p), "", "last"))
		})
	}
	wg.Wait()
	m.End(nil)
	<-done
	for p := range producers {
		if !told[topic(p)] {
			t.Errorf("the last event of producer %d never came out", p)
		}
	}
}

func TestEventIsDrainedInPutOrderAcrossGrowth(t *testing.T) {
	m := NewMailbox(MailboxOptions{})
	var want, got []string
	for i := range 1000 { // two in, one out: the queue grows while it is consumed
		for j := range 2 {
			uri := fmt.Sprint(i, "/", j)
			m.Put(under(Topic{"s", ResourceUpdated, uri}, "", ""))
			want = append(want, uri)
		}
		ev, _ := m.Next()
		got = append(got, ev.URI)
	}
	for _, ev := range drain(m) {
		got = append(got, ev.URI)
	}
	if !slices.Equal(got, want) {
		t.Errorf("events came out of order, or not at all: %d of %d", len(got), len(want))
	}
}

// Log messages wait one by one, in order with what else is told. Those that there is no room for
// become one event, and what comes when there is room again follows it.
func TestG15MessagesWaitOneByOne(t *testing.T) {
	lost := Topic{Scope: "all", Kind: StateLost}
	say := func(text string) Event { return Event{Topic: lost, Meta: json.RawMessage(text)} }
	texts := func(m *Mailbox) (out []string) {
		for _, ev := range drain(m) {
			switch {
			case ev.IsMessage():
				out = append(out, string(ev.Meta))
			case ev.URI == LeftOut:
				out = append(out, "left out")
			default:
				out = append(out, ev.Topic.Kind.String()+ev.URI)
			}
		}
		return out
	}
	m := NewMailbox(MailboxOptions{})
	for _, ev := range []Event{say("a"), say("a"), {Topic: lost, URI: "1"}, say("b"), {Topic: lost, URI: "1"}, {Topic: tools}} {
		m.Put(ev)
	}
	if got, want := texts(m), []string{"a", "a", "stateLost1", "b", "toolsListChanged"}; !slices.Equal(got, want) {
		t.Errorf("drained %q, want %q", got, want)
	}
	for range 2 { // draining starts afresh
		for i := range MaxMessages + 10 {
			m.Put(say(fmt.Sprint(i)))
		}
		m.Put(Event{Topic: tools})
		if ev, _ := m.Next(); string(ev.Meta) != "0" {
			t.Errorf("the first is %s, want 0", ev.Meta)
		}
		m.Put(say("late"))
		got := texts(m)
		if want := []string{"63", "left out", "toolsListChanged", "late"}; len(got) != MaxMessages+2 || !slices.Equal(got[len(got)-4:], want) {
			t.Errorf("drained %d, %q, want %q at the end", len(got), got, want)
		}
	}
	m.Put(say(strings.Repeat("x", MaxMessageBytes)))
	m.Put(say("y"))
	if got := texts(m); len(got) != 2 || got[1] != "left out" {
		t.Errorf("drained %d, want one message and none for the other", len(got))
	}
	m.Put(say("x"))
	drop(m, lost)
	m.Put(say("z"))
	if got := texts(m); !slices.Equal(got, []string{"z"}) {
		t.Errorf("drained %q after the topic was dropped, want what came later", got)
	}
}

// Servers whose sessions were lost are told of one by one, however many messages wait.
func TestG15MessagesCollapseNoLosses(t *testing.T) {
	lost := Topic{Scope: "all", Kind: StateLost}
	m := NewMailbox(MailboxOptions{MaxSubresources: 2})
	for _, uri := range []string{"files", "docs"} {
		m.Put(Event{Topic: lost, Meta: json.RawMessage(`1`)})
		m.Put(under(lost, uri, ""))
		m.Put(Event{Topic: lost, Meta: json.RawMessage(`2`)})
	}
	if got := drain(m); len(got) != 6 || got[1].URI != "files" || got[4].URI != "docs" {
		t.Errorf("drained %v, want all six", got)
	}
}
