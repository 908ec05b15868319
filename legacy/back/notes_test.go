package back

import (
	"context"
	"encoding/json"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/backtest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/legacytest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/watchtest"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/settings"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	"github.com/mcpbridge/mcpbridge/legacy/pool"
)

// callWith returns a tools/call that wants progress and messages.
func callWith(token, level string) *mcp.Request {
	r := ask("tools/call", `{"name":"x","_meta":{"progressToken":`+token+`}}`)
	r.ProgressToken = json.RawMessage(token)
	if token == "" {
		r.Params, r.ProgressToken = json.RawMessage(`{"name":"x"}`), nil
	}
	r.LogLevel = spec.LogLevel(level)
	return r
}

// serving is a Serve under way.
type serving struct {
	caller *backtest.Caller
	body   string
	err    error
	done   chan struct{}
}

func serve(ctx context.Context, b *Back, req *mcp.Request) *serving {
	s := &serving{caller: &backtest.Caller{}, done: make(chan struct{})}
	go func() {
		s.body, s.err = body(b.Serve(ctx, req, s.caller))
		close(s.done)
	}()
	return s
}

func TestM2L04IdsAndTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, peers := pipeBack(t, Options{})
		one := serve(t.Context(), b, callWith(`0`, ""))
		p := <-peers
		p.Handshake(legacytest.Everything)
		m1 := p.Want("tools/call")
		two := serve(t.Context(), b, callWith(`0`, "")) // another client, the same token
		m2 := p.Want("tools/call")
		three := serve(t.Context(), b, callWith(`"2"`, ""))
		m3 := p.Want("tools/call")
		for i, m := range []wire.Message{m1, m2, m3} {
			id, ok := m.ID.Int()
			if !ok || id != int64(i+2) { // initialize was 1
				t.Errorf("request %d has id %s, want %d", i, m.ID, i+2)
			}
			if token := string(wire.Get(wire.Get(m.Params, "_meta"), "progressToken")); token != m.ID.String() {
				t.Errorf("request %s has token %s, want its id", m.ID, token)
			}
		}
		p.Write(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":1}}`, m3.ID)
		p.Write(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":2}}`, m2.ID)
		p.Result(m2.ID, `{"n":2}`)
		p.Result(m3.ID, `{"n":3}`)
		p.Result(m1.ID, `{"n":1}`)
		for _, tt := range []struct {
			s     *serving
			body  string
			notes []string
		}{
			{one, `{"n":1}`, nil},
			{two, `{"n":2}`, []string{`notifications/progress {"progressToken":0,"progress":2}`}},
			{three, `{"n":3}`, []string{`notifications/progress {"progressToken":"2","progress":1}`}},
		} {
			<-tt.s.done
			if tt.s.err != nil || tt.s.body != tt.body {
				t.Errorf("Serve = %s, %v, want %s", tt.s.body, tt.s.err, tt.body)
			}
			if got := tt.s.caller.Heard(); !reflect.DeepEqual(got, tt.notes) {
				t.Errorf("the caller of %s heard %q, want %q", tt.body, got, tt.notes)
			}
		}
	})
}

func TestM2L11Progress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &backtest.Metrics{}
		b, peers := pipeBack(t, Options{Options: upstream.Options{Metrics: d}})
		s := serve(t.Context(), b, callWith(`"tok"`, ""))
		p := <-peers
		p.Handshake(legacytest.Everything)
		m := p.Want("tools/call")
		for _, value := range []string{`-5`, `0`, `0.0`, `-1`, `0.5`, `0.50`, `"9"`, `10`, `9.99`, `1e1`, `11`} {
			p.Write(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%s,"total":1.0}}`, m.ID, value)
		}
		p.Write(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":999,"progress":50}}`)
		p.Write(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"tok","progress":50}}`)
		p.Result(m.ID, `{}`)
		p.Write(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":98}}`, m.ID)
		<-s.done
		p.Write(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":99}}`, m.ID)
		synctest.Wait()
		var want []string
		for _, value := range []string{`-5`, `0`, `0.5`, `10`, `11`} {
			want = append(want, `notifications/progress {"progressToken":"tok","progress":`+value+`,"total":1.0}`)
		}
		if got := s.caller.Heard(); !reflect.DeepEqual(got, want) {
			t.Errorf("heard %q, want %q", got, want)
		}
		if n := d.Count("progress"); n < 3 || n > 4 {
			t.Errorf("%d counted as dropped, want two tokens of nobody, and what came late", n)
		}
	})
}

