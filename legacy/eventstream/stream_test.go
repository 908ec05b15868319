package eventstream

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/budget"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/downstream"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// put puts a message, which is taken.
func put(t *testing.T, st *Stream, text string, answer bool) {
	t.Helper()
	if err := st.Put(t.Context(), []byte(text), answer); err != nil {
		t.Fatalf("Put(%.100s) = %v", text, err)
	}
}

// A client that comes back with an event's id gets what followed it, and the rest.
func TestL2M26Resume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(1 << 20)
		st := r.Add(wire.NumberID(7))
		first, leave := attach(t, st, 0, nil)
		put(t, st, "a", false)
		first.want("a")
		seen := first.last
		put(t, st, "b", false)
		first.want("b")
		leave()
		first.ends(context.Canceled)
		put(t, st, "c", false)
		if !r.HasUnread() {
			t.Error("HasUnread = false with an event that nobody got")
		}
		again, leave := r.resume(t, seen, nil)
		defer leave()
		again.want("b c")
		put(t, st, "answer", true)
		again.want("answer")
		again.ends(nil)
		if r.HasUnread() || st.Position() != 4 {
			t.Errorf("HasUnread = %v, Position = %d, want all 4 read", r.HasUnread(), st.Position())
		}
		if err := st.Put(t.Context(), []byte("late"), false); err == nil {
			t.Error("a message after the answer was taken")
		}
		for _, id := range []string{"1.inst.99.1", "1.other.1.1", "nonsense"} {
			if st, _ := r.Find(id); st != nil {
				t.Errorf("Find(%q) = a stream", id)
			}
		}
	})
}

func TestL2M26EvictedResponse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(2000)
		answer := `{"pad":"` + strings.Repeat("x", 1500) + `"}`
		var calls []*Stream
		var ids []string
		for n := range 2 {
			st := r.Add(wire.NumberID(int64(n)))
			rd, leave := attach(t, st, 0, nil)
			put(t, st, "note", false)
			rd.want("note")
			leave()
			rd.ends(context.Canceled)
			calls, ids = append(calls, st), append(ids, rd.last)
		}
		for _, st := range calls {
			put(t, st, answer, true)
		}
		// The store holds one answer.
		gone, _ := r.resume(t, ids[0], nil)
		gone.want(string(calls[0].evictedResponse()))
		gone.ends(nil)
		kept, _ := r.resume(t, ids[1], nil)
		kept.want(answer)
		kept.ends(nil)
		if n := r.counts.Count("client_events"); n != 1 {
			t.Errorf("%d evictions counted, want 1", n)
		}
	})
}

// Of the responses of a session, the latest one has the changes, and those that the one
// before did not write.
func TestL2M25OneResponseCarriesChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(1 << 20)
		delivered := 0
		changes := &Changes{
			Mail: fanout.NewMailbox(fanout.MailboxOptions{}),
			Append: func(dst []byte, ev fanout.Event) []byte {
				if ev.Topic.URI == "unwanted" {
					return dst
				}
				return append(dst, ev.Topic.URI...)
			},
			Delivered: func() { delivered++ },
		}
		change := func(uri string) {
			changes.Mail.Put(fanout.Event{Topic: fanout.Topic{Scope: "s", Kind: fanout.ResourceUpdated, URI: uri}})
		}
		change("note:a")
		change("note:a")
		first, leave := attach(t, r.Add(wire.ID{}), 0, changes)
		defer leave()
		first.want("note:a")
		second, leave := attach(t, r.Add(wire.ID{}), 0, changes)
		defer leave()
		first.ends(errReplaced)
		change("unwanted")
		change("note:b")
		second.want("note:b")
		over := errors.New("its credential is over")
		r.expire(over)
		second.ends(over)
		third, leave := r.resume(t, second.last, changes)
		defer leave()
		change("note:c")
		third.want("note:c")
		close(r.ending)
		r.TellEnding()
		third.ends(ErrEnding)
		if delivered != 3 {
			t.Errorf("%d changes counted, want 3", delivered)
		}
		changes.Mail.End(errors.New("its server is gone"))
		r.opts.Ending = nil
		fourth, leave := attach(t, r.Add(wire.ID{}), 0, changes)
		defer leave()
		fourth.ends(ErrNoChanges)
	})
}

