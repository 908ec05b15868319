package live

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/observation/trace"
	"github.com/mcpbridge/mcpbridge/internal/redact"
)

// A stage is a feed with the requests that it observes.
type stage struct {
	*Feed
	observers *trace.Observers
	changes   func(Change) // nil while nobody looks
}

func newStage(secrets ...string) *stage {
	s := &stage{observers: trace.New()}
	s.Feed = NewFeed(Options{Secrets: redact.New(secrets...), Observe: func(o trace.Observer, changes func(Change)) func() {
		s.changes = changes
		remove := s.observers.Add(o)
		return func() { s.changes = nil; remove() }
	}})
	return s
}

// call passes a call; nil if it was not observed.
func (s *stage) call(name string) *trace.Request {
	r := s.observers.Begin(trace.Info{Server: "s", Method: "tools/call", Name: name, Era: "modern", ClientInfo: []byte(`{"name":"c","version":"1"}`)})
	r.Received([]byte(`{"name":"` + name + `"}`))
	x := r.Upstream(trace.Exchange{Server: "s", Method: "tools/call", Era: "legacy"})
	x.Sent([]byte("sent to the server"))
	x.Received([]byte("the server's answer"))
	x.End(nil)
	r.Note("ok", nil)
	r.Sent([]byte("the client's answer"))
	r.End(nil)
	return r
}

// While nobody looks nothing is observed, and nothing is left of what was.
func TestNothingWhileNobodyLooks(t *testing.T) {
	s := newStage()
	if r := s.call("before"); r != nil || s.observers.Any() {
		t.Errorf("a call was observed while nobody looked")
	}
	one, two := s.Look(), s.Look()
	if r := s.call("seen"); r == nil || len(s.Calls()) != 1 || s.Last() != 1 {
		t.Errorf("%d calls, the last event %d, want one of each", len(s.Calls()), s.Last())
	}
	one()
	one() // again does nothing
	if !s.observers.Any() {
		t.Error("it ended with the first who looked, of two")
	}
	two()
	if s.observers.Any() || len(s.Calls()) != 0 {
		t.Errorf("%d calls are kept though nobody looks", len(s.Calls()))
	}
}

// A call has what passed on both sides, and its event how it ended.
func TestCall(t *testing.T) {
	s := newStage("the-secret")
	s.SetBodies(true)
	defer s.Look()()
	r := s.observers.Begin(trace.Info{Server: "s", Method: "tools/call", Name: "with the-secret", Era: "modern"})
	r.Received([]byte(`{"token":"the-secret"}`))
	x := r.Upstream(trace.Exchange{Method: "tools/call", Era: "legacy"})
	x.Sent([]byte("to the server"))
	x.End(errors.New("it said the-secret"))
	r.Event(trace.Parked, "")
	r.Note("failed", errors.New("because of the-secret"))
	r.End(nil)
	c := s.Call(r.RequestID())
	if c == nil || c.Outcome != "failed" || len(c.Exchanges) != 1 || len(c.Messages) != 2 || len(c.Steps) != 1 {
		t.Fatalf("the call is %+v", c)
	}
	if m := c.Messages; m[0].From != "client" || m[0].Text != `{"token":"[hidden]"}` || m[1].To != "server" {
		t.Errorf("the messages are %+v", m)
	}
	text, _ := json.Marshal(c)
	events, _, _ := s.Since(0, 100)
	lines, _ := json.Marshal(events)
	if strings.Contains(string(text)+string(lines), "the-secret") {
		t.Errorf("a secret is in %s %s", text, lines)
	}
	if len(events) != 2 || events[0].Step != "parked" || events[1].Outcome != "failed" {
		t.Errorf("the events are %s", lines)
	}
}

// A call of a group names the member, and what that calls the tool.
func TestG03CallOfAGroup(t *testing.T) {
	s := newStage()
	defer s.Look()()
	r := s.observers.Begin(trace.Info{Server: "all", Method: "tools/call", Name: "files__read"})
	r.Pass("files", "read")
	r.End(nil)
	events, _, _ := s.Since(0, 100)
	if c := s.Call(r.RequestID()); c.Server != "all" || c.Member != "files" || c.Name != "files__read" || c.Own != "read" || len(events) != 1 || events[0].Member != "files" || events[0].Own != "read" {
		t.Errorf("the call is %+v, its events %+v", c, events)
	}
}

// A retry and the call to which it brings input name each other.
func TestFollows(t *testing.T) {
	s := newStage()
	defer s.Look()()
	first := s.observers.Begin(trace.Info{Method: "tools/call"})
	retry := s.observers.Begin(trace.Info{Method: "tools/call"})
	first.Continue(retry)
	if a, b := s.Call(first.RequestID()), s.Call(retry.RequestID()); a.Next != b.ID || b.Former != a.ID {
		t.Errorf("next is %q, former %q", a.Next, b.Former)
	}
}

// More than the pace is counted, not taken; a second later there is room again.
func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage()
		defer s.Look()()
		for range 1000 {
			s.call("x")
			s.changes(Change{Server: "s", Kind: "toolsListChanged"})
		}
		if n := len(s.Calls()); n != maxBurst || s.Skipped() != 2*(1000-maxBurst) {
			t.Errorf("%d calls taken, %d skipped", n, s.Skipped())
		}
		time.Sleep(time.Second)
		if s.call("later") == nil {
			t.Error("no call is taken a second later")
		}
	})
}