func TestM2L11NoTokenNoProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, peers := pipeBack(t, Options{})
		s := serve(t.Context(), b, callWith("", ""))
		p := <-peers
		p.Handshake(legacytest.Everything)
		m := p.Want("tools/call")
		if meta := wire.Get(m.Params, "_meta"); meta != nil {
			t.Errorf("_meta = %s, want none", meta)
		}
		p.Write(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":1}}`, m.ID)
		p.Result(m.ID, `{}`)
		<-s.done
		if got := s.caller.Heard(); got != nil {
			t.Errorf("heard %q, want nothing", got)
		}
	})
}

// On HTTP, progress counts on whatever stream it comes.
func TestM2L11ProgressOverHTTP(t *testing.T) {
	p := legacytest.NewHTTPServer(t)
	onGet := make(chan string)
	p.Get = func(w http.ResponseWriter, r *http.Request) {
		send := legacytest.StartSSE(w)
		for {
			select {
			case text := <-onGet:
				send("%s", text)
			case <-r.Context().Done():
				return
			}
		}
	}
	b := newTestBack(t, Options{Options: upstream.Options{URL: p.URL}})
	told := make(chan string)
	p.On["tools/call"] = func(w http.ResponseWriter, _ *http.Request, m wire.Message) {
		send := legacytest.StartSSE(w)
		send(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":1}}`, m.ID)
		<-told
		onGet <- `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":` + m.ID.String() + `,"progress":2}}`
		<-told
		send(`{"jsonrpc":"2.0","id":%s,"result":{}}`, m.ID)
	}
	c := &backtest.Caller{Told: told}
	if _, err := body(b.Serve(t.Context(), callWith(`7`, ""), c)); err != nil {
		t.Fatal(err)
	}
	want := []string{
		`notifications/progress {"progressToken":7,"progress":1}`,
		`notifications/progress {"progressToken":7,"progress":2}`,
	}
	if got := c.Heard(); !reflect.DeepEqual(got, want) {
		t.Errorf("heard %q, want %q", got, want)
	}
}

// A caller that takes nothing holds up neither the connection nor the others.
func TestM2L11SlowCallerHoldsUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &backtest.Metrics{}
		b, peers := pipeBack(t, Options{Options: upstream.Options{Metrics: d}})
		slow := &backtest.Caller{Hold: make(chan struct{})}
		done := make(chan error, 1)
		go func() {
			_, err := body(b.Serve(t.Context(), callWith(`1`, "debug"), slow))
			done <- err
		}()
		p := <-peers
		p.Handshake(`{"tools":{}}`)
		m := p.Want("tools/call")
		for i := range 3 * mcp.MaxBacklog {
			p.Write(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d}}`, m.ID, i)
		}
		p.Result(m.ID, `{}`)
		quick := serve(t.Context(), b, ask("tools/list", ""))
		p.Result(p.Want("tools/list").ID, `{"tools":[]}`)
		<-quick.done
		close(slow.Hold)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		got := slow.Heard()
		if last := got[len(got)-1]; !strings.HasSuffix(last, `"progress":767}`) {
			t.Errorf("the last the slow caller heard was %s, want the newest", last)
		}
		if len(got) > mcp.MaxBacklog+2 {
			t.Errorf("%d messages were kept for a slow caller, want at most %d", len(got), mcp.MaxBacklog+2)
		}
	})
}

func TestM2L12LevelIsTheMostVerboseInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, peers := pipeBack(t, Options{})
		setLevel := func(p *legacytest.ConnPeer, want string) {
			t.Helper()
			m := p.Want("logging/setLevel")
			if got := string(m.Params); got != `{"level":"`+want+`"}` {
				t.Errorf("setLevel %s, want %s", got, want)
			}
			p.Result(m.ID, `{}`)
		}
		one := serve(t.Context(), b, callWith("", "warning"))
		p := <-peers
		p.Handshake(legacytest.Everything)
		setLevel(p, "warning") // before the call
		m1 := p.Want("tools/call")

		two := serve(t.Context(), b, callWith("", "error")) // less: covered
		m2 := p.Want("tools/call")
		three := serve(t.Context(), b, callWith("", "debug"))
		setLevel(p, "debug")
		m3 := p.Want("tools/call")
		four := serve(t.Context(), b, callWith("", "")) // wants none
		m4 := p.Want("tools/call")

		p.Result(m3.ID, `{}`)
		<-three.done
		five := serve(t.Context(), b, callWith("", "error")) // warning is the most now
		setLevel(p, "warning")
		m5 := p.Want("tools/call")
		for _, m := range []wire.Message{m1, m2, m4, m5} {
			p.Result(m.ID, `{}`)
		}
		for _, s := range []*serving{one, two, four, five} {
			if <-s.done; s.err != nil {
				t.Error(s.err)
			}
		}
	})
}

// A session that takes the place of a lost one gets its client's level before the next call.
func TestG14RebuiltSessionGetsTheLevel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, peers := pipeBack(t, Options{})
		for range 3 {
			call := serve(t.Context(), b, callWith("", "warning"))
			p := <-peers
			p.Handshake(legacytest.Everything)
			m := p.Want("logging/setLevel")
			if got := string(m.Params); got != `{"level":"warning"}` {
				t.Errorf("setLevel %s, want warning", got)
			}
			p.Result(m.ID, `{}`)
			p.Result(p.Want("tools/call").ID, `{}`)
			if <-call.done; call.err != nil {
				t.Error(call.err)
			}
			_ = p.Conn.Close()
			synctest.Wait()
		}
	})
}

// owned returns a call of a legacy client that has the session for itself.
func owned(level string) *mcp.Request {
	r := callWith("", level)
	r.Profile.Revision = "2025-11-25"
	return r
}

// A client that has the session for itself sets its level at once, and a session that takes the
// place of a lost one has it before anything else is asked.
func TestG15LevelIsSetOutsideOfCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, peers := pipeBack(t, Options{})
		want := func(p *legacytest.ConnPeer, level string) {
			t.Helper()
			m := p.Want("logging/setLevel")
			if got := string(m.Params); got != `{"level":"`+level+`"}` {
				t.Errorf("setLevel %s, want %s", got, level)
			}
			p.Result(m.ID, `{}`)
		}
		b.LevelChanged(owned("info")) // there is no session yet
		for _, level := range []string{"info", "error"} {
			call := serve(t.Context(), b, owned(level))
			p := <-peers
			p.Handshake(legacytest.Everything)
			want(p, level)
			p.Result(p.Want("tools/call").ID, `{}`)
			if <-call.done; call.err != nil {
				t.Error(call.err)
			}
			b.LevelChanged(owned(level)) // which it has
			b.LevelChanged(owned("error"))
			if level != "error" {
				want(p, "error")
			}
			other := owned("debug")
			other.Profile.Revision = "" // of many clients
			b.LevelChanged(other)
			again := serve(t.Context(), b, owned("error"))
			p.Result(p.Want("tools/call").ID, `{}`) // and nothing before
			<-again.done
			_ = p.Conn.Close()
			synctest.Wait()
		}
	})
}

// What a call has set is a client's level, too, if it has set none itself.
func TestG15LevelOfCallsOutlivesASession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, peers := pipeBack(t, Options{})
		for _, level := range []string{"debug", ""} { // the latter is the gateway's own, of no level
			call := serve(t.Context(), b, owned(level))
			p := <-peers
			p.Handshake(legacytest.Everything)
			m := p.Want("logging/setLevel")
			if got := string(m.Params); got != `{"level":"debug"}` {
				t.Errorf("setLevel %s, want debug", got)
			}
			p.Result(m.ID, `{}`)
			p.Result(p.Want("tools/call").ID, `{}`)
			<-call.done
			_ = p.Conn.Close()
			synctest.Wait()
		}
	})
}

// What a server logs outside of calls is told to a client that has the session for itself, and
// follows it.
func TestG15MessagesOutsideOfCalls(t *testing.T) {
	for _, tt := range []struct {
		name     string
		revision spec.Revision
		follows  bool
		want     string
	}{
		{"of one client", "2025-11-25", true, `{"level":"info","logger":"l","data":"alone"}`},
		{"of many", "", true, ""},
		{"not followed", "2025-11-25", false, ""},
	} {
		bridgetest.RunBubble(t, tt.name, func(t *testing.T) {
			aud, d := watchtest.NewAudience(&watchtest.Journal{}), &backtest.Metrics{}
			b, peers := pipeBack(t, Options{Options: upstream.Options{Changes: aud, Metrics: d}})
			p := mcp.Profile{Scope: testScope, Capabilities: json.RawMessage(`{}`), Revision: tt.revision}
			topic := listTopic(fanout.StateLost)
			if !tt.follows {
				topic = listTopic(fanout.ToolsListChanged)
			}
			aud.Want(1, topic)
			watching := make(chan func())
			go func() {
				_, release, err := b.Watch(t.Context(), p, []fanout.Topic{topic})
				if err != nil {
					t.Error(err)
				}
				watching <- release
			}()
			peer := <-peers
			peer.Handshake(legacytest.Everything)
			release := <-watching
			for range 2 {
				peer.Write(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","logger":"l","data":"alone"}}`)
			}
			synctest.Wait()
			var got []string
			for _, ev := range aud.Events() {
				got = append(got, string(ev.Meta))
			}
			want, dropped := []string{tt.want, tt.want}, 0
			if tt.want == "" {
				want, dropped = nil, 2
			}
			if !slices.Equal(got, want) || d.Count("log message") != dropped {
				t.Errorf("told %q and dropped %d, want %q and %d", got, d.Count("log message"), want, dropped)
			}
			aud.Want(-1, topic)
			release()
		})
	}
}

