package back

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/backtest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/watchtest"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/settings"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/subscribe"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A forgetfulServer is one over a connection that, as those of go-sdk, has one listen
// per connection: it takes a while to end one, and what it forgets then is what the
// next has asked for, too.
type forgetfulServer struct {
	*backtest.Peer
	takes   atomic.Int64 // to end a stream, in nanoseconds; zero means 25 ms
	late    bool         // another may be asked for before
	live    wire.ID
	asked   map[string]bool // the streams, by their ids: it ignores the cancellation of others
	granted []byte          // nil once the server has gone deaf
	listens int
	cancels int
	ended   chan wire.ID
	tell    chan struct{}      // has it tell of a change of file:///a
	stop    chan time.Duration // stops it as SIGSTOP does; what is written to it is kept

	acks   time.Duration // how long it takes to begin a stream; it begins none that is cancelled by then
	begins *time.Timer   // nil before the first, and if that takes no time
	begin  chan wire.ID
}

// serve plays the server until the connection ends.
func (s *forgetfulServer) serve() {
	messages := make(chan wire.Message, 64)
	go s.read(messages) // ends with the connection
	for {
		select {
		case m, ok := <-messages:
			if !ok {
				return
			}
			s.take(m)
		case id := <-s.ended:
			// The back may have closed the connection meanwhile.
			_ = s.Conn.Write(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete"}}`, id))
			if s.granted != nil && s.live.String() != id.String() && !s.late {
				s.T.Error("a listen was asked for before the former had ended")
			}
			s.granted = nil
		case id := <-s.begin:
			s.acknowledge(id)
		case d := <-s.stop:
			time.Sleep(d)
		case <-s.tell:
			if s.granted != nil {
				s.Write(uriText, "file:///a", s.live.String())
			}
		}
	}
}

func (s *forgetfulServer) read(to chan<- wire.Message) {
	defer close(to)
	for {
		text, err := s.Conn.Read()
		if err != nil {
			return
		}
		m, err := wire.Parse(append([]byte(nil), text...), wire.Options{})
		if err != nil {
			s.T.Errorf("the back wrote %s: %v", text, err)
		}
		to <- m
	}
}

func (s *forgetfulServer) acknowledge(id wire.ID) {
	s.Write(ackText, s.granted, id)
	s.Write(uriText, "file:///a", id.String())
}

func (s *forgetfulServer) take(m wire.Message) {
	switch m.Method {
	case spec.MethodListen:
		s.listens++
		s.asked[m.ID.String()] = true
		s.live, s.granted = m.ID, append([]byte(nil), wire.Get(m.Params, "notifications")...)
		if s.acks == 0 {
			s.acknowledge(m.ID)
			return
		}
		s.begins = time.AfterFunc(s.acks, func() { s.begin <- m.ID })
	case spec.NotifyCancelled:
		id, err := wire.ParseID(wire.Get(m.Params, "requestId"))
		if err != nil {
			s.T.Errorf("cancelled %s: %v", m.Params, err)
		}
		s.cancels++
		if !s.asked[id.String()] {
			return
		}
		if s.begins != nil {
			s.begins.Stop()
		}
		time.AfterFunc(cmp.Or(time.Duration(s.takes.Load()), 25*time.Millisecond), func() { s.ended <- id })
	}
}

// A command reads the listen request, which comes first, when it has started.
func TestL2M22AListenWaitsForACommandThatStarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := transport.NewPipe()
		topic := watchtest.URITopics(listenProfile.Scope, "file:///a")[0]
		o := upstream.Options{Name: "scripted", ClientInfo: json.RawMessage(upInfo), Settings: settings.Server{Timeouts: settings.Timeouts{Connect: time.Minute}}}
		b, err := New(Options{Options: o, Dial: func(context.Context) (transport.Conn, error) { return near, nil }})
		if err != nil {
			t.Fatal(err)
		}
		server := &forgetfulServer{Peer: backtest.NewPeer(t, far), asked: make(map[string]bool), ended: make(chan wire.ID, 16)}
		done := make(chan struct{})
		time.AfterFunc(55*time.Second, func() { server.serve(); close(done) }) // ends with the connection
		honored, _, err := b.Watch(t.Context(), listenProfile, []fanout.Topic{topic})
		if err != nil || len(honored) != 1 {
			t.Errorf("Watch = %v, %v, want what the server accepts after its start", honored, err)
		}
		synctest.Wait() // what the server writes after its acknowledgment has been read
		if err := b.Close(context.Background()); err != nil && !errors.Is(err, transport.ErrClosed) {
			t.Errorf("Close = %v", err)
		}
		_ = far.Close()
		<-done
	})
}

