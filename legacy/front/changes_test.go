package front

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/legacytest"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/limits"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// subscription returns the subscription of the only session that has one.
func (st *rig) subscription(t testing.TB) *subscription {
	t.Helper()
	bridgetest.Eventually(t, "joined", func() bool { st.mu.Lock(); defer st.mu.Unlock(); return len(st.subs) > 0 })
	return st.subs[0]
}

func (p *subscription) change(uri string) {
	p.mail.Put(fanout.Event{Topic: fanout.Topic{Scope: "s", Kind: fanout.ResourceUpdated, URI: uri}})
}

func changed(uri string) string {
	return `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"` + uri + `"}}`
}

func TestL2M20SubscribeWaitsForTheUpstream(t *testing.T) {
	st := newRig(t, nil)
	st.refused["note://no"] = true
	g := st.Enter(t, "2025-11-25")
	if r := g.Call(t, "resources/subscribe", `{"uri":"note://a"}`); r.Body != `{"jsonrpc":"2.0","id":1,"result":{}}` {
		t.Errorf("subscribe = %s", r.Body)
	}
	if p := st.subscription(t); !p.held["note://a"] {
		t.Error("answered before the upstream held it")
	}
	r := g.Call(t, "resources/subscribe", `{"uri":"note://no"}`)
	if r.Code() == 0 || !strings.Contains(r.Body, "note://no") {
		t.Errorf("subscribe to what is refused = %s, want an error that names it", r.Body)
	}
	for range 2 {
		if r := g.Call(t, "resources/unsubscribe", `{"uri":"note://a"}`); r.Code() != 0 {
			t.Errorf("unsubscribe = %s, want it idempotent", r.Body)
		}
	}
	if p := st.subscription(t); len(p.held) != 0 {
		t.Errorf("held %v after unsubscribing, want nothing", p.held)
	}
}

func TestL2M24ListKindsFromTheStart(t *testing.T) {
	st := newRig(t, nil)
	st.Enter(t, "2025-11-25")
	p := st.subscription(t)
	bridgetest.Eventually(t, "list kinds asked for", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return fmt.Sprint(p.lists) == fmt.Sprint(mcp.Filter{Tools: true, Resources: true})
	})
}

func TestL2M24AsksAgain(t *testing.T) {
	t.Parallel()
	st := newRig(t, nil)
	st.away = 1
	g := st.Enter(t, "2025-11-25")
	p := st.subscription(t)
	bridgetest.Eventually(t, "list kinds held after the server came back", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.lists.Tools
	})
	// What changed before is not known.
	f := g.Listen(t)
	f.Want(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
	f.Want(`{"jsonrpc":"2.0","method":"notifications/resources/list_changed"}`)
	f.Response.Body.Close()
}

// What a session has followed elsewhere is followed still, and cued, also if its server is away at first.
func TestL2M24TakesOver(t *testing.T) {
	for name, away := range map[string]int{"at once": 0, "later": 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			st := newRig(t, nil)
			g := st.Enter(t, "2025-11-25")
			p := st.subscription(t)
			s := &st.only(t).subscriptions
			bridgetest.Eventually(t, "lists held", func() bool { return s.filter().Tools })
			if err := s.takeOver([]string{"note://a"}); err != nil {
				t.Fatal(err)
			}
			st.mu.Lock()
			st.away = away
			st.mu.Unlock()
			s.resume(true)
			f := g.Listen(t)
			f.Want(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
			f.Want(`{"jsonrpc":"2.0","method":"notifications/resources/list_changed"}`)
			f.Want(changed("note://a"))
			f.Response.Body.Close()
			if got := s.filter().URIs; !slices.Equal(got, []string{"note://a"}) || !p.holds("note://a") {
				t.Errorf("it follows %q, and the server knows of it: %v", got, p.holds("note://a"))
			}
		})
	}
}

