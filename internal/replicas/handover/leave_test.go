package handover

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/replicas"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	legacyfront "github.com/mcpbridge/mcpbridge/legacy/front"
)

// bubble runs f in a bubble with replicas, the first of which is to end.
func bubble(t *testing.T, f func(t *testing.T, rig *rig, a, b *replica)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		rig := newRig(t, "AAAAAAAA", "BBBBBBBB")
		f(t, rig, rig.by["AAAAAAAA"], rig.by["BBBBBBBB"])
	})
}

// found is who goes on with a session, as a replica finds it.
func (r *replica) found(t *testing.T, id legacyfront.SessionID) string {
	t.Helper()
	at, err := r.Find(t.Context(), string(id), false)
	if err != nil {
		t.Errorf("Find at %s: %v", r.name, err)
	}
	return at
}

func (r *replica) counted(t *testing.T, outcome string, want int) {
	t.Helper()
	if got := r.counts.Count(outcome); got != want {
		t.Errorf("%s has counted %d %s, want %d", r.name, got, outcome, want)
	}
}

// A session goes on under its id at the heir, which every replica finds.
func TestLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rig := newRig(t, "AAAAAAAA", "BBBBBBBB", "CCCCCCCC")
		a, b, c := rig.by["AAAAAAAA"], rig.by["BBBBBBBB"], rig.by["CCCCCCCC"]
		a.heir = "CCCCCCCC"
		first, second := a.open(t, "1AAAAAAAA-1"), a.open(t, "1AAAAAAAA-2")
		rig.drain(a)
		done := a.leave(t, atEnd())
		<-done
		for _, id := range []legacyfront.SessionID{first, second} {
			if a.has(id) || b.has(id) || !c.has(id) {
				t.Errorf("%s is at a: %v, at b: %v, at c: %v; want it at c", id, a.has(id), b.has(id), c.has(id))
			}
			if at := b.found(t, id); at != c.name {
				t.Errorf("b finds %s at %q, want c", id, at)
			}
		}
		if len(c.took) != 2 {
			t.Errorf("Took was called for %q, want both", c.took)
		}
		a.counted(t, "given", 2)
		c.counted(t, "taken", 2)
		a.counted(t, "ended", 0)
		if n := c.logs.Count("client sessions of another replica go on here"); n != 1 {
			t.Errorf("%d log lines, want 1", n)
		}
	})
}

// Whoever holds a session while it is handed over is told who has it.
func TestLeaveTellsWhoWaits(t *testing.T) {
	bubble(t, func(t *testing.T, rig *rig, a, b *replica) {
		id := a.open(t, "1AAAAAAAA-1")
		arrived, reply := make(chan struct{}), make(chan struct{})
		b.answer = func(http.ResponseWriter, *http.Request) error {
			close(arrived)
			<-reply
			return errPass
		}
		rig.drain(a)
		a.leave(t, newPace().options())
		<-arrived
		release, d := a.front.Hold(string(id), alice)
		if release != nil || d == nil {
			t.Fatal("Hold does not say that the session is being handed over")
		}
		close(reply)
		if by := d.Wait(t.Context()); by != b.name {
			t.Errorf("Wait() = %q, want %q", by, b.name)
		}
	})
}

// What is in use stays until it is not, and so does Leave.
func TestLeaveWaitsForCalls(t *testing.T) {
	bubble(t, func(t *testing.T, rig *rig, a, b *replica) {
		id := a.open(t, "1AAAAAAAA-1")
		release, _ := a.front.Hold(string(id), alice)
		rig.drain(a)
		done := a.leave(t, atEnd())
		time.Sleep(time.Minute)
		if !a.has(id) || b.has(id) || closed(done) {
			t.Fatal("the session was handed over within its call")
		}
		release()
		<-done
		if a.has(id) || !b.has(id) {
			t.Error("the session was not handed over after its call")
		}
	})
}

