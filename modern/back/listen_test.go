package back

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/backtest"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/quirks"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	"github.com/mcpbridge/mcpbridge/modern/watch"
)

var listenProfile = mcp.Profile{Scope: "scripted/1", Capabilities: json.RawMessage(`{"roots":{"listChanged":true}}`)}

// wantAll is a filter of all kinds.
var wantAll = mcp.Filter{Tools: true, Prompts: true, URIs: []string{"file:///a", "file:///b"}}

const (
	ackText  = `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":%s,"_meta":{"io.modelcontextprotocol/subscriptionId":%s}}}`
	endText  = `{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete"}}`
	listText = `{"jsonrpc":"2.0","method":"notifications/%s/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":%s}}}`
	uriText  = `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":%q,"_meta":{"io.modelcontextprotocol/subscriptionId":%s,"v":1}}}`
	granted  = `{"toolsListChanged":true,"resourceSubscriptions":["file:///a"]}`
)

// A listenPlay is a server's part in one listen stream, over either transport.
type listenPlay func(id wire.ID, send func(format string, args ...any))

// overBoth runs a test over HTTP and over a connection. hold: the response stays
// open after the play.
func overBoth(t *testing.T, play listenPlay, hold bool, test func(t *testing.T, b *Back)) {
	t.Run("http", func(t *testing.T) {
		p := newUpPeer(t)
		p.on["subscriptions/listen"] = func(w http.ResponseWriter, r *http.Request, m wire.Message) {
			play(m.ID, upStream(w))
			if hold {
				<-r.Context().Done()
			}
		}
		test(t, p.back(Options{}))
	})
	t.Run("connection", func(t *testing.T) {
		b, peers := upLines(t, Options{})
		go func() { // ends with the play
			p, ok := <-peers
			if !ok {
				return
			}
			play(p.Want("subscriptions/listen").ID, p.Write)
			if !hold {
				_ = p.Conn.Close()
			}
		}()
		test(t, b)
	})
}