// wantTold has the server tell of a change, and checks that it is told once.
func (s *forgetfulServer) wantTold(aud *watchtest.Audience, when string) {
	s.T.Helper()
	aud.Log.Take()
	s.tell <- struct{}{}
	synctest.Wait()
	if got := aud.Log.Take(); len(got) != 1 {
		s.T.Errorf("%s: after a change told %q, want it", when, got)
	}
}

// A slowWriter takes a while to write a listen request.
type slowWriter struct {
	transport.Conn
	takes time.Duration
}

func (w *slowWriter) Write(msg []byte) error {
	if bytes.Contains(msg, []byte(spec.MethodListen)) {
		time.Sleep(w.takes)
	}
	return w.Conn.Write(msg)
}

// forgetful returns a back of a forgetfulServer. end ends both.
func forgetful(t *testing.T, takes time.Duration) (b *Back, aud *watchtest.Audience, server *forgetfulServer, end func()) {
	return forgetfulOver(t, takes, func(c transport.Conn) transport.Conn { return c })
}

// forgetfulOver is forgetful over the Conn that over returns.
func forgetfulOver(t *testing.T, takes time.Duration, over func(transport.Conn) transport.Conn) (b *Back, aud *watchtest.Audience, server *forgetfulServer, end func()) {
	near, far := transport.NewPipe()
	aud = watchtest.NewAudience(&watchtest.Journal{})
	b, err := New(Options{Options: upstream.Options{Name: "scripted", ClientInfo: json.RawMessage(upInfo), Changes: aud},
		Dial: func(context.Context) (transport.Conn, error) { return over(near), nil }})
	if err != nil {
		t.Fatal(err)
	}
	server = &forgetfulServer{Peer: backtest.NewPeer(t, far), asked: make(map[string]bool), ended: make(chan wire.ID, 64), tell: make(chan struct{}), stop: make(chan time.Duration), begin: make(chan wire.ID, 1)}
	server.takes.Store(int64(takes))
	done := make(chan struct{})
	go func() { server.serve(); close(done) }() // ends with the connection
	return b, aud, server, func() {
		if err := b.Close(context.Background()); err != nil && !errors.Is(err, transport.ErrClosed) {
			t.Errorf("Close = %v", err)
		}
		_ = far.Close()
		<-done
	}
}

// watchOne watches uri, and returns what is honored of that.
func watchOne(t *testing.T, b *Back, aud *watchtest.Audience, uri string) []fanout.Topic {
	t.Helper()
	topic := watchtest.URITopics(listenProfile.Scope, uri)[0]
	aud.Want(1, topic)
	honored, _, err := b.Watch(t.Context(), listenProfile, []fanout.Topic{topic})
	if err != nil && !errors.Is(err, mcp.ErrNotNow) {
		t.Errorf("Watch(%s) = %v", uri, err)
	}
	return honored
}

// What a server does not acknowledge in time is not taken for refused: whoever asks again later is
// told of changes.
func TestL2M20AcknowledgedTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, aud, server, end := forgetful(t, 25*time.Millisecond)
		watchOne(t, b, aud, "file:///b") // it is there
		server.stop <- 0                 // it reads acks after this
		server.acks = 30 * time.Second
		topic := watchtest.URITopics(listenProfile.Scope, "file:///a")[0]
		aud.Want(1, topic)
		began := time.Now()
		_, _, err := b.Watch(t.Context(), listenProfile, []fanout.Topic{topic})
		if took := time.Since(began); !errors.Is(err, mcp.ErrNotNow) || took != subscribe.Patience {
			t.Errorf("Watch = %v after %v, want that it can't report changes at the moment", err, took)
		}
		server.stop <- 0
		server.acks = time.Millisecond
		if honored := watchOne(t, b, aud, "file:///a"); len(honored) != 1 {
			t.Errorf("later, Watch = %v", honored)
		}
		synctest.Wait() // the server has told of the change, too
		end()
	})
}

// On a connection there is one listen at a time, and the next one waits until a server
// has had the time to end the former.
func TestL2M22OverAConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, aud, server, end := forgetful(t, 0)
		for _, uri := range []string{"file:///a", "file:///b", "file:///c"} {
			if honored := watchOne(t, b, aud, uri); len(honored) != 1 {
				t.Errorf("Watch(%s) = %v", uri, honored)
			}
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(time.Minute)
		end()
		told := make(map[string]int)
		for _, line := range aud.Log.Take() {
			told[line]++
		}
		if told[`event file:///a{"v":1}`] != 3 || told["event file:///a"] != 1 || told["event file:///b"] != 1 || told["event file:///c"] != 0 || server.listens != 3 {
			t.Errorf("after %d listens told %v, want each change, and one cue for what was live before the last", server.listens, told)
		}
	})
}

