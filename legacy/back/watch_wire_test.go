package back

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/backtest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/legacytest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/watchtest"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/settings"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

const testScope = "files/1"

func uriTopic(uri string) fanout.Topic { return watchtest.URITopics(testScope, uri)[0] }

func listTopic(k fanout.Kind) fanout.Topic { return fanout.Topic{Scope: testScope, Kind: k} }

// watchOn calls Watch of a Back as the gateway does, and returns what was
// honored.
func watchOn(t *testing.T, b *Back, aud *watchtest.Audience, want ...fanout.Topic) (string, func()) {
	t.Helper()
	aud.Want(1, want...)
	honored, release, err := b.Watch(t.Context(), mcp.Profile{Scope: testScope}, want)
	if err != nil {
		t.Errorf("Watch = %v, want no error", err)
		return "", func() {}
	}
	return watchtest.TopicNames(honored), func() {
		aud.Want(-1, want...)
		release()
	}
}

// wantURIs reads one request of method for each URI, in any order, and returns
// their ids.
func wantURIs(p *legacytest.ConnPeer, method string, uris ...string) map[string]wire.ID {
	p.T.Helper()
	got := make(map[string]wire.ID)
	for range uris {
		m := p.Want(method)
		uri, _ := wire.GetString(m.Params, "uri")
		got[uri] = m.ID
	}
	if keys := slices.Sorted(maps.Keys(got)); !slices.Equal(keys, uris) {
		p.T.Errorf("%s for %q, want %q", method, keys, uris)
	}
	return got
}