func TestListenStream(t *testing.T) {
	overBoth(t, func(id wire.ID, send func(string, ...any)) {
		send(uriText, "file:///a", id.String()) // before the acknowledgment: dropped
		send(ackText, granted, id)
		send(listText, "tools", id)
		send(listText, "prompts", id) // not granted
		send(uriText, "file:///a/b", id)
		send(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"file:///a"}}`) // untagged
		send(uriText, "file:///c", `"1"`)                                                                 // another stream's
		send(endText, id)
	}, false, func(t *testing.T, b *Back) {
		met := quirks.New(quirks.Options{})
		b.opts.Quirks = met
		s, err := b.openListen(t.Context(), listenProfile, wantAll)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		defer func() {
			if got := met.Meetings(); len(got) != 1 || got[0] != (quirks.Meeting{Quirk: quirks.UntaggedNotice, Count: 1}) {
				t.Errorf("met %v, want the notice without an id", got)
			}
		}()
		if got := s.Honored(); !got.Tools || got.Prompts || len(got.URIs) != 1 || got.URIs[0] != "file:///a" {
			t.Errorf("honored %+v, want what was acknowledged", got)
		}
		for _, want := range []fanout.Event{
			{Topic: fanout.Topic{Scope: "scripted/1", Kind: fanout.ToolsListChanged}},
			{Topic: fanout.Topic{Scope: "scripted/1", Kind: fanout.ResourceUpdated, URI: "file:///a/b"}, Meta: json.RawMessage(`{"v":1}`)},
			{Topic: fanout.Topic{Scope: "scripted/1", Kind: fanout.ResourceUpdated, URI: "file:///a"}},
		} {
			got, err := s.Next()
			if err != nil || got.Topic != want.Topic || string(got.Meta) != string(want.Meta) {
				t.Errorf("next() = %+v, %v, want %+v", got, err, want)
			}
		}
		for range 2 {
			if ev, err := s.Next(); err != watch.ErrEnded {
				t.Errorf("next() = %v, %v, want watch.ErrEnded", ev, err)
			}
		}
	})
}

// Over HTTP the response says whose a change is: what a server has acknowledged under an id of another
// type is told under that.
func TestListenWithAnIDOfAnotherType(t *testing.T) {
	p := newUpPeer(t)
	p.on["subscriptions/listen"] = func(w http.ResponseWriter, _ *http.Request, m wire.Message) {
		send, text := upStream(w), `"`+m.ID.String()+`"`
		send(ackText, granted, text)
		send(listText, "tools", `"another"`)
		send(uriText, "file:///a", text)
		send(listText, "tools", m.ID.String())
		send(endText, m.ID)
	}
	s, err := p.back(Options{}).openListen(t.Context(), listenProfile, wantAll)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, want := range []fanout.Kind{fanout.ResourceUpdated, fanout.ToolsListChanged} {
		if ev, err := s.Next(); err != nil || ev.Topic.Kind != want {
			t.Errorf("Next() = %v, %v, want %v", ev, err, want)
		}
	}
}

func TestListenEnds(t *testing.T) {
	ack := func(id wire.ID, send func(string, ...any)) { send(ackText, granted, id) }
	for _, tt := range []struct {
		name     string
		play     listenPlay
		graceful bool
	}{
		{"by its result", func(id wire.ID, send func(string, ...any)) { ack(id, send); send(endText, id) }, true},
		{"by a cancellation", func(id wire.ID, send func(string, ...any)) {
			ack(id, send)
			send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%s}}`, id)
		}, true},
		{"at once, acknowledged", func(id wire.ID, send func(string, ...any)) { send(ackText, `{}`, id); send(endText, id) }, true},
		{"at once", func(id wire.ID, send func(string, ...any)) { send(endText, id) }, true},
		{"by an error", func(id wire.ID, send func(string, ...any)) {
			ack(id, send)
			send(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32603,"message":"bus gone"}}`, id)
		}, false},
		{"abruptly", ack, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			overBoth(t, tt.play, false, func(t *testing.T, b *Back) {
				s, err := b.openListen(t.Context(), listenProfile, wantAll)
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close()
				if _, err := s.Next(); (err == watch.ErrEnded) != tt.graceful || err == nil || err == errClosed {
					t.Errorf("next() = %v, want a graceful end: %v", err, tt.graceful)
				}
			})
		})
	}
}

func TestListenRefused(t *testing.T) {
	overBoth(t, func(id wire.ID, send func(string, ...any)) {
		send(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32603,"message":"Subscription limit reached"}}`, id)
	}, true, func(t *testing.T, b *Back) {
		s, err := b.openListen(t.Context(), listenProfile, wantAll)
		var refusal *wire.Error
		if s != nil || !errors.As(err, &refusal) || refusal.Code != -32603 || !strings.Contains(err.Error(), "scripted") {
			t.Errorf("openListen = %v, %v, want the server's refusal", s, err)
		}
	})
	t.Run("by status", func(t *testing.T) {
		p := newUpPeer(t) // 404 with -32601
		_, err := p.back(Options{}).openListen(t.Context(), listenProfile, wantAll)
		var refusal *wire.Error
		if !errors.As(err, &refusal) || refusal.Code != -32601 {
			t.Errorf("openListen = %v, want -32601", err)
		}
	})
	t.Run("after another revision was wanted", func(t *testing.T) {
		p := newUpPeer(t)
		p.on["subscriptions/listen"] = func(w http.ResponseWriter, r *http.Request, m wire.Message) {
			if len(p.requests("subscriptions/listen")) == 1 {
				upFail(w, 400, m.ID, -32022, `{"supported":["2026-07-28"]}`)
				return
			}
			upStream(w)(ackText, granted, m.ID)
			<-r.Context().Done()
		}
		s, err := p.back(Options{}).openListen(t.Context(), listenProfile, wantAll)
		if err != nil {
			t.Fatal(err)
		}
		s.Close()
		want := `{"notifications":{"toolsListChanged":true,"promptsListChanged":true,"resourceSubscriptions":["file:///a","file:///b"]},` +
			`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"roots":{}},"io.modelcontextprotocol/clientInfo":` + upInfo + `}}`
		if got := p.requests("subscriptions/listen")[1].params; got != want {
			t.Errorf("params %s, want %s", got, want)
		}
	})
}

func TestListenAwaitsItsAcknowledgment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, end := bubbleBack(t, Options{}, func(w http.ResponseWriter, r *http.Request, m wire.Message) {
			upStream(w)
			<-r.Context().Done()
		})
		defer end()
		start := time.Now()
		_, err := b.openListen(t.Context(), listenProfile, wantAll)
		if took := time.Since(start); took != 10*time.Second || !errors.Is(err, errNoAck) {
			t.Errorf("openListen = %v after %v, want errNoAck after 10s", err, took)
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		if _, err := b.openListen(ctx, listenProfile, wantAll); !errors.Is(err, context.Canceled) {
			t.Errorf("openListen = %v, want that its caller left", err)
		}
	})
	bridgetest.RunBubble(t, "connection", func(t *testing.T) {
		near, far := transport.NewPipe()
		b, err := New(Options{Options: upstream.Options{Name: "scripted", ClientInfo: json.RawMessage(upInfo)}, Dial: func(context.Context) (transport.Conn, error) { return near, nil }})
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		_, err = b.openListen(t.Context(), listenProfile, wantAll)
		if took := time.Since(start); took != 10*time.Second || !errors.Is(err, errNoAck) {
			t.Errorf("openListen = %v after %v, want errNoAck after 10s", err, took)
		}
		p := backtest.NewPeer(t, far)
		m := p.Want("subscriptions/listen")
		if c := p.Want("notifications/cancelled"); string(wire.Get(c.Params, "requestId")) != m.ID.String() {
			t.Errorf("cancelled %s, want %s", c.Params, m.ID)
		}
		b.Close(context.Background())
		far.Close()
	})
}