// A message that is no call's for certain goes to the only one in flight, if that wants it, and
// else is told outside of calls: the gateway has requests of its own, which want none.
func TestG15MessagesBesideCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		aud := watchtest.NewAudience(&watchtest.Journal{})
		b, peers := pipeBack(t, Options{Options: upstream.Options{Changes: aud}})
		aud.Want(1, listTopic(fanout.StateLost))
		var peer *legacytest.ConnPeer
		for _, level := range []string{"", "info"} {
			req := owned(level)
			req.Profile.Scope = testScope
			call := serve(t.Context(), b, req)
			if peer == nil {
				peer = <-peers
				peer.Handshake(legacytest.Everything)
			}
			if level != "" {
				peer.Result(peer.Want("logging/setLevel").ID, `{}`)
			}
			id := peer.Want("tools/call").ID
			peer.Write(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"beside"}}`)
			synctest.Wait()
			peer.Result(id, `{}`)
			<-call.done
			heard := 0
			if level != "" {
				heard = 1
			}
			if n := len(call.caller.Heard()); n != heard || len(aud.Events()) != 1 {
				t.Errorf("a call of level %q heard %d messages, and %d were told beside it so far; want %d and 1", level, n, len(aud.Events()), heard)
			}
		}
		aud.Want(-1, listTopic(fanout.StateLost))
	})
}

// A call that has its response, which its client does not read yet, takes no more messages; nor does
// a session beside the first one tell them, which would tell them twice.
func TestG15MessagesAfterTheResponse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		aud, d := watchtest.NewAudience(&watchtest.Journal{}), &backtest.Metrics{}
		b, peers := pipeBack(t, Options{Options: upstream.Options{Changes: aud, Metrics: d}})
		aud.Want(1, listTopic(fanout.StateLost))
		req := owned("info")
		req.Profile.Scope = testScope
		caller, done := &backtest.Caller{Hold: make(chan struct{})}, make(chan struct{})
		go func() {
			defer close(done)
			if _, err := b.Serve(t.Context(), req, caller); err != nil {
				t.Error(err)
			}
		}()
		first := <-peers
		first.Handshake(legacytest.Everything)
		first.Result(first.Want("logging/setLevel").ID, `{}`)
		id := first.Want("tools/call").ID
		say := func(p *legacytest.ConnPeer, level, text string) {
			p.Write(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":%q,"data":%q}}`, level, text)
			synctest.Wait()
		}
		say(first, "info", "of the call")
		first.Result(id, `{}`)
		synctest.Wait()
		say(first, "info", "after it")
		say(first, "debug", "unwanted")
		close(caller.Hold)
		<-done
		opened := make(chan func())
		go func() {
			_, release, err := b.session(t.Context(), pool.OnLane(req.Profile, 1), false)
			if err != nil {
				t.Error(err)
			}
			opened <- release
		}()
		second := <-peers
		second.Handshake(legacytest.Everything)
		second.Result(second.Want("logging/setLevel").ID, `{}`)
		release := <-opened
		say(second, "info", "again")
		release()
		if got := aud.Events(); len(got) != 1 || !strings.Contains(string(got[0].Meta), "after it") || len(caller.Heard()) != 1 || d.Count("log message") != 2 {
			t.Errorf("told %v beside %q, and %d dropped; want what came after the response alone", got, caller.Heard(), d.Count("log message"))
		}
		aud.Want(-1, listTopic(fanout.StateLost))
	})
}