func closed(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// New sessions are handed over, too, until there will be none.
func TestLeaveGoesOnUntilEnding(t *testing.T) {
	bubble(t, func(t *testing.T, rig *rig, a, b *replica) {
		p := newPace()
		rig.drain(a)
		done := a.leave(t, p.options())
		time.Sleep(time.Minute)
		id := a.open(t, "1AAAAAAAA-late")
		time.Sleep(2 * pause)
		if !b.has(id) || closed(done) {
			t.Error("a session that was opened while draining stays")
		}
		close(p.ending)
		time.Sleep(2 * pause)
		if !closed(done) {
			t.Error("Leave goes on")
		}
	})
}

// Sessions of a server that keeps something of them stay.
func TestLeaveKeepsStateful(t *testing.T) {
	bubble(t, func(t *testing.T, rig *rig, a, b *replica) {
		a.stateful = true
		id := a.open(t, "1AAAAAAAA-1")
		rig.drain(a)
		<-a.leave(t, atEnd())
		if !a.has(id) || b.has(id) {
			t.Error("a session with a state was handed over")
		}
		a.counted(t, "ended", 0) // it is known to end
	})
}

// If nobody goes on with a session, it stays until its replica ends, which is told and counted.
func TestLeaveWithoutHeirs(t *testing.T) {
	for name, change := range map[string]func(rig *rig, a, b *replica){
		"the other drains": func(rig *rig, _, b *replica) { rig.drain(b) },
		"it is chosen itself": func(_ *rig, a, _ *replica) {
			a.set(func() { a.heir = a.name })
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, rig *rig, a, b *replica) {
				id := a.open(t, "1AAAAAAAA-1")
				change(rig, a, b)
				rig.drain(a)
				<-a.leave(t, atEnd())
				if !a.has(id) || b.has(id) {
					t.Error("the session has gone")
				}
				a.counted(t, "ended", 1)
				if n := a.logs.Count("client sessions end with this replica: their clients initialize anew"); n != 1 {
					t.Errorf("%d log lines, want 1", n)
				}
			})
		})
	}
}

// An heir that joins later gets the sessions.
func TestLeaveWaitsForAnHeir(t *testing.T) {
	bubble(t, func(t *testing.T, rig *rig, a, b *replica) {
		id := a.open(t, "1AAAAAAAA-1")
		rig.drain(b)
		rig.drain(a)
		a.leave(t, newPace().options())
		time.Sleep(10 * time.Second)
		c := rig.add("CCCCCCCC", legacyfront.Options{})
		rig.settle()
		time.Sleep(2 * failedPause)
		if !c.has(id) {
			t.Error("the session was not handed over to the replica that joined")
		}
	})
}