// TestListenClose proves that nothing of a stream is left upstream, and that its
// opening's context does not end it.
func TestListenClose(t *testing.T) {
	t.Run("http", func(t *testing.T) {
		p := newUpPeer(t)
		more, left := make(chan struct{}), make(chan struct{})
		p.on["subscriptions/listen"] = func(w http.ResponseWriter, r *http.Request, m wire.Message) {
			send := upStream(w)
			send(ackText, granted, m.ID)
			<-more
			send(listText, "tools", m.ID)
			<-r.Context().Done()
			close(left)
		}
		ctx, cancel := context.WithCancel(t.Context())
		s, err := p.back(Options{}).openListen(ctx, listenProfile, wantAll)
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		close(more)
		if _, err := s.Next(); err != nil {
			t.Fatalf("next() = %v, want the change: its opening is over, the stream is not", err)
		}
		ended := make(chan error, 1)
		go func() { // ends with close
			_, err := s.Next()
			ended <- err
		}()
		s.Close()
		s.Close()
		if err := <-ended; err != errClosed {
			t.Errorf("next() = %v, want errLeft", err)
		}
		<-left // the test's time-out tells if the response stays open
	})
	t.Run("connection", func(t *testing.T) {
		b, peers := upLines(t, Options{})
		opened := openingListen(t, b, listenProfile, wantAll)
		p := <-peers
		m := p.Want("subscriptions/listen")
		p.Write(ackText, granted, m.ID)
		s := <-opened
		s.Close()
		s.Close()
		if _, err := s.Next(); err != errClosed {
			t.Errorf("next() = %v, want errLeft", err)
		}
		if c := p.Want("notifications/cancelled"); string(wire.Get(c.Params, "requestId")) != m.ID.String() {
			t.Errorf("cancelled %s, want %s", c.Params, m.ID)
		}
		p.Write(endText, m.ID) // some servers answer still
		done := upServe(t.Context(), b, upRequest("tools/list", ""), &backtest.Caller{})
		p.Result(p.Want("tools/list").ID, `{"tools":[]}`)
		if out := <-done; out.err != nil {
			t.Errorf("a request after it: %v", out.err)
		}
	})
}