// A server without logging is never asked for a level; one that refuses it still
// gets the call, and so does one that does not answer, after a while.
func TestM2L12LevelDoesNotStopTheCall(t *testing.T) {
	for _, tt := range []struct {
		name, capabilities string
		answer             func(p *legacytest.ConnPeer)
	}{
		{"no logging", `{"tools":{}}`, func(*legacytest.ConnPeer) {}},
		{"refused", legacytest.Everything, func(p *legacytest.ConnPeer) {
			p.Write(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}`, p.Want("logging/setLevel").ID)
		}},
		{"silent", legacytest.Everything, func(p *legacytest.ConnPeer) { p.Want("logging/setLevel") }},
	} {
		bridgetest.RunBubble(t, tt.name, func(t *testing.T) {
			b, peers := pipeBack(t, Options{})
			s := serve(t.Context(), b, callWith("", "info"))
			p := <-peers
			p.Handshake(tt.capabilities)
			tt.answer(p)
			m := p.Read()
			if m.Method == "notifications/cancelled" { // of setLevel; nobody waits for it
				m = p.Read()
			}
			if m.Method != "tools/call" {
				t.Errorf("the back sent %s, want tools/call", m.Method)
			}
			p.Result(m.ID, `{}`)
			if <-s.done; s.err != nil {
				t.Error(s.err)
			}
		})
	}
}

func TestM2L12MessagesReachWhoAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &backtest.Metrics{}
		b, peers := pipeBack(t, Options{Options: upstream.Options{Metrics: d}})
		one := serve(t.Context(), b, callWith("", "warning"))
		p := <-peers
		p.Handshake(`{"tools":{}}`)
		m1 := p.Want("tools/call")
		p.Write("%s", legacytest.LogText("info", "too low"))
		p.Write("%s", legacytest.LogText("warning", "one"))
		p.Write("%s", legacytest.LogText("alert", "two"))
		synctest.Wait()
		two := serve(t.Context(), b, callWith("", "debug"))
		m2 := p.Want("tools/call")
		p.Write("%s", legacytest.LogText("alert", "whose?"))
		synctest.Wait()
		p.Result(m1.ID, `{}`)
		<-one.done
		p.Write("%s", legacytest.LogText("debug", "three"))
		p.Result(m2.ID, `{}`)
		<-two.done
		p.Write("%s", legacytest.LogText("alert", "nobody's"))
		none := serve(t.Context(), b, callWith("", ""))
		m3 := p.Want("tools/call")
		p.Write("%s", legacytest.LogText("alert", "unasked"))
		p.Result(m3.ID, `{}`)
		<-none.done
		for _, tt := range []struct {
			s    *serving
			want []string
		}{
			{one, []string{`notifications/message {"level":"warning","data":"one"}`, `notifications/message {"level":"alert","data":"two"}`}},
			{two, []string{`notifications/message {"level":"debug","data":"three"}`}},
			{none, nil},
		} {
			if got := tt.s.caller.Heard(); !reflect.DeepEqual(got, tt.want) {
				t.Errorf("heard %q, want %q", got, tt.want)
			}
		}
		if n := d.Count("log message"); n != 4 {
			t.Errorf("%d dropped and counted, want 4", n)
		}
	})
}

// Over HTTP the stream tells whose a message is, however many are in flight.
func TestM2L12MessagesByStream(t *testing.T) {
	p := legacytest.NewHTTPServer(t)
	var both sync.WaitGroup
	both.Add(2)
	p.Capabilities = `{"tools":{}}` // TypeScript 1.x sends messages without setLevel
	p.On["tools/call"] = func(w http.ResponseWriter, _ *http.Request, m wire.Message) {
		send := legacytest.StartSSE(w)
		both.Done()
		both.Wait()
		name, _ := wire.GetString(m.Params, "name")
		send("%s", legacytest.LogText("info", name))
		send(`{"jsonrpc":"2.0","id":%s,"result":{}}`, m.ID)
	}
	b := newTestBack(t, Options{Options: upstream.Options{URL: p.URL}})
	calls := make(map[string]*serving)
	for _, name := range []string{"one", "two"} {
		req := ask("tools/call", `{"name":"`+name+`"}`)
		req.LogLevel = "debug"
		calls[name] = serve(t.Context(), b, req)
	}
	for name, s := range calls {
		<-s.done
		want := []string{`notifications/message {"level":"info","data":"` + name + `"}`}
		if got := s.caller.Heard(); s.err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("call %s heard %q (%v), want %q", name, got, s.err, want)
		}
	}
}

func TestM2L13Cancellation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &backtest.Metrics{}
		b, peers := pipeBack(t, Options{Options: upstream.Options{Metrics: d}})
		ctx, cancel := context.WithCancel(t.Context())
		s := serve(ctx, b, callWith(`1`, ""))
		p := <-peers
		p.Handshake(legacytest.Everything)
		m := p.Want("tools/call")
		cancel()
		c := p.Want("notifications/cancelled")
		if got := string(wire.Get(c.Params, "requestId")); got != m.ID.String() {
			t.Errorf("cancelled request %s, want %s", got, m.ID)
		}
		<-s.done
		if s.err != context.Canceled {
			t.Errorf("Serve = %v, want %v", s.err, context.Canceled)
		}
		p.Result(m.ID, `{}`) // late
		next := serve(t.Context(), b, ask("tools/list", ""))
		p.Result(p.Want("tools/list").ID, `{"tools":[]}`)
		if <-next.done; next.err != nil || next.body != `{"tools":[]}` {
			t.Errorf("Serve after a late answer = %s, %v", next.body, next.err)
		}
		if n := d.Count("late answer"); n != 1 {
			t.Errorf("%d late answers counted, want 1", n)
		}
	})
}

func TestM2L13CancellationOverHTTP(t *testing.T) {
	p := legacytest.NewHTTPServer(t)
	started, cancelled := make(chan wire.ID, 1), make(chan string, 1)
	p.On["tools/call"] = func(w http.ResponseWriter, r *http.Request, m wire.Message) {
		legacytest.StartSSE(w)
		started <- m.ID
		<-r.Context().Done()
	}
	p.On["notifications/cancelled"] = func(w http.ResponseWriter, r *http.Request, m wire.Message) {
		w.WriteHeader(http.StatusAccepted)
		cancelled <- string(wire.Get(m.Params, "requestId")) + " " + r.Header.Get("Mcp-Session-Id")
	}
	b := newTestBack(t, Options{Options: upstream.Options{URL: p.URL}})
	ctx, cancel := context.WithCancel(t.Context())
	s := serve(ctx, b, callWith(`1`, ""))
	id := <-started
	cancel()
	<-s.done
	if s.err != context.Canceled {
		t.Errorf("Serve = %v, want %v", s.err, context.Canceled)
	}
	if got, want := <-cancelled, id.String()+" sess-1"; got != want {
		t.Errorf("cancelled %s, want %s", got, want)
	}
}

// A request that was never sent is not cancelled, and initialize never is.
func TestM2L13NothingToCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, peers := pipeBack(t, Options{})
		ctx, cancel := context.WithCancel(t.Context())
		s := serve(ctx, b, callWith(`1`, ""))
		p := <-peers
		init := p.Want("initialize")
		cancel()
		<-s.done
		p.Result(init.ID, legacytest.InitializeResult("2025-11-25", legacytest.Everything))
		p.Want("notifications/initialized")
		next := serve(t.Context(), b, ask("tools/list", ""))
		p.Result(p.Want("tools/list").ID, `{}`) // and nothing before it
		<-next.done
	})
}

func TestM2L14Timeouts(t *testing.T) {
	timeouts := settings.Timeouts{Request: time.Minute, Max: 5 * time.Minute}
	for _, tt := range []struct {
		name     string
		progress time.Duration // between values; 0: none
		want     time.Duration
	}{
		{"no progress", 0, time.Minute},
		{"progress starts it anew", 50 * time.Second, 5 * time.Minute},
		{"progress too rare", 70 * time.Second, time.Minute},
	} {
		bridgetest.RunBubble(t, tt.name, func(t *testing.T) {
			b, peers := pipeBack(t, Options{Options: upstream.Options{Settings: settings.Server{Timeouts: timeouts}}})
			s := serve(t.Context(), b, callWith(`1`, ""))
			p := <-peers
			p.Handshake(legacytest.Everything)
			m := p.Want("tools/call")
			start := time.Now()
			if tt.progress > 0 {
				go func() {
					for i := 0; ; i++ {
						select {
						case <-time.After(tt.progress):
						case <-s.done:
							return
						}
						_ = p.Conn.Write([]byte(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":` + m.ID.String() + `,"progress":` + wire.NumberID(int64(i)).String() + `}}`))
					}
				}()
			}
			<-s.done
			if took := time.Since(start); took != tt.want {
				t.Errorf("Serve returned after %v, want %v", took, tt.want)
			}
			we := mcp.WireError(s.err)
			for _, part := range []string{`server "scripted"`, "tools/call", "1m0s", "timeouts.request"} {
				if s.err == nil || we.Code != -32603 || !strings.Contains(we.Message, part) {
					t.Errorf("Serve = %v, want -32603 that says %q", s.err, part)
				}
			}
			c := p.Want("notifications/cancelled")
			if got := string(wire.Get(c.Params, "requestId")); got != m.ID.String() {
				t.Errorf("cancelled request %s, want %s", got, m.ID)
			}
		})
	}
}