// What is not gone on with is back, and tried again: four times in a row while ending, with
// a second between.
func TestLeaveTriesAgain(t *testing.T) {
	for name, answer := range map[string]func(http.ResponseWriter, *http.Request) error{
		"no connection": func(http.ResponseWriter, *http.Request) error { return errors.New("connection refused") },
		"no such server": func(w http.ResponseWriter, _ *http.Request) error {
			http.Error(w, `{"refused":[""]}`, http.StatusNotFound)
			return nil
		},
		"no JSON":   func(w http.ResponseWriter, _ *http.Request) error { return write(w, "hello") },
		"too short": func(w http.ResponseWriter, _ *http.Request) error { return write(w, `{"refused":[]}`) },
		"refused": func(w http.ResponseWriter, _ *http.Request) error {
			return write(w, `{"refused":["there is no room"]}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, rig *rig, a, b *replica) {
				id := a.open(t, "1AAAAAAAA-1")
				tried := 0
				b.answer = func(w http.ResponseWriter, r *http.Request) error {
					tried++
					return answer(w, r)
				}
				rig.drain(a)
				begun := time.Now()
				<-a.leave(t, atEnd())
				if took := time.Since(begun); tried != maxFailures || took != (maxFailures-1)*failedPause {
					t.Errorf("tried %d times in %v, want %d with %v between", tried, took, maxFailures, failedPause)
				}
				if release, d := a.front.Hold(string(id), alice); release == nil || d != nil {
					t.Error("the session is not back")
				} else {
					release()
				}
				if n := a.counts.Count("failedrefused") + a.counts.Count("failedunanswered"); n != maxFailures {
					t.Errorf("%d failures were counted, want %d", n, maxFailures)
				}
				a.counted(t, "ended", 1)
				if n := a.logs.Count("client sessions not handed over"); n != 1 {
					t.Errorf("%d log lines for the same in a second, want 1", n)
				}
			})
		})
	}
}

func write(w io.Writer, text string) error {
	_, err := io.WriteString(w, text)
	return err
}

// While it is not ending, a replica never gives up; what failed for a while is handed over.
func TestLeaveDoesNotGiveUp(t *testing.T) {
	bubble(t, func(t *testing.T, rig *rig, a, b *replica) {
		id := a.open(t, "1AAAAAAAA-1")
		b.answer = func(http.ResponseWriter, *http.Request) error { return errors.New("connection refused") }
		rig.drain(a)
		p := newPace()
		done := a.leave(t, p.options())
		time.Sleep(time.Minute)
		b.set(func() { b.answer = nil })
		time.Sleep(failedPause + failedPause/2) // between two tries
		if !b.has(id) || closed(done) {
			t.Error("the session was not handed over once the other answers")
		}
	})
}

// A replica that takes its time is not waited for forever.
func TestLeaveBoundsARequest(t *testing.T) {
	bubble(t, func(t *testing.T, rig *rig, a, b *replica) {
		a.open(t, "1AAAAAAAA-1")
		b.answer = func(_ http.ResponseWriter, r *http.Request) error {
			<-r.Context().Done()
			return r.Context().Err()
		}
		rig.drain(a)
		begun := time.Now()
		<-a.leave(t, atEnd())
		if took, want := time.Since(begun), maxFailures*sendTimeout+(maxFailures-1)*failedPause; took != want {
			t.Errorf("it took %v, want %v", took, want)
		}
	})
}

// One request has at most 64 sessions, and a MiB of them if it has more than one.
func TestLeaveInParts(t *testing.T) {
	for name, tc := range map[string]struct {
		sessions, info int
		parts          string
	}{
		"many":            {130, 10, "[64 64 2]"},
		"large":           {4, 300 << 10, "[3 1]"},
		"one is too much": {2, 2 << 20, "[1 1]"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, rig *rig, a, b *replica) {
				for n := range tc.sessions {
					h := handoverOf(fmt.Sprint("1AAAAAAAA-", n))
					h.ClientInfo = []byte(`{"name":"` + strings.Repeat("x", tc.info) + `"}`)
					if err := a.front.Adopt(h); err != nil {
						t.Fatal(err)
					}
				}
				var parts []int
				b.answer = func(_ http.ResponseWriter, r *http.Request) error {
					text, err := io.ReadAll(r.Body)
					if err != nil {
						return err
					}
					r.Body = io.NopCloser(strings.NewReader(string(text)))
					var p parcel
					if err := json.Unmarshal(text, &p); err != nil {
						return err
					}
					parts = append(parts, len(p.Sessions))
					return errPass
				}
				rig.drain(a)
				<-a.leave(t, atEnd())
				if got := fmt.Sprint(parts); got != tc.parts || b.front.Sessions() != tc.sessions {
					t.Errorf("the requests have %s sessions, want %s; %d are there, want %d", got, tc.parts, b.front.Sessions(), tc.sessions)
				}
			})
		})
	}
}

// Without records others would not find sessions: none is handed over.
func TestLeaveWithoutRecords(t *testing.T) {
	bubble(t, func(t *testing.T, rig *rig, a, b *replica) {
		id := a.open(t, "1AAAAAAAA-1")
		g := rig.group(a, noRecords{a.engine})
		defer g.Close()
		rig.drain(a)
		g.Leave(t.Context(), []Server{a.server()}, newPace().options())
		if !a.has(id) || b.has(id) {
			t.Error("the session was handed over")
		}
	})
}

// noRecords is an engine that knows of members alone.
type noRecords struct{ replicas.Engine }

func (noRecords) Get(context.Context, string) ([]byte, error) { return nil, replicas.ErrNoClaims }

// A response that its client has not read keeps the session, until that is in a hurry.
func TestLeaveWaitsForReaders(t *testing.T) {
	bubble(t, func(t *testing.T, rig *rig, a, b *replica) {
		id := a.open(t, "1AAAAAAAA-1")
		a.leaveUnread(t, id)
		rig.drain(a)
		p := newPace()
		a.leave(t, p.options())
		time.Sleep(time.Minute)
		if !a.has(id) || b.has(id) {
			t.Fatal("the session was handed over before its client has read a response")
		}
		close(p.hurry)
		time.Sleep(2 * pause)
		if a.has(id) || !b.has(id) {
			t.Error("the session was not handed over in a hurry")
		}
	})
}

// leaveUnread has a call of a session end whose client has gone away meanwhile.
func (r *replica) leaveUnread(t *testing.T, id legacyfront.SessionID) {
	t.Helper()
	body := []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}`)
	m, err := wire.Parse(body, wire.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	req := httptest.NewRequest(http.MethodPost, "/mcp/docs", nil).WithContext(ctx)
	req.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}, "Mcp-Session-Id": {string(id)}}
	done := make(chan struct{})
	go func() { // ends with the request
		defer close(done)
		r.front.ServePost(httptest.NewRecorder(), req, body, &m, handoverOf("").Opener)
	}()
	time.Sleep(callTime / 2)
	cancel()
	<-done
	time.Sleep(callTime)
	synctest.Wait()
}

// Sessions that went to nobody are tried anew by each of those who fail: only failures in a row
// count.
func TestLeaveCountsFailuresInARow(t *testing.T) {
	bubble(t, func(t *testing.T, rig *rig, a, b *replica) {
		first, second := a.open(t, "1AAAAAAAA-1"), a.open(t, "1AAAAAAAA-2")
		release, _ := a.front.Hold(string(second), alice)
		tried := 0
		b.answer = func(http.ResponseWriter, *http.Request) error {
			if tried++; tried%maxFailures != 0 {
				return errors.New("connection refused")
			}
			return errPass
		}
		rig.drain(a)
		done := a.leave(t, atEnd())
		time.Sleep(time.Minute)
		if !b.has(first) || closed(done) {
			t.Fatal("the first session was not handed over, or Leave has returned")
		}
		release()
		<-done
		if !b.has(second) {
			t.Error("the second session was not handed over: failures before a success count")
		}
	})
}

// A replica that is alone ends without a delay.
func TestLeaveAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rig := newRig(t, "AAAAAAAA")
		a := rig.by["AAAAAAAA"]
		a.open(t, "1AAAAAAAA-1")
		begun := time.Now()
		<-a.leave(t, atEnd())
		if took := time.Since(begun); took != 0 {
			t.Errorf("it took %v", took)
		}
	})
}