func sendUpdated(p *legacytest.ConnPeer, uri, meta string) {
	p.T.Helper()
	p.Write(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":%q%s}}`, uri, meta)
}

func TestM2L31WatchOverAPipe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		aud := watchtest.NewAudience(&watchtest.Journal{})
		b, peers := pipeBack(t, Options{Options: upstream.Options{Changes: aud}})
		type outcome struct {
			honored string
			release func()
		}
		acked := make(chan outcome, 1)
		go func() {
			honored, release := watchOn(t, b, aud, listTopic(fanout.ToolsListChanged),
				uriTopic("note://a"), uriTopic("note://b"), uriTopic("note://c"))
			acked <- outcome{honored, release}
		}()
		p := <-peers
		p.Handshake(legacytest.Everything)
		ids := wantURIs(p, "resources/subscribe", "note://a", "note://b", "note://c") // pipelined
		sendUpdated(p, "note://c", "")                                                // overtakes the answer
		p.Result(ids["note://c"], `{}`)
		p.Write(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32002,"message":"no b"}}`, ids["note://b"])
		p.Result(ids["note://a"], `{}`)
		got := <-acked
		if got.honored != "toolsListChanged note://a note://c" {
			t.Errorf("honored %q, want tools, a and c", got.honored)
		}
		p.Write(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
		sendUpdated(p, "note://a/1", `,"_meta":{"io.modelcontextprotocol/subscriptionId":1,"x":1}`)
		sendUpdated(p, "note://b", "")
		wantJournal(t, aud.Log, "event note://c", "event toolsListChanged", `event note://a{"x":1}`)

		// The server is gone; another comes up and knows nothing of subscriptions.
		_ = p.Conn.Close()
		p = <-peers
		p.Handshake(legacytest.Everything)
		ids = wantURIs(p, "resources/subscribe", "note://a", "note://c")
		synctest.Wait()
		wantJournal(t, aud.Log)
		p.Result(ids["note://a"], `{}`)
		p.Write(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32002,"message":"no c"}}`, ids["note://c"])
		synctest.Wait()
		wantJournal(t, aud.Log, "end note://c", "event toolsListChanged", "event note://a")

		got.release()
		time.Sleep(upstream.DefaultLinger)
		ids = wantURIs(p, "resources/unsubscribe", "note://a")
		p.Result(ids["note://a"], `{}`)
		synctest.Wait()
		if b.watches.Of(testScope) != nil {
			t.Error("the watch outlives what was wanted")
		}
	})
}

// A server is back with the call that reaches it: changes are subscribed to at once, not after
// the pause that has grown while it was away.
func TestM2L37TheSessionOfACallIsWatched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		aud := watchtest.NewAudience(&watchtest.Journal{})
		dial, peers := legacytest.Pipes(t)
		var away atomic.Bool
		b := newTestBack(t, Options{Options: upstream.Options{Changes: aud}, Dial: func(ctx context.Context) (transport.Conn, error) {
			if away.Load() {
				return nil, errors.New("away")
			}
			return dial(ctx)
		}})
		acked := make(chan struct{})
		go func() { watchOn(t, b, aud, uriTopic("note://a")); close(acked) }()
		p := <-peers
		p.Handshake(legacytest.Everything)
		p.Result(wantURIs(p, "resources/subscribe", "note://a")["note://a"], `{}`)
		<-acked
		away.Store(true)
		_ = p.Conn.Close()
		time.Sleep(time.Minute)
		away.Store(false)
		called := make(chan struct{})
		go func() {
			defer close(called)
			req := ask("tools/call", `{"name":"x"}`)
			req.Profile.Scope = testScope
			for err := errors.New("not yet"); err != nil; time.Sleep(100 * time.Millisecond) {
				_, err = body(b.Serve(t.Context(), req, &backtest.Caller{}))
			}
		}()
		p = <-peers
		p.Handshake(legacytest.Everything)
		began := time.Now()
		for range 2 {
			m := p.Read()
			if late := time.Since(began); m.Method == "resources/subscribe" && late > 0 {
				t.Errorf("subscribed %v after the session was open, want at once", late)
			}
			p.Result(m.ID, `{"content":[]}`)
		}
		wantJournal(t, aud.Log, "event note://a")
		<-called
	})
}

// wantJournal compares what happened, in any order within runs of one word.
func wantJournal(t *testing.T, log *watchtest.Journal, want ...string) {
	t.Helper()
	synctest.Wait()
	if got := log.Take(); !slices.Equal(watchtest.SortRuns(got), watchtest.SortRuns(want)) {
		t.Errorf("journal: %q, want %q", got, want)
	}
}

// A getScript serves the GET stream: each stream gets what its turn says, and is
// cut when that is said, the last one aside.
type getScript struct {
	turns []string
	cut   chan struct{} // ends the stream that is open
	n     atomic.Int32
}

func (g *getScript) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n := int(g.n.Add(1)) - 1 // before the client can know of the stream
	legacytest.StartSSE(w)
	if n < len(g.turns) {
		fmt.Fprint(w, g.turns[n])
		legacytest.Flush(w)
	}
	select {
	case <-r.Context().Done():
	case <-g.cut:
	}
}

const updateOfA = "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/resources/updated\",\"params\":{\"uri\":\"note://a\"}}\n\n"

func TestM2L37GapsOfTheStreamOverHTTP(t *testing.T) {
	for _, tt := range []struct {
		name  string
		turns []string
		want  []string // after the acknowledgment
	}{
		{
			"no ids: what came meanwhile is lost",
			[]string{"retry: 1\n\n", ""},
			[]string{"event note://a", "event toolsListChanged"},
		},
		{
			"ids and a retry: the server replays",
			[]string{"id: 7\nretry: 1\ndata: \n\n", "id: 8\n" + updateOfA},
			[]string{"event note://a"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			log := &watchtest.Journal{Told: make(chan string, 16)}
			aud := watchtest.NewAudience(log)
			p := legacytest.NewHTTPServer(t)
			get := &getScript{turns: tt.turns, cut: make(chan struct{})}
			p.Get = get.ServeHTTP
			p.On["resources/subscribe"] = func(w http.ResponseWriter, _ *http.Request, m wire.Message) {
				legacytest.AnswerJSON(w, m.ID, `{}`)
			}
			p.On["resources/unsubscribe"] = p.On["resources/subscribe"]
			b := newTestBack(t, Options{Options: upstream.Options{URL: p.URL, Changes: aud, Settings: settings.Server{Linger: time.Millisecond}}})
			honored, release := watchOn(t, b, aud, listTopic(fanout.ToolsListChanged), uriTopic("note://a"))
			if honored != "toolsListChanged note://a" {
				t.Fatalf("honored %q, want both", honored)
			}
			get.cut <- struct{}{}
			var got []string
			for range tt.want {
				got = append(got, <-log.Told)
			}
			if slices.Sort(got); !slices.Equal(got, tt.want) {
				t.Errorf("told %q, want %q", got, tt.want)
			}
			release()
			if n := get.n.Load(); n != 2 {
				t.Errorf("%d streams, want 2", n)
			}
			if n := len(p.Requests("resources/subscribe")); n != 1 {
				t.Errorf("%d subscribes, want 1: the session was not lost", n)
			}
			if rest := log.Take()[len(tt.want):]; len(rest) > 0 {
				t.Errorf("also told %q", rest)
			}
		})
	}
}

func TestM2L32NoStreamNoListsOverHTTP(t *testing.T) {
	aud := watchtest.NewAudience(&watchtest.Journal{})
	p := legacytest.NewHTTPServer(t) // answers GET with 405
	p.On["resources/subscribe"] = func(w http.ResponseWriter, _ *http.Request, m wire.Message) {
		legacytest.AnswerJSON(w, m.ID, `{}`)
	}
	b := newTestBack(t, Options{Options: upstream.Options{URL: p.URL, Changes: aud}})
	honored, release := watchOn(t, b, aud, listTopic(fanout.ToolsListChanged), uriTopic("note://a"))
	defer release()
	if honored != "note://a" {
		t.Errorf("honored %q, want the URI alone", honored)
	}
}

func TestM2L34WatchKeepsTheSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		aud := watchtest.NewAudience(&watchtest.Journal{})
		b, peers := pipeBack(t, Options{Options: upstream.Options{Changes: aud, Settings: settings.Server{Idle: time.Minute}}})
		acked := make(chan func(), 1)
		go func() {
			_, release := watchOn(t, b, aud, uriTopic("note://a"))
			acked <- release
		}()
		p := <-peers
		p.Handshake(legacytest.Everything)
		p.Result(wantURIs(p, "resources/subscribe", "note://a")["note://a"], `{}`)
		release := <-acked
		time.Sleep(time.Hour)
		sendUpdated(p, "note://a", "")
		wantJournal(t, aud.Log, "event note://a")
		release()
		time.Sleep(upstream.DefaultLinger)
		p.Result(wantURIs(p, "resources/unsubscribe", "note://a")["note://a"], `{}`)
		time.Sleep(2 * time.Minute)
		if _, err := p.Conn.Read(); err == nil {
			t.Error("the session outlives its idle time")
		}
	})
}