// A silent server has as long as the client waits, but for a list.
func TestM2L14Patience(t *testing.T) {
	for _, tt := range []struct {
		method string
		want   time.Duration
	}{{"tools/call", upstream.DefaultMaxTimeout}, {"resources/read", upstream.DefaultMaxTimeout}, {"tools/list", settings.ListTimeout}} {
		bridgetest.RunBubble(t, tt.method, func(t *testing.T) {
			b, peers := pipeBack(t, Options{})
			s := serve(t.Context(), b, ask(tt.method, `{"name":"x","uri":"x:/"}`))
			p := <-peers
			p.Handshake(legacytest.Everything)
			p.Want(tt.method)
			start := time.Now()
			<-s.done
			if took := time.Since(start); took != tt.want || s.err == nil {
				t.Errorf("Serve = %v after %v, want an error after %v", s.err, took, tt.want)
			}
			p.Want("notifications/cancelled")
		})
	}
}

// A slow caller gets all its notes before the response, also those that another
// goroutine is giving to it when the response comes.
func TestM2L11NotesComeBeforeTheResponse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := &backtest.Caller{Hold: make(chan struct{})}
		c := newCall(ask(spec.MethodToolsCall, ""), slow, nil)
		c.ctx = t.Context()
		c.clock.Start(time.Minute, time.Minute, func() {})
		for _, value := range []string{"1", "2", "3"} {
			if !c.enqueue(spec.NotifyProgress, []byte(value)) {
				t.Fatal("there was no room")
			}
			c.drainSoon()
		}
		synctest.Wait() // the first is being given
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			c.end()
		}()
		synctest.Wait()
		close(slow.Hold)
		<-ended
		if got, want := slow.Heard(), []string{"notifications/progress 1", "notifications/progress 2", "notifications/progress 3"}; !reflect.DeepEqual(got, want) {
			t.Errorf("heard %q before the end, want %q", got, want)
		}
	})
}