// A replica that ends, too, is no heir, even if it is chosen.
func TestLeavePassesOverDraining(t *testing.T) {
	bubble(t, func(t *testing.T, rig *rig, a, b *replica) {
		c := rig.add("CCCCCCCC", legacyfront.Options{})
		rig.settle()
		a.heir = c.name
		id := a.open(t, "1AAAAAAAA-1")
		rig.drain(c)
		rig.drain(a)
		<-a.leave(t, atEnd())
		if !a.has(id) || c.has(id) {
			t.Error("the session was handed over to a replica that ends")
		}
	})
}

// A session is never sent to the replica that has it.
func TestLeaveToItself(t *testing.T) {
	bubble(t, func(t *testing.T, _ *rig, a, b *replica) {
		id := a.open(t, "1AAAAAAAA-1")
		a.heir = a.name
		a.answer = func(http.ResponseWriter, *http.Request) error {
			t.Error("it has sent a request to itself")
			return errPass
		}
		<-a.leave(t, atEnd()) // that it drains is not known yet
		if !a.has(id) || b.has(id) {
			t.Error("the session has gone")
		}
	})
}

// A server whose sessions nobody goes on with keeps none of the next one's.
func TestLeaveGoesOnWithTheNextServer(t *testing.T) {
	bubble(t, func(t *testing.T, rig *rig, a, b *replica) {
		id := a.open(t, "1AAAAAAAA-1")
		refused := a.server()
		refused.Heir = func(legacyfront.Handover) replicas.Replica {
			return replicas.Replica{Instance: "nowhere", Addr: "nowhere:1"}
		}
		rig.drain(a)
		a.Leave(t.Context(), []Server{refused, a.server()}, atEnd())
		if !b.has(id) {
			t.Error("no replica goes on with a session of the server after the refused one")
		}
	})
}