// A response whose client has left, or that another one has replaced, leaves what changes to the next.
func TestL2M25ChangesWaitForWhoIsThere(t *testing.T) {
	left, leave := context.WithCancel(t.Context())
	leave()
	for name, over := range map[string]func(r *rig, st *Stream, ch *Changes) context.Context{
		"left": func(*rig, *Stream, *Changes) context.Context { return left },
		"replaced": func(r *rig, _ *Stream, ch *Changes) context.Context {
			r.Add(wire.ID{}).Attach(downstream.NewResponse(httptest.NewRecorder(), time.Minute), 0, ch)
			return t.Context()
		},
	} {
		r := newRig(1 << 20)
		ch := &Changes{
			Mail:      fanout.NewMailbox(fanout.MailboxOptions{}),
			Append:    func(dst []byte, ev fanout.Event) []byte { return append(dst, ev.Topic.URI...) },
			Delivered: func() {},
		}
		st := r.Add(wire.ID{})
		w := st.Attach(downstream.NewResponse(httptest.NewRecorder(), time.Minute), 0, ch)
		ch.Mail.Put(fanout.Event{Topic: fanout.Topic{Scope: "s", Kind: fanout.ResourceUpdated, URI: "note:a"}})
		ctx := over(r, st, ch)
		if ended, err := w.Turn(ctx); !ended || err == nil {
			t.Errorf("%s: Turn = %v, %v, want it over", name, ended, err)
		}
		if name == "replaced" {
			if _, _, err := w.nextChange(); err != errReplaced {
				t.Errorf("a change was taken: %v", err)
			}
		}
		if _, waits := ch.Mail.Next(); !waits || len(st.events) > 0 {
			t.Errorf("%s: the change waits: %v; %d events on the stream", name, waits, len(st.events))
		}
	}
}

// attachIdle has a response carry a stream without writing.
func attachIdle(st *Stream, from uint64, changes *Changes) *Writer {
	return st.Attach(downstream.NewResponse(httptest.NewRecorder(), time.Minute), from, changes)
}

// What the response before has not begun to write goes to the one that replaces it.
func TestL2M25QuestionsGoToWhoIsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(1 << 20)
		if err := r.PutAside(t.Context(), []byte("nobody")); err != ErrNobodyListens {
			t.Errorf("PutAside without a stream = %v", err)
		}
		first := attachIdle(r.Add(wire.ID{}), 0, nil)
		for _, q := range []string{"begun", "waits"} {
			if err := r.PutAside(t.Context(), []byte(q)); err != nil {
				t.Fatal(err)
			}
		}
		if ev, ok, _, err := first.next(); !ok || err != nil || string(ev.text) != "begun" {
			t.Fatalf("next = %s, %v, %v", ev.text, ok, err)
		}
		second, leave := attach(t, r.Add(wire.ID{}), 0, nil)
		second.want("waits")
		if err := r.PutAside(t.Context(), []byte("later")); err != nil {
			t.Fatal(err)
		}
		second.want("later")
		leave()
		second.ends(context.Canceled)
		if err := r.PutAside(t.Context(), []byte("nobody")); err != ErrNobodyListens {
			t.Errorf("PutAside after the client left = %v", err)
		}
		again, leave := r.resume(t, second.last, nil)
		defer leave()
		again.want("")
	})
}

// A response that writes changes does not wait for itself, and who waits for room is let go when
// another response comes, or the session ends.
func TestL2M26NobodyWaitsInVain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(10)
		w := attachIdle(r.Add(wire.ID{}), 0, nil)
		long := strings.Repeat("q", 20)
		if err := r.PutAside(t.Context(), []byte(long)); err != nil {
			t.Fatal(err)
		}
		if err := w.change([]byte("change")); err != nil || w.stream.written != 2 {
			t.Errorf("change = %v, %d events are written, want both", err, w.stream.written)
		}
		for range 2 {
			if err := r.PutAside(t.Context(), []byte(long)); err != nil {
				t.Fatal(err)
			}
			waited := make(chan error, 1)
			go func() { waited <- r.PutAside(t.Context(), []byte("waits")) }()
			synctest.Wait()
			if len(waited) > 0 {
				t.Fatalf("PutAside to a client that does not read = %v, want it to wait", <-waited)
			}
			rd, leave := attach(t, r.Add(wire.ID{}), 0, nil)
			rd.want(long + " waits")
			if err := <-waited; err != nil {
				t.Errorf("PutAside once another client reads = %v", err)
			}
			leave()
			rd.ends(context.Canceled)
			attachIdle(r.Add(wire.ID{}), 0, nil)
		}
		call := r.Add(wire.NumberID(1))
		attachIdle(call, 0, nil)
		put(t, call, long, false)
		waited := make(chan error, 1)
		go func() { waited <- call.Put(t.Context(), []byte("more"), false) }()
		synctest.Wait()
		r.Close()
		if err := <-waited; err != errCut {
			t.Errorf("Put once the session is over = %v", err)
		}
	})
}