// What is kept is bounded, in number and in bytes, however large names and messages are.
func TestBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage()
		s.SetBodies(true)
		defer s.Look()()
		huge := strings.Repeat("x", 1<<17)
		for range 2*maxEvents + maxCalls {
			time.Sleep(interval)
			r := s.observers.Begin(trace.Info{Method: huge, Name: huge, ClientInfo: []byte(`{"name":"` + huge[:4096] + `"}`)})
			r.Received([]byte(huge))
			r.Sent([]byte(huge))
			r.End(errors.New(huge))
		}
		calls := s.Calls()
		if len(calls) != maxCalls || s.bodies > maxBodies || len(s.byID) != maxCalls {
			t.Errorf("%d calls, %d bytes of messages", len(calls), s.bodies)
		}
		if c := s.Call(calls[0].ID); len(c.Name) > 2*maxText || len(c.Error) > 2*maxText || len(c.Messages) != 2 || len(c.Messages[0].Text) > maxBody+8 || c.Messages[0].Size != 1<<17 {
			t.Errorf("a call keeps a name of %d bytes and %d messages", len(c.Name), len(c.Messages))
		}
		if c := s.Call(calls[len(calls)-1].ID); len(c.Messages) != 0 || c.Left == 0 {
			t.Errorf("the oldest call keeps %d messages, and says that %d are left out", len(c.Messages), c.Left)
		}
		if _, _, missed := s.Since(0, 10); missed == 0 || len(s.events) > 2*maxEvents {
			t.Errorf("%d events are kept, %d missed", len(s.events), missed)
		}
	})
}

// A state that takes long is computed seldom, and one that does not change is sent once.
func TestStatePace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		s := NewState(func() any { n++; time.Sleep(10 * time.Millisecond); return "same" })
		first := time.Now()
		for time.Since(first) < 200*time.Second {
			if _, v := s.Latest(); v != 1 {
				t.Fatalf("version %d of a state that does not change", v)
			}
			time.Sleep(50 * time.Millisecond)
		}
		if n < 8 || n > 11 {
			t.Errorf("computed %d times in 200 s, each of which took 10 ms, want a part in %d of the time", n, shareOfTime)
		}
	})
}

// Of a call that was forgotten with the last who looked, an event does not name what can't
// be opened.
func TestForgottenCallIsNotNamed(t *testing.T) {
	s := newStage()
	leave := s.Look()
	r := s.observers.Begin(trace.Info{Server: "s", Method: "tools/call", Name: "long", Era: "modern"})
	leave()
	defer s.Look()()
	r.Note("ok", nil)
	r.End(nil)
	if events, _, _ := s.Since(0, 10); len(events) != 1 || events[0].Name != "long" || events[0].Call != "" {
		t.Errorf("events = %+v, want one of the call, which names none that is kept", events)
	}
}

// A computation that the machine held up does not have the state get old.
func TestStateHeldUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		s := NewState(func() any {
			if n++; n%2 == 1 {
				time.Sleep(50 * time.Millisecond)
			} else {
				time.Sleep(time.Microsecond)
			}
			return n
		})
		for want := 1; want <= 5; want++ {
			s.Latest()
			if time.Sleep(2 * leastPause); n != want {
				t.Errorf("computed %d times after %d pauses, want %d", n, want, want)
			}
		}
	})
}

// A Socket sends the state and what passes, and bounds who looks.
func TestSocket(t *testing.T) {
	s := newStage()
	h := &Socket{Feed: s.Feed, State: NewState(func() any { return "a state" }), Allows: func(*http.Request) bool { return true }}
	server := httptest.NewServer(h)
	defer server.Close()
	dial := func() (*websocket.Conn, error) {
		ws, res, err := websocket.DefaultDialer.DialContext(t.Context(), "ws"+strings.TrimPrefix(server.URL, "http"), nil)
		if res != nil {
			_ = res.Body.Close()
		}
		return ws, err
	}
	var all []*websocket.Conn
	for range maxSockets {
		ws, err := dial()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, ws)
	}
	if ws, err := dial(); err == nil {
		ws.Close()
		t.Errorf("%d may look, want %d at most", maxSockets+1, maxSockets)
	}
	var f Frame
	if err := all[0].ReadJSON(&f); err != nil || f.Type != "state" || string(f.State) != `"a state"` {
		t.Errorf("the first frame is %+v, %v", f, err)
	}
	s.call("seen")
	if err := all[0].ReadJSON(&f); err != nil || len(f.Events) != 1 || f.Events[0].Name != "seen" {
		t.Errorf("the second frame is %+v, %v", f, err)
	}
	for _, ws := range all {
		_ = ws.Close()
	}
	for end := time.Now().Add(bridgetest.Patience); s.observers.Any() && time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
	}
	if s.observers.Any() {
		t.Error("it observes though all have left")
	}
}

func BenchmarkObserved(b *testing.B) {
	for name, look := range map[string]bool{"nobody": false, "somebody": true} {
		b.Run(name, func(b *testing.B) {
			s := newStage()
			if look {
				defer s.Look()()
			}
			b.ReportAllocs()
			for b.Loop() {
				if s.observers.Any() {
					s.call("x")
				}
			}
		})
	}
}