// What the client unsubscribes from before the server is back is not asked for again.
func TestL2M24TakesOverWhatIsStillWanted(t *testing.T) {
	bridgetest.RunBubble(t, "away", func(t *testing.T) {
		st := newScripted()
		f := st.open(t, nil)
		defer func() { _ = f.Close(context.Background()) }()
		c := newAbsentClient(t, f, "2025-11-25")
		c.post(t.Context(), `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		synctest.Wait()
		p, s := st.subs[0], &st.only(t).subscriptions
		if err := s.takeOver([]string{"note://a", "note://b"}); err != nil {
			t.Fatal(err)
		}
		st.away = 1
		s.resume(true)
		synctest.Wait()
		c.post(t.Context(), `{"jsonrpc":"2.0","id":1,"method":"resources/unsubscribe","params":{"uri":"note://a"}}`)
		time.Sleep(listRetries.Min * 2)
		synctest.Wait()
		if got := s.filter(); !got.Tools || !slices.Equal(got.URIs, []string{"note://b"}) || p.holds("note://a") || !p.holds("note://b") {
			t.Errorf("it follows %+v; the server reports a: %v, b: %v, want b alone", got, p.holds("note://a"), p.holds("note://b"))
		}
	})
}

// A list that can't be reported at the moment is asked for again, and what else a session has followed
// elsewhere is cued at once.
func TestL2M24TakesOverWhatIsPutOff(t *testing.T) {
	t.Parallel()
	st := newRig(t, nil)
	g := st.Enter(t, "2025-11-25")
	st.subscription(t)
	s := &st.only(t).subscriptions
	bridgetest.Eventually(t, "lists held", func() bool { return s.filter().Tools })
	if err := s.takeOver([]string{"note://a"}); err != nil {
		t.Fatal(err)
	}
	putOff := func(later bool) {
		st.mu.Lock()
		defer st.mu.Unlock()
		st.later = later
	}
	putOff(true)
	s.resume(true)
	f := g.Listen(t)
	f.Want(changed("note://a"))
	putOff(false)
	f.Want(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
	f.Want(`{"jsonrpc":"2.0","method":"notifications/resources/list_changed"}`)
	f.Want(changed("note://a"))
	f.Response.Body.Close()
}

// A client that resumes a stream of which later events were evicted is cued as one with an unknown id.
func TestL2M26EvictedChangesAreCued(t *testing.T) {
	st := newRig(t, func(o *Options) { o.Limits = limits.Set{"client_events": 1 << 10} })
	g := st.Enter(t, "2025-11-25")
	p := st.subscription(t)
	s := st.only(t)
	bridgetest.Eventually(t, "lists held", func() bool { return s.subscriptions.filter().Tools })
	g.Call(t, "resources/subscribe", `{"uri":"note://a"}`)
	f := g.Listen(t)
	p.change("note://a")
	f.Want(changed("note://a"))
	seen := f.Last
	p.change("note://b")
	f.Want(changed("note://b")) // which the client loses
	lost, last := s.streams.Find(f.Last)
	bridgetest.Eventually(t, "known to be written", func() bool { return lost.Position() == last })
	f.Response.Body.Close()
	if err := s.streams.Add(wire.NumberID(1)).Put(t.Context(), make([]byte, 2<<10), true); err != nil {
		t.Fatal(err)
	}
	again := g.Listen(t, "Last-Event-ID", seen)
	again.Want(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
	again.Want(`{"jsonrpc":"2.0","method":"notifications/resources/list_changed"}`)
	again.Want(changed("note://a"))
	again.Response.Body.Close()
}

func TestL2M25OneStreamCarriesAChange(t *testing.T) {
	st := newRig(t, nil)
	g := st.Enter(t, "2025-11-25")
	p := st.subscription(t)
	// Without a stream, topics wait, each once.
	for range 3 {
		p.change("note://a")
	}
	p.mail.Put(fanout.Event{Topic: fanout.Topic{Scope: "s", Kind: fanout.ToolsListChanged}})
	first := g.Listen(t)
	first.Want(changed("note://a"))
	first.Want(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
	// A new stream replaces the older.
	second := g.Listen(t)
	first.Ends()
	p.change("note://b")
	second.Want(changed("note://b"))
	second.Response.Body.Close()
}

func TestL2M25ForeignMetaTravels(t *testing.T) {
	st := newRig(t, nil)
	g := st.Enter(t, "2025-11-25")
	f := g.Listen(t)
	st.subscription(t).mail.Put(fanout.Event{Topic: fanout.Topic{Scope: "s", Kind: fanout.ResourceUpdated, URI: "a:1"}, URI: "a:1/x", Meta: []byte(`{"who":"ada"}`)})
	f.Want(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"a:1/x","_meta":{"who":"ada"}}}`)
	f.Response.Body.Close()
}

const lostOfFiles = `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"warning","logger":"files","data":` +
	`"server \"files\" has another session with this client than before: what the former one knew may be lost; subscriptions were made again, and what may have changed was told"}}`

// lose tells of the loss of sessions with servers.
func (p *subscription) lose(servers ...string) {
	for _, server := range servers {
		p.mail.Put(fanout.Event{Topic: fanout.Topic{Scope: "s", Kind: fanout.StateLost}, URI: server})
	}
}

// A session of a group is told which member lost its session, once each, after what it changed,
// if its client wants warnings.
func TestG14LostSessionsAreLogged(t *testing.T) {
	st := newRig(t, func(o *Options) { o.TellLosses = true })
	g := st.Enter(t, "2025-11-25")
	p := st.subscription(t)
	bridgetest.Eventually(t, "losses asked for", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.lists.Tools && p.lists.Resources && p.lists.Losses
	})
	p.change("note://a")
	p.lose("files", "files")
	f := g.Listen(t)
	f.Want(changed("note://a"))
	f.Want(lostOfFiles)
	g.Call(t, "logging/setLevel", `{"level":"error"}`)
	p.lose("files", "")
	p.change("note://b")
	f.Want(changed("note://b"))
	g.Call(t, "logging/setLevel", `{"level":"info"}`)
	p.lose("files")
	f.Want(lostOfFiles)
	f.Response.Body.Close()
	again := g.Listen(t, "Last-Event-ID", "nonsense") // what may have been missed is no loss
	again.Want(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
	again.Want(`{"jsonrpc":"2.0","method":"notifications/resources/list_changed"}`)
	p.change("note://c")
	again.Want(changed("note://c"))
	again.Response.Body.Close()
}

// log tells of a log message of a member.
func (p *subscription) log(params string) {
	p.mail.Put(fanout.Event{Topic: fanout.Topic{Scope: "s", Kind: fanout.StateLost}, Meta: []byte(params)})
}

// A session of a group gets what members log outside of calls, one by one, of the levels that its
// client wants, and is told if some are left out. Members are told of the level.
func TestG15MessagesOutsideOfCalls(t *testing.T) {
	notes := new(clientNotes)
	st := newRig(t, func(o *Options) { o.TellLosses, o.Clients = true, notes })
	g := st.Enter(t, "2025-11-25")
	p := st.subscription(t)
	const message = `{"level":"info","logger":"files/l","data":{"n":1.0}}`
	notification := func(params string) string {
		return `{"jsonrpc":"2.0","method":"notifications/message","params":` + params + `}`
	}
	for range fanout.MaxMessages + 2 {
		p.log(message)
	}
	f := g.Listen(t)
	for range fanout.MaxMessages {
		f.Want(notification(message))
	}
	f.Want(notification(`{"level":"warning","logger":"docs","data":"log messages are left out here: they came faster than they were read"}`))
	g.Call(t, "logging/setLevel", `{"level":"warning"}`)
	g.Call(t, "logging/setLevel", `{"level":"nonsense"}`)
	p.log(message)
	p.log(`{"level":"error","logger":null,"data":"bad"}`)
	f.Want(notification(`{"level":"error","data":"bad"}`))
	f.Response.Body.Close()
	notes.mu.Lock()
	defer notes.mu.Unlock()
	if len(notes.levels) != 1 || notes.levels[0].LogLevel != "warning" || notes.levels[0].Profile.Scope == "" {
		t.Errorf("members are told of levels %v, want the one that was set", notes.levels)
	}
}

// On a connection as well.
func TestG14LostSessionsAreLoggedOnConnections(t *testing.T) {
	st := newRig(t, func(o *Options) { o.TellLosses = true })
	l := legacytest.NewLine(t, st.front.OpenConn)
	l.Send(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"0"}}}`)
	l.Want(`{"jsonrpc":"2.0","id":0,"result":`)
	l.Send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	p := st.subscription(t)
	p.lose("files")
	l.Want(lostOfFiles)
	l.Send(`{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"error"}}`)
	l.Want(`{"jsonrpc":"2.0","id":1,"result":{}}`)
	p.lose("files")
	p.change("note://a")
	l.Want(changed("note://a"))
}

// Only sessions of groups ask for losses, and only if the server said that it logs.
func TestG14LossesAreOfGroups(t *testing.T) {
	for _, tt := range []struct {
		name, capabilities string
		tell               bool
		want               mcp.Filter
	}{
		{"single server", allOffered, false, mcp.Filter{Tools: true, Resources: true}},
		{"no logging", `{"tools":{"listChanged":true}}`, true, mcp.Filter{Tools: true}},
		{"no lists", `{"logging":{}}`, true, mcp.Filter{Losses: true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			st := newScripted()
			st.describe = func() (*mcp.Description, error) { return &mcp.Description{Capabilities: []byte(tt.capabilities)}, nil }
			f := st.open(t, func(o *Options) { o.TellLosses = tt.tell })
			st.Endpoint = legacytest.Serve(t, f, st.principal)
			st.Enter(t, "2025-11-25")
			p := st.subscription(t)
			bridgetest.Eventually(t, "asked for", func() bool {
				p.mu.Lock()
				defer p.mu.Unlock()
				return fmt.Sprint(p.lists) == fmt.Sprint(tt.want)
			})
		})
	}
}

func TestL2M26GetStreamsResume(t *testing.T) {
	st := newRig(t, nil)
	g := st.Enter(t, "2025-11-25")
	p := st.subscription(t)
	f := g.Listen(t)
	p.change("note://a")
	f.Want(changed("note://a"))
	seen := f.Last
	p.change("note://b")
	f.Want(changed("note://b"))
	f.Response.Body.Close()
	again := g.Listen(t, "Last-Event-ID", seen)
	again.Want(changed("note://b"))
	p.change("note://c")
	again.Want(changed("note://c"))
	again.Response.Body.Close()
	if !strings.HasPrefix(seen, "1.inst.") {
		t.Errorf("event id %q, want it to begin with version and instance", seen)
	}
}

func TestL2M26UnknownEventIDCuesEverything(t *testing.T) {
	st := newRig(t, nil)
	g := st.Enter(t, "2025-11-25")
	s := &st.only(t).subscriptions
	bridgetest.Eventually(t, "lists held", func() bool { return s.filter().Tools })
	g.Call(t, "resources/subscribe", `{"uri":"note://a"}`)
	former := g.Listen(t) // which is still there, and takes none of it
	for _, id := range []string{"1.other.1.1", "1.inst.99.1", "nonsense"} {
		f := g.Listen(t, "Last-Event-ID", id)
		f.Want(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
		f.Want(`{"jsonrpc":"2.0","method":"notifications/resources/list_changed"}`)
		f.Want(changed("note://a"))
		former.Response.Body.Close()
		former = f
	}
	former.Response.Body.Close()
}

func TestL2M26SlowCallsTurnToStreams(t *testing.T) {
	t.Parallel()
	st := newRig(t, nil)
	release := make(chan struct{})
	st.handle = func(ctx context.Context, req *mcp.Request, x mcp.Caller) (string, error) {
		<-release
		return `{"content":[]}`, nil
	}
	g := st.Enter(t, "2025-11-25")
	begin := time.Now()
	f := legacytest.Read(t, st.Open(t, "POST", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}`, "Mcp-Session-Id", g.ID))
	if took := time.Since(begin); took < 900*time.Millisecond {
		t.Errorf("turned to a stream after %v, want 1 s", took)
	}
	for f.Lines.Scan() && !strings.HasPrefix(f.Lines.Text(), "id: ") {
	}
	id := strings.TrimPrefix(f.Lines.Text(), "id: ")
	f.Response.Body.Close() // with an id to come back with
	close(release)
	again := legacytest.Read(t, st.Open(t, "GET", "", "Mcp-Session-Id", g.ID, "Last-Event-ID", id))
	again.Want(`{"jsonrpc":"2.0","id":1,"result":{"content":[]}}`)
	again.Ends()
}