// A server that is slow to end a stream forgets nothing that the next one has asked for: it is
// waited for or, where it does not answer in time, what it may have forgotten is asked for again.
func TestL2M22ACommandThatEndsStreamsLate(t *testing.T) {
	for _, tt := range []struct {
		takes time.Duration // the first time, and then
		then  time.Duration
		late  bool
	}{
		{400 * time.Millisecond, 400 * time.Millisecond, false},
		{400 * time.Millisecond, 4 * time.Second, false}, // it is known to answer
		{2 * time.Second, 2 * time.Second, true},         // nobody knows
		{20 * time.Second, 20 * time.Second, true},
	} {
		t.Run(fmt.Sprint(tt.takes, " ", tt.then), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, aud, server, end := forgetful(t, tt.takes)
				server.late = tt.late
				for i, uri := range []string{"file:///a", "file:///b", "file:///c"} {
					if honored := watchOne(t, b, aud, uri); len(honored) != 1 {
						t.Errorf("Watch(%s) = %v", uri, honored)
					}
					time.Sleep(time.Second)
					if i == 1 {
						server.takes.Store(int64(tt.then))
					}
				}
				time.Sleep(5 * time.Minute)
				server.wantTold(aud, "at the end")
				if server.listens > 8 || server.listens != server.cancels+1 {
					t.Errorf("%d listen requests, %d cancelled, want 8 at most, and all but one", server.listens, server.cancels)
				}
				end()
				time.Sleep(2 * time.Minute) // what was to end
			})
		})
	}
}

// A stream that is put in doubt while its request is being written is cancelled after that: a server
// ignores the cancellation of what it has not been asked for, and would have the stream for ever.
func TestL2M22DoubtedBeforeItIsSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const late = 20 * time.Millisecond // after the time that a server gets to end a stream
		b, aud, server, end := forgetfulOver(t, endWaits[farewellUnknown]+late, func(c transport.Conn) transport.Conn {
			return &slowWriter{c, 2 * late}
		})
		server.late = true
		for _, uri := range []string{"file:///a", "file:///b"} {
			if honored := watchOne(t, b, aud, uri); len(honored) != 1 {
				t.Errorf("Watch(%s) = %v", uri, honored)
			}
		}
		time.Sleep(5 * time.Second)
		server.wantTold(aud, "at the end")
		if server.listens != server.cancels+1 || len(server.asked) != server.listens {
			t.Errorf("%d listen requests, %d cancelled, want all but one", server.listens, server.cancels)
		}
		end()
	})
}

// A command that was stopped tells of changes again at once when it goes on, not after the pause
// that has grown, and what it drops late with the streams that were cancelled meanwhile is asked
// for again.
func TestL2M22ACommandThatWasStopped(t *testing.T) {
	for _, tt := range []struct {
		name         string
		asked        int // topics before it is stopped
		takes, stops time.Duration
		acks         time.Duration
	}{
		{"for a second", 2, 25 * time.Millisecond, time.Second, 0},
		{"for 25 s", 2, 25 * time.Millisecond, 25 * time.Second, 0},
		{"for 90 s", 2, 25 * time.Millisecond, 90 * time.Second, 0},
		{"for 5 minutes", 2, 25 * time.Millisecond, 5 * time.Minute, 0},
		{"before it has ended a stream", 1, 25 * time.Millisecond, 25 * time.Second, 0},
		{"and answers none that end", 2, 10 * time.Hour, 90 * time.Second, 0},
		{"and answers none that end, for long", 2, 10 * time.Hour, 10 * time.Minute, 0},
		{"and begins none that is cancelled", 2, 25 * time.Millisecond, 5 * time.Minute, time.Millisecond},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, aud, server, end := forgetful(t, tt.takes)
				server.late, server.acks = true, tt.acks
				uris := []string{"file:///a", "file:///b", "file:///c"}
				for _, uri := range uris[:tt.asked] {
					watchOne(t, b, aud, uri)
					time.Sleep(time.Minute)
				}
				server.stop <- tt.stops
				began := time.Now()
				honored := watchOne(t, b, aud, uris[tt.asked]) // none after 10 s
				time.Sleep(time.Until(began.Add(tt.stops + 2*time.Second)))
				server.wantTold(aud, "2 s after it went on")
				time.Sleep(5 * time.Minute)
				server.wantTold(aud, "minutes after it went on")
				for _, topic := range honored {
					if !bytes.Contains(server.granted, []byte(topic.URI)) {
						t.Errorf("the command reports changes of %s, want also %s", server.granted, topic.URI)
					}
				}
				if n := 8 + int(tt.stops/(10*time.Second)); server.listens > n || server.listens != server.cancels+1 {
					t.Errorf("%d listen requests, %d cancelled, want %d at most, and all but one", server.listens, server.cancels, n)
				}
				server.takes.Store(1)
				end()
				time.Sleep(11 * time.Hour) // what was to end
			})
		})
	}
}

