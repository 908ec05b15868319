package back

import (
	"context"
	"encoding/json"
	"errors"
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
	live    wire.ID
	granted []byte // nil once the server has gone deaf
	listens int
	ended   chan wire.ID
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
			s.Result(id, `{"resultType":"complete"}`)
			if s.granted != nil && s.live.String() != id.String() {
				s.T.Error("a listen was asked for before the former had ended")
			}
			s.granted = nil
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
		time.AfterFunc(25*time.Millisecond, func() { s.ended <- id })
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