func TestL2M28NothingIsLeft(t *testing.T) {
	st := newRig(t, nil)
	g := st.Enter(t, "2025-11-25")
	p := st.subscription(t)
	f := g.Listen(t)
	st.front.opts.Idle = 10 * time.Millisecond // from the next use on
	g.Post(t, `{"jsonrpc":"2.0","id":5,"method":"ping"}`)
	time.Sleep(50 * time.Millisecond)
	if st.front.Sessions() != 1 {
		t.Fatal("a session with an open stream ended as idle")
	}
	f.Response.Body.Close()
	bridgetest.Eventually(t, "session ended", func() bool { return st.front.Sessions() == 0 })
	bridgetest.Eventually(t, "topics dropped", func() bool { p.mu.Lock(); defer p.mu.Unlock(); return p.closed })
}

func TestL2M28StuckSessionEnds(t *testing.T) {
	st := newRig(t, func(o *Options) {
		o.WriteTimeout = 50 * time.Millisecond
		o.Limits = limits.Set{"client_events": 64 << 10}
	})
	g := st.Enter(t, "2025-11-25")
	p := st.subscription(t)
	f := g.Listen(t) // and never read
	bridgetest.Eventually(t, "session ended", func() bool {
		for n := range 100 {
			p.change(fmt.Sprintf("note://%d/%s", n, strings.Repeat("x", 10_000)))
		}
		return st.front.Sessions() == 0
	})
	if n := st.Count("limit write_timeout"); n != 1 {
		t.Errorf("%d sessions counted as stuck, want 1", n)
	}
	f.Response.Body.Close()
}