// A connection forgets the oldest of the cancelled listens that a server never answers.
func TestL2M22ListensThatAreNeverAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, aud, _, end := forgetful(t, 10*time.Hour)
		for i := range 3 * maxPartings {
			watchOne(t, b, aud, fmt.Sprint("file:///", i))
			time.Sleep(time.Minute)
		}
		p := b.link.(*connLink).conn
		p.mu.Lock()
		n := len(p.partings)
		p.mu.Unlock()
		if n != maxPartings {
			t.Errorf("%d listens are remembered, want the last %d", n, maxPartings)
		}
		end()
		time.Sleep(11 * time.Hour)
	})
}

// Profiles share the listen of a connection: that of a second one would make the first deaf at servers
// that keep one for each connection. Each is told of what it has asked for, once, and as long as it does.
func TestL2M22ProfilesShareAConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, aud, server, end := forgetful(t, 25*time.Millisecond)
		defer end()
		other := listenProfile
		other.Scope = "scripted/2"
		var release func()
		for i, p := range []mcp.Profile{listenProfile, other} {
			topics := watchtest.URITopics(p.Scope, []string{"file:///a", "file:///b"}[:i+1]...)
			aud.Want(1, topics...)
			honored, left, err := b.Watch(t.Context(), p, topics)
			if err != nil || len(honored) != len(topics) {
				t.Errorf("Watch in %s = %v, %v", p.Scope, honored, err)
			}
			release = func() { aud.Want(-1, topics...); left() }
		}
		time.Sleep(time.Minute)
		told := func(want ...string) {
			t.Helper()
			before := len(aud.Events())
			server.tell <- struct{}{}
			synctest.Wait()
			var got []string
			for _, ev := range aud.Events()[before:] {
				got = append(got, ev.Topic.Scope+" "+ev.Topic.URI)
			}
			if slices.Sort(got); !slices.Equal(got, want) {
				t.Errorf("a change told %q, want %q", got, want)
			}
		}
		told("scripted/1 file:///a", "scripted/2 file:///a")
		if server.listens != 2 || server.cancels != 1 {
			t.Errorf("%d listen requests, %d cancelled, want two, and one", server.listens, server.cancels)
		}
		release()
		time.Sleep(time.Minute)
		told("scripted/1 file:///a")
	})
}

// A change of the list of tools is heard on the only stream of a connection, which one profile has
// opened: what is known of tools is forgotten for all that follow it.
func TestT07AListThatChangesForSeveralProfiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		aud := watchtest.NewAudience(&watchtest.Journal{})
		b, peers := upLines(t, Options{Options: upstream.Options{Changes: aud}})
		asked := make(chan wire.ID, 1)
		var p *backtest.Peer
		go func() { // ends with the acknowledgment
			p = <-peers
			m := p.Want(spec.MethodListen)
			p.Write(ackText, `{"toolsListChanged":true}`, m.ID)
			asked <- m.ID
		}()
		for _, scope := range []string{"scripted/1", "scripted/2"} {
			b.taskTools.tools.Add(taskTool{scope, "x"}, struct{}{})
			tools := fanout.Topic{Scope: scope, Kind: fanout.ToolsListChanged}
			aud.Want(1, tools)
			honored, _, err := b.Watch(t.Context(), mcp.Profile{Scope: scope, Capabilities: json.RawMessage(`{}`)}, []fanout.Topic{tools})
			if err != nil || len(honored) != 1 {
				t.Errorf("Watch in %s = %v, %v", scope, honored, err)
			}
		}
		id := <-asked
		p.Write(listText, "tools", id)
		synctest.Wait()
		if left := b.taskTools.tools.Keys(); len(left) != 0 || len(aud.Events()) != 2 {
			t.Errorf("after %d changes %v are still known to want a task", len(aud.Events()), left)
		}
	})
}