// A response says if events after the one that its client had are gone.
func TestL2M26MissedEvents(t *testing.T) {
	r := newRig(10)
	st := r.Add(wire.ID{})
	w := attachIdle(st, 0, nil)
	put(t, st, "one", false)
	put(t, st, "two", false)
	if _, err := w.drain(); err != nil || w.Missed() {
		t.Fatalf("drain = %v, Missed = %v", err, w.Missed())
	}
	for from, missed := range []bool{false, false, false} {
		if w := attachIdle(st, uint64(from), nil); w.Missed() != missed {
			t.Errorf("from %d: Missed = %v with all events stored", from, w.Missed())
		}
	}
	put(t, r.Add(wire.NumberID(1)), "0123456", true) // in the place of the first
	for from, missed := range []bool{true, false, false} {
		if w := attachIdle(st, uint64(from), nil); w.Missed() != missed {
			t.Errorf("from %d: Missed = %v, want %v", from, w.Missed(), missed)
		}
	}
}

// Who sends more than a client reads waits for it; nothing unread is lost.
func TestL2M26SendersWaitForAReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(10)
		st := r.Add(wire.NumberID(1))
		w := st.Attach(downstream.NewResponse(httptest.NewRecorder(), time.Minute), 0, nil) // which writes nothing yet
		for range 2 {
			put(t, st, "12345678", false)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := st.Put(ctx, []byte("more"), false); err != context.DeadlineExceeded {
			t.Errorf("Put to a client that does not read = %v, want it to wait", err)
		}
		waited := make(chan error, 1)
		go func() { waited <- st.Put(t.Context(), []byte("more"), false) }()
		synctest.Wait()
		if _, err := w.drain(); err != nil {
			t.Fatal(err)
		}
		if err := <-waited; err != nil {
			t.Errorf("Put once it reads = %v", err)
		}
		w.Close(os.ErrDeadlineExceeded)
		if n := r.counts.Count("stuck"); n != 1 {
			t.Errorf("a client that is stuck ended %d sessions, want 1", n)
		}
	})
}

// A client that has resumed its stream on another connection reads, though the former one still
// waits for it: only the connection that a stream has at the time may be the end of the session.
func TestL2M26StalledConnectionWasReplaced(t *testing.T) {
	for name, next := range map[string]func(r *rig, st *Stream) *Writer{
		"the same stream": func(_ *rig, st *Stream) *Writer { return attachIdle(st, 0, nil) },
		"another GET":     func(r *rig, _ *Stream) *Writer { return attachIdle(r.Add(wire.ID{}), 0, nil) },
	} {
		r := newRig(1 << 20)
		st := r.Add(wire.ID{})
		first := attachIdle(st, 0, nil)
		second := next(r, st)
		first.Close(os.ErrDeadlineExceeded)
		if n := r.counts.Count("stuck"); n != 0 {
			t.Errorf("%s: a connection that was replaced ended %d sessions, want none", name, n)
		}
		second.Close(os.ErrDeadlineExceeded)
		if n := r.counts.Count("stuck"); n != 1 {
			t.Errorf("%s: the client that does not read ended %d sessions, want 1", name, n)
		}
	}
}

// Streams that nobody will read any more go first when there are too many.
func TestL2M26StreamsAreBounded(t *testing.T) {
	r := newRig(1 << 20)
	kept, open := r.AddKept(), r.Add(wire.NumberID(0))
	done := r.Add(wire.NumberID(1))
	put(t, done, "answer", true)
	for n := range maxStreams {
		r.Add(wire.NumberID(int64(n + 2))).Finish()
	}
	for st, want := range map[*Stream]bool{kept: true, open: true, done: false} {
		if found, _ := r.Find(st.eventID(0)); (found != nil) != want {
			t.Errorf("stream %d is there: %v, want %v", st.n, found != nil, want)
		}
	}
	if len(r.order) != maxStreams {
		t.Errorf("%d streams, want %d", len(r.order), maxStreams)
	}
	r.Close()
	if st := r.Add(wire.NumberID(1)); st.Put(t.Context(), []byte("x"), false) == nil {
		t.Error("a stream of a session that is over took a message")
	}
}

// A smallMemory is memory of which a share gets half.
type smallMemory struct{ *budget.Budget }

func (m smallMemory) Account(s mcp.Share) *budget.Account { return m.Budget.Account(s) }
func (m smallMemory) Refuse() error                       { return fmt.Errorf("no memory") }