func TestMailboxEndsSession(t *testing.T) {
	st := newRig(t, nil)
	g := st.Enter(t, "2025-11-25")
	f := g.Listen(t)
	st.subscription(t).mail.End(fmt.Errorf("server docs was found to be legacy"))
	f.Ends()
	bridgetest.Eventually(t, "session ended", func() bool { return g.Call(t, "ping", `{}`).Status == 404 })
}

// A connection ends as well: its client would wait for changes that nobody reports. What is ending
// already ends as it would, in order.
func TestMailboxEndsConnection(t *testing.T) {
	for _, tt := range []struct {
		name string
		end  func(f *Front, c *Conn)
		lost bool
	}{
		{"in use", func(*Front, *Conn) {}, true},
		{"whose front ends", func(f *Front, _ *Conn) { f.EndStreams(mcp.ErrShutdown) }, false},
		{"that is shut down", func(_ *Front, c *Conn) { _ = c.Shutdown(context.Background()) }, false},
	} {
		bridgetest.RunBubble(t, tt.name, func(t *testing.T) {
			var reasons []string
			st := newScripted()
			f := st.open(t, func(o *Options) { o.Ended = func(e *Ended) { reasons = append(reasons, e.Reason) } })
			l := legacytest.NewLine(t, f.OpenConn)
			l.Send(legacytest.Initialize("2025-11-25"))
			l.Send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
			synctest.Wait()
			tt.end(f, l.Pipe.(*Conn))
			p := st.subs[0]
			p.change("note://a")
			p.mail.End(fmt.Errorf("server docs was found to be legacy"))
			synctest.Wait()
			if l.Next(); l.Next() != changed("note://a") {
				t.Error("the last change was not told")
			}
			want := endedConn
			if tt.lost {
				want = "server docs was found to be legacy"
			}
			select {
			case <-l.Lost():
				if !tt.lost {
					t.Error("it is lost, and was ending")
				}
			default:
				if tt.lost {
					t.Error("it goes on, and hears of no change")
				}
			}
			if l.Close(); !slices.Equal(reasons, []string{want}) {
				t.Errorf("the session ended because %q, want %q", reasons, want)
			}
		})
	}
}

func TestEndStreamsLeavesSessions(t *testing.T) {
	st := newRig(t, nil)
	g := st.Enter(t, "2025-11-25")
	f := g.Listen(t)
	st.front.EndStreams(mcp.ErrShutdown)
	f.Ends()
	if r := g.Call(t, "ping", `{}`); r.Status != 200 {
		t.Errorf("ping after EndStreams = %d, want 200: calls go on", r.Status)
	}
}
