package back

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/backtest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/watchtest"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/settings"
	"github.com/mcpbridge/mcpbridge/internal/spec"
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
	granted []byte // nil once the server has gone deaf
	listens int
	cancels int
	ended   chan wire.ID
	tell    chan struct{} // has it tell of a change of file:///a
}

// serve plays the server until the connection ends.
func (s *forgetfulServer) serve() {
	messages := make(chan wire.Message)
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

func (s *forgetfulServer) take(m wire.Message) {
	switch m.Method {
	case spec.MethodListen:
		s.listens++
		s.live, s.granted = m.ID, append([]byte(nil), wire.Get(m.Params, "notifications")...)
		s.Write(ackText, s.granted, m.ID)
		s.Write(uriText, "file:///a", m.ID.String())
	case spec.NotifyCancelled:
		id, err := wire.ParseID(wire.Get(m.Params, "requestId"))
		if err != nil {
			s.T.Errorf("cancelled %s: %v", m.Params, err)
		}
		s.cancels++
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
		server := &forgetfulServer{Peer: backtest.NewPeer(t, far), ended: make(chan wire.ID, 16)}
		done := make(chan struct{})
		time.AfterFunc(55*time.Second, func() { server.serve(); close(done) }) // ends with the connection
		honored, _, err := b.Watch(t.Context(), listenProfile, []fanout.Topic{topic})
		if err != nil || len(honored) != 1 {
			t.Errorf("Watch = %v, %v, want what the server accepts after its start", honored, err)
		}
		if err := b.Close(context.Background()); err != nil && !errors.Is(err, transport.ErrClosed) {
			t.Errorf("Close = %v", err)
		}
		_ = far.Close()
		<-done
	})
}

// On a connection there is one listen at a time, and the next one waits until a server
// has had the time to end the former.
func TestL2M22OverAConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := transport.NewPipe()
		aud := watchtest.NewAudience(&watchtest.Journal{})
		b, err := New(Options{Options: upstream.Options{Name: "scripted", ClientInfo: json.RawMessage(upInfo), Changes: aud},
			Dial: func(context.Context) (transport.Conn, error) { return near, nil }})
		if err != nil {
			t.Fatal(err)
		}
		server := &forgetfulServer{Peer: backtest.NewPeer(t, far), ended: make(chan wire.ID, 16)}
		done := make(chan struct{})
		go func() { server.serve(); close(done) }() // ends with the connection
		for _, uri := range []string{"file:///a", "file:///b", "file:///c"} {
			topic := watchtest.URITopics(listenProfile.Scope, uri)[0]
			aud.Want(1, topic)
			honored, _, err := b.Watch(t.Context(), listenProfile, []fanout.Topic{topic})
			if err != nil || len(honored) != 1 {
				t.Errorf("Watch(%s) = %v, %v", uri, honored, err)
			}
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(time.Minute)
		if err := b.Close(context.Background()); err != nil && !errors.Is(err, transport.ErrClosed) {
			t.Errorf("Close = %v", err)
		}
		_ = far.Close()
		<-done
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
				near, far := transport.NewPipe()
				aud := watchtest.NewAudience(&watchtest.Journal{})
				b, err := New(Options{Options: upstream.Options{Name: "scripted", ClientInfo: json.RawMessage(upInfo), Changes: aud},
					Dial: func(context.Context) (transport.Conn, error) { return near, nil }})
				if err != nil {
					t.Fatal(err)
				}
				server := &forgetfulServer{Peer: backtest.NewPeer(t, far), late: tt.late, ended: make(chan wire.ID, 16), tell: make(chan struct{})}
				server.takes.Store(int64(tt.takes))
				done := make(chan struct{})
				go func() { server.serve(); close(done) }() // ends with the connection
				for i, uri := range []string{"file:///a", "file:///b", "file:///c"} {
					topic := watchtest.URITopics(listenProfile.Scope, uri)[0]
					aud.Want(1, topic)
					if honored, _, err := b.Watch(t.Context(), listenProfile, []fanout.Topic{topic}); err != nil || len(honored) != 1 {
						t.Errorf("Watch(%s) = %v, %v", uri, honored, err)
					}
					time.Sleep(time.Second)
					if i == 1 {
						server.takes.Store(int64(tt.then))
					}
				}
				time.Sleep(5 * time.Minute)
				aud.Log.Take()
				server.tell <- struct{}{}
				synctest.Wait()
				if got := aud.Log.Take(); len(got) != 1 {
					t.Errorf("after a change told %q, want it", got)
				}
				if server.listens > 8 || server.listens != server.cancels+1 {
					t.Errorf("%d listen requests, %d cancelled, want 8 at most, and all but one", server.listens, server.cancels)
				}
				if err := b.Close(context.Background()); err != nil && !errors.Is(err, transport.ErrClosed) {
					t.Errorf("Close = %v", err)
				}
				_ = far.Close()
				<-done
				time.Sleep(2 * time.Minute) // what was to end
			})
		})
	}
}