func TestM2L04ListenIdsOnASharedConnection(t *testing.T) {
	b, peers := upLines(t, Options{})
	var ids []string
	var streams []watch.Stream
	var p *backtest.Peer
	for range 2 {
		opened := openingListen(t, b, listenProfile, wantAll)
		if p == nil {
			p = <-peers
		}
		m := p.Want("subscriptions/listen")
		ids = append(ids, m.ID.String())
		p.Write(ackText, granted, m.ID)
		streams = append(streams, <-opened)
	}
	p.Write(listText, "tools", `"`+ids[0]+`"`)                               // a string: nobody's
	p.Write(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`) // of two, whose?
	p.Write(uriText, "file:///a", ids[1])
	p.Write(listText, "tools", ids[0])
	for i, want := range []fanout.Kind{fanout.ToolsListChanged, fanout.ResourceUpdated} {
		if ev, err := streams[i].Next(); err != nil || ev.Topic.Kind != want {
			t.Errorf("stream %d: %v, %v, want %v", i, ev, err, want)
		}
	}
	for _, s := range streams {
		s.Close()
	}
}

// TestListenIsBoundedOnAConnection proves that a stream nobody reads costs as much
// as its topics, and stops no request.
func TestListenIsBoundedOnAConnection(t *testing.T) {
	b, peers := upLines(t, Options{})
	opened := openingListen(t, b, listenProfile, wantAll)
	p := <-peers
	m := p.Want("subscriptions/listen")
	p.Write(ackText, granted, m.ID)
	s := <-opened
	defer s.Close()
	for range 1000 {
		p.Write(uriText, "file:///a", m.ID)
	}
	done := upServe(t.Context(), b, upRequest("tools/list", ""), &backtest.Caller{})
	p.Result(p.Want("tools/list").ID, `{"tools":[]}`)
	if out := <-done; out.err != nil {
		t.Fatal(out.err)
	}
	if n := s.(*evictingStream).Stream.(*connListen).mail.Len(); n != 1 {
		t.Errorf("%d changes wait, want 1", n)
	}
	if _, err := s.Next(); err != nil {
		t.Error(err)
	}
}

// TestListenUnanswered proves that only what a server said counts as its refusal.
func TestListenUnanswered(t *testing.T) {
	gone := newUpPeer(t)
	b := gone.back(Options{})
	gone.Close()
	cannot, err := New(Options{Options: upstream.Options{Name: "scripted", ClientInfo: json.RawMessage(upInfo)}, Dial: func(context.Context) (transport.Conn, error) {
		return nil, errors.New("no such program")
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer cannot.Close(context.Background())
	broken := newUpPeer(t)
	broken.on["subscriptions/listen"] = func(w http.ResponseWriter, _ *http.Request, _ wire.Message) {
		http.Error(w, "no", http.StatusServiceUnavailable)
	}
	for name, b := range map[string]*Back{"refused": b, "no such program": cannot, "503": broken.back(Options{})} {
		_, err := b.openListen(t.Context(), listenProfile, wantAll)
		var refusal *wire.Error
		if err == nil || errors.As(err, &refusal) || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "scripted") {
			t.Errorf("openListen = %v, want an error that names the server and %q, and is no refusal", err, name)
		}
	}
}

// published collects what a Back tells of changes.
type published struct {
	wanted map[fanout.Topic]*atomic.Bool // read-only
	events chan fanout.Event
}

func (p *published) Publish(ev fanout.Event)    { p.events <- ev }
func (p *published) End(fanout.Topic, error)    {}
func (p *published) Wanted(t fanout.Topic) bool { return p.wanted[t] != nil && p.wanted[t].Load() }

// TestBackWatches proves that topics are acknowledged, told of and given up over
// either transport.
func TestBackWatches(t *testing.T) {
	a := fanout.Topic{Scope: "scripted/1", Kind: fanout.ResourceUpdated, URI: "file:///a"}
	tools := fanout.Topic{Scope: "scripted/1", Kind: fanout.ToolsListChanged}
	b := fanout.Topic{Scope: "scripted/1", Kind: fanout.ResourceUpdated, URI: "file:///b"}
	watch := func(t *testing.T, opts Options, back func(Options) *Back, left <-chan struct{}) {
		changes := &published{wanted: map[fanout.Topic]*atomic.Bool{a: {}, b: {}, tools: {}}, events: make(chan fanout.Event, 16)}
		for _, w := range changes.wanted {
			w.Store(true)
		}
		opts.Changes, opts.Settings.Linger = changes, time.Millisecond
		honored, release, err := back(opts).Watch(t.Context(), listenProfile, []fanout.Topic{tools, a, b})
		if err != nil || !slices.Equal(honored, []fanout.Topic{tools, a}) {
			t.Fatalf("Watch = %v, %v, want what the server acknowledged", honored, err)
		}
		if ev := <-changes.events; ev.Topic != a || string(ev.Meta) != `{"v":1}` {
			t.Errorf("told of %+v, want %v", ev, a)
		}
		for _, w := range changes.wanted {
			w.Store(false)
		}
		release()
		<-left // the test's time-out tells if the stream stays open
	}
	t.Run("http", func(t *testing.T) {
		p := newUpPeer(t)
		left := make(chan struct{})
		p.on["subscriptions/listen"] = func(w http.ResponseWriter, r *http.Request, m wire.Message) {
			send := upStream(w)
			send(ackText, granted, m.ID)
			send(uriText, "file:///a", m.ID)
			<-r.Context().Done()
			close(left)
		}
		watch(t, Options{}, p.back, left)
	})
	t.Run("connection", func(t *testing.T) {
		left := make(chan struct{})
		watch(t, Options{}, func(opts Options) *Back {
			back, peers := upLines(t, opts)
			go func() { // ends with the stream
				p := <-peers
				m := p.Want("subscriptions/listen")
				p.Write(ackText, granted, m.ID)
				p.Write(uriText, "file:///a", m.ID)
				p.Want("notifications/cancelled")
				close(left)
			}()
			return back
		}, left)
	})
}

func TestBackCloseEndsListens(t *testing.T) {
	overBoth(t, func(id wire.ID, send func(string, ...any)) { send(ackText, granted, id) }, true, func(t *testing.T, b *Back) {
		s, err := b.openListen(t.Context(), listenProfile, wantAll)
		if err != nil {
			t.Fatal(err)
		}
		if err := b.Close(context.Background()); err != nil {
			t.Errorf("Close = %v", err)
		}
		if _, err := s.Next(); err == nil || !strings.Contains(fmt.Sprint(err), "shutting down") {
			t.Errorf("next() = %v, want that it is over", err)
		}
		s.Close()
	})
}

// openingListen opens a listen stream, which is there with the acknowledgment.
func openingListen(t *testing.T, b *Back, p mcp.Profile, want mcp.Filter) <-chan watch.Stream {
	t.Helper()
	opened := make(chan watch.Stream, 1)
	go func() { // ends with the acknowledgment
		s, err := b.openListen(t.Context(), p, want)
		if err != nil {
			t.Error(err)
		}
		opened <- s
	}()
	return opened
}