// What was read goes for the sake of what is new, and not what is unread: an answer to a
// client that is away waits for it.
func TestUnreadEventsStay(t *testing.T) {
	memory := smallMemory{budget.New(2 << 20)}
	s := newRig(4 << 20).Streams
	if err := s.Reserve(memory, mcp.Share{Principal: "ada"}, 0); err != nil {
		t.Fatal(err)
	}
	away, here := s.Add(wire.NumberID(1)), s.Add(wire.NumberID(2))
	big := []byte(strings.Repeat("x", 200<<10))
	if err := away.Put(t.Context(), big, true); err != nil {
		t.Fatal(err)
	}
	if err := here.Put(t.Context(), big, false); err != nil {
		t.Fatalf("a message = %v, want it taken", err)
	}
	if err := here.Put(t.Context(), big, false); err == nil {
		t.Error("a message was taken for which there is no memory")
	}
	if len(away.events) != 1 || len(here.events) != 1 || away.lost {
		t.Errorf("%d and %d events are left, want the unread ones", len(away.events), len(here.events))
	}
	here.written = 1
	if err := here.Put(t.Context(), big, true); err != nil || len(here.events) != 1 || string(here.events[0].text) != string(big) {
		t.Errorf("an answer = %v, want it taken in the place of what was read", err)
	}
	if last := s.Add(wire.NumberID(3)); last.Put(t.Context(), big, true) == nil || !strings.Contains(string(last.events[0].text), "memory") {
		t.Errorf("the answer that there is no memory for = %.200s, want an error that says so", last.events[0].text)
	}
	away.written = 1
	if err := here.Put(t.Context(), big, false); err == nil {
		t.Error("a message after the answer was taken")
	}
	if err := s.Add(wire.NumberID(4)).Put(t.Context(), big, false); err != nil || !away.lost {
		t.Errorf("a message = %v, lost %v; want it taken in the place of the answer that was read", err, away.lost)
	}
	here.written = 3
	before := memory.Used()
	if s.Forget(here); memory.Used() > before-400<<10 {
		t.Errorf("a stream that was forgotten gave %d bytes back, want those of its event", before-memory.Used())
	}
	if err := s.Take(1 << 10); err != nil {
		t.Errorf("Take = %v", err)
	}
	s.Give(1 << 10)
	s.Release()
	if used := memory.Used(); used > 128<<10 {
		t.Errorf("%d bytes are taken once the session is over", used)
	}
}

// Who has not read a stream for its time is gone; not who comes back, and not once the
// response is there.
func TestF09OnGone(t *testing.T) {
	for _, tt := range []struct {
		name string
		play func(t *testing.T, r *rig, st *Stream)
		want time.Duration // after the start; zero for never
	}{
		{"nobody reads", func(*testing.T, *rig, *Stream) {}, time.Minute},
		{"a response is about to", func(_ *testing.T, _ *rig, st *Stream) { st.Expect(true) }, 0},
		{"none comes after all", func(_ *testing.T, _ *rig, st *Stream) {
			st.Expect(true)
			time.Sleep(time.Hour)
			st.Expect(false)
		}, time.Hour + time.Minute},
		{"read, and left", func(t *testing.T, _ *rig, st *Stream) {
			_, leave := attach(t, st, 0, nil)
			time.Sleep(time.Hour)
			leave()
		}, time.Hour + time.Minute},
		{"resumed in time", func(t *testing.T, _ *rig, st *Stream) {
			time.Sleep(59 * time.Second)
			_, leave := attach(t, st, 0, nil)
			t.Cleanup(leave)
			time.Sleep(2 * time.Hour)
		}, 0},
		{"answered meanwhile", func(t *testing.T, _ *rig, st *Stream) { _ = st.Put(t.Context(), []byte("{}"), true) }, 0},
		{"no answer comes", func(_ *testing.T, _ *rig, st *Stream) { st.Finish() }, 0},
		{"the session ends", func(_ *testing.T, r *rig, _ *Stream) { r.Close() }, 0},
	} {
		bridgetest.RunBubble(t, tt.name, func(t *testing.T) {
			r := newRig(1 << 20)
			start := time.Now()
			var at []time.Duration
			st := r.Add(wire.NumberID(1))
			st.OnGone(time.Minute, func() { at = append(at, time.Since(start)) })
			tt.play(t, r, st)
			time.Sleep(3 * time.Hour)
			synctest.Wait()
			var want []time.Duration
			if tt.want > 0 {
				want = []time.Duration{tt.want}
			}
			if !slices.Equal(at, want) {
				t.Errorf("gone after %v, want %v", at, want)
			}
		})
	}
}
