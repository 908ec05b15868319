package router

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/peer"
	"github.com/mcpbridge/mcpbridge/internal/replicas"
	"github.com/mcpbridge/mcpbridge/internal/settings"
	"github.com/mcpbridge/mcpbridge/internal/trust/auth"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	modernback "github.com/mcpbridge/mcpbridge/modern/back"
)

// newStateful returns replicas each of which has a server of its own, as it has of a command,
// that answers with its number. All calls of a profile have to reach the same one.
func newStateful(t *testing.T, n int, change func(*Options)) *deployment {
	t.Helper()
	return newStatefulOf(t, n, change, func(*modernPeer) {})
}

func newStatefulOf(t *testing.T, n int, change func(*Options), each func(*modernPeer)) *deployment {
	t.Helper()
	number := 0
	return newDeployment(t, n, func(o *Options) {
		p := newModernPeer(t)
		each(p)
		p.answers["tools/list"] = fmt.Sprintf(`{"resultType":"complete","tools":[{"name":"of-%d","inputSchema":{"type":"object"}}],"ttlMs":0,"cacheScope":"private"}`, number)
		p.answers["tools/call"] = fmt.Sprintf(`{"resultType":"complete","content":[{"type":"text","text":"of-%d"}]}`, number)
		number++
		o.Servers = []ServerOptions{{Name: "peer", HoldFor: time.Minute, Open: func(c mcp.Changes) (mcp.Back, error) {
			return modernback.New(modernback.Options{Options: upstream.Options{Name: "peer", URL: p.URL, Changes: c, Logger: o.Logger, Settings: settings.Server{Linger: time.Millisecond},
				ClientInfo: []byte(`{"name":"mcpbridge","version":"test"}`)}})
		}}}
		if change != nil {
			change(o)
		}
	})
}

// served returns which server has answered.
func served(t *testing.T, a answer) string {
	t.Helper()
	_, rest, ok := strings.Cut(a.body, `"of-`)
	if !ok || a.status != 200 {
		t.Errorf("call = %d %s", a.status, a.body)
		return ""
	}
	return rest[:1]
}

// starved reports whether a replica has refused a call because it, or all of this process, had no
// processor for some seconds.
func starved(res answer) bool {
	for _, text := range []string{"have not heard this one", "may have taken over", "not all of them have answered", "does not answer; try again"} {
		if strings.Contains(res.body, text) {
			return true
		}
	}
	return false
}

// onlyServer reports a call of a client that did not reach the server of the others, and
// returns which that is.
func (d *deployment) onlyServer(t *testing.T, when string, h http.Header) (by string) {
	t.Helper()
	for i := range 2 * len(d.all) {
		r := d.all[i%len(d.all)]
		headers := modernHeaders("tools/call", "t")
		for k, v := range h {
			headers[k] = v
		}
		call := func() answer {
			return r.send(t, http.MethodPost, modernBody("1", "tools/call", `"name":"t","arguments":{}`), headers)
		}
		res := call()
		for end := time.Now().Add(d.patient); starved(res) && time.Now().Before(end); res = call() {
			time.Sleep(100 * time.Millisecond)
		}
		if d.patient > 0 && starved(res) {
			d.starved = true
			return ""
		}
		got := served(t, res)
		if by == "" {
			by = got
		}
		if got != by {
			t.Errorf("%s: a call at replica %d was served by server %s, others by %s", when, i%len(d.all), got, by)
		}
	}
	return by
}

// All calls of a profile reach one server, whichever replica they come to, of clients of both
// eras.
func TestOneReplicaServesAProfile(t *testing.T) {
	t.Parallel()
	d := newStateful(t, 3, nil)
	by := d.onlyServer(t, "modern", nil)
	for i, r := range d.all {
		session := r.initialize(t)
		if got := "1" + d.all[int(by[0]-'0')].peers.Self().Instance; !strings.HasPrefix(session, got) {
			t.Errorf("a session that replica %d was asked for is %s, want it at the one that serves the profile, %s", i, session, got)
		}
		for _, other := range d.all {
			if got := served(t, other.send(t, http.MethodPost, listToolsBody, sessionHeaders(session))); got != by {
				t.Errorf("a call of a legacy client was served by %s, want %s", got, by)
			}
		}
	}
}

// First calls that come to all replicas at the same time meet at one server.
func TestOneReplicaIsChosenAtOnce(t *testing.T) {
	t.Parallel()
	d := newStateful(t, 3, nil)
	var wg sync.WaitGroup
	by := make([]string, 12)
	for i := range by {
		wg.Go(func() {
			by[i] = served(t, d.all[i%3].send(t, http.MethodPost, modernBody("1", "tools/call", `"name":"t","arguments":{}`), modernHeaders("tools/call", "t")))
		})
	}
	wg.Wait()
	for _, got := range by {
		if got != by[0] {
			t.Fatalf("first calls were served by servers %v, want one", by)
		}
	}
}

// Each principal has its own holder, and no call asks the engine.
func TestOneReplicaPerPrincipal(t *testing.T) {
	t.Parallel()
	var known []auth.StaticToken
	for n := range 12 {
		known = append(known, auth.StaticToken{Name: fmt.Sprint("p", n), Token: tokenOf(fmt.Sprint("p", n))})
	}
	d := newStateful(t, 3, func(o *Options) {
		tokens, err := auth.NewTokens(known)
		if err != nil {
			t.Fatal(err)
		}
		o.Auth = tokens
	})
	holders := map[string]bool{}
	for n, k := range known {
		first := d.all[n%3]
		h := http.Header{"Authorization": {"Bearer " + k.Token}}
		headers := modernHeaders("tools/call", "t")
		headers["Authorization"] = h["Authorization"]
		served(t, first.send(t, http.MethodPost, modernBody("1", "tools/call", `"name":"t","arguments":{}`), headers))
		holders[d.onlyServer(t, k.Name, h)] = true
	}
	if len(holders) != 3 {
		t.Errorf("profiles are held by %v, want each by the one that was asked first", holders)
	}
	begin, before := time.Now(), d.Calls()
	for range 20 {
		d.onlyServer(t, "later", http.Header{"Authorization": {"Bearer " + known[0].Token}})
	}
	beats := int(time.Since(begin)/time.Second+2) * 3 * 3 // heartbeats of three
	if asked := d.Calls() - before; asked > beats {
		t.Errorf("the engine was asked %d times for 120 calls, want heartbeats alone (%d)", asked, beats)
	}
}

// The holder is gone: the next call waits until another one has taken over for all.
func TestOneReplicaDies(t *testing.T) {
	t.Parallel()
	d := newStateful(t, 3, nil)
	by := d.onlyServer(t, "before", nil)
	at := int(by[0] - '0')
	dead := d.all[at]
	dead.listener.CloseClientConnections()
	dead.listener.Listener.Close()
	dead.engine.SetFrozen(true)
	t.Cleanup(func() { dead.engine.SetFrozen(false) })
	d.all = append(d.all[:at:at], d.all[at+1:]...)
	begin := time.Now()
	next := d.onlyServer(t, "after", nil)
	if took := time.Since(begin); next == by || took > 12*time.Second { // 4 on an idle machine
		t.Errorf("the next holder is %s after %v, want another one once it was silent", next, took)
	}
	time.Sleep(4 * time.Second) // it is known to be dead
	if got := d.onlyServer(t, "later", nil); got != next {
		t.Errorf("the holder has changed from %s to %s", next, got)
	}
}

// While the engine is away, all choose the same replica; holders that are known stay.
func TestOneReplicaWithoutEngine(t *testing.T) {
	t.Parallel()
	d := newStateful(t, 3, func(o *Options) {
		tokens, err := auth.NewTokens([]auth.StaticToken{{Name: alice, Token: tokenOf(alice)}, {Name: bob, Token: tokenOf(bob)}})
		if err != nil {
			t.Fatal(err)
		}
		o.Auth = tokens
	})
	as := func(who string) http.Header { return http.Header{"Authorization": {"Bearer " + tokenOf(who)}} }
	outage := func() {
		d.patient = patience
		by := d.onlyServer(t, "with the engine", as(alice))
		time.Sleep(replicas.MemberTTL + 2*replicas.Heartbeat) // from then on they know all
		d.SetAway(true)
		defer d.SetAway(false)
		for _, r := range d.all {
			eventually(t, func() bool { return !r.peers.View().Away.IsZero() })
		}
		d.patient = replicas.MemberTTL
		if got := d.onlyServer(t, "without it", as(alice)); got != by && !d.starved {
			t.Errorf("the holder has changed from %s to %s", by, got)
		}
		d.onlyServer(t, "new, without it", as(bob))
	}
	outage()
	for range 3 { // a replica that had no processor for seconds serves only once the engine is back
		if d.starved {
			d.starved = false
			outage()
		}
	}
	if d.starved {
		t.Error("a replica had no processor for seconds in each of four outages")
	}
}

// The holder ends: its sessions go on where the calls of their profile do.
func TestOneReplicaEnds(t *testing.T) {
	t.Parallel()
	d := newStateful(t, 3, nil)
	by := d.onlyServer(t, "before", nil)
	holder := d.all[int(by[0]-'0')]
	session := d.all[0].initialize(t)
	if peer.OfSession(session) != holder.peers.Self().Instance {
		t.Fatal("the session is not at the holder")
	}
	d.drain(t, holder)
	d.end(t, holder)
	next := d.onlyServer(t, "after", nil)
	if next == by {
		t.Error("the holder has not changed")
	}
	for _, r := range d.all {
		if got := served(t, r.send(t, http.MethodPost, listToolsBody, sessionHeaders(session))); got != next {
			t.Errorf("the session is served by %s, the profile by %s", got, next)
		}
	}
}

// The stream of an HTTP+SSE client is opened at the replica that serves its principal, whichever
// one it asks.
func TestOneReplicaServesEventStreams(t *testing.T) {
	t.Parallel()
	d := newStateful(t, 3, nil)
	by := d.onlyServer(t, "before", nil)
	for i, r := range d.all {
		for path, h := range map[string]http.Header{"/sse/peer": nil, "/sse": {"X-Forwarded-Prefix": {"/api"}}} {
			c := r.openEvents(t, path, h)
			if want := h.Get("X-Forwarded-Prefix") + "/message"; !strings.HasPrefix(c.messages, want) {
				t.Errorf("the endpoint of %s is %s, want %s", path, c.messages, want)
			}
			c.messages = strings.TrimPrefix(c.messages, h.Get("X-Forwarded-Prefix"))
			c.r = &d.all[(i+1)%3].rig // where all messages are posted
			c.initialize("2024-11-05", `{}`)
			c.send(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
			c.want(`"id":1,"result"`, `"of-`+by)
		}
	}
	if n := d.all[0].g.Snapshot().Sessions + d.all[1].g.Snapshot().Sessions + d.all[2].g.Snapshot().Sessions; n != 6 {
		t.Errorf("there are %d sessions, want 6", n)
	}
}

// A client that has a session of its own at the server is served where it asks.
func TestOneReplicaLeavesOwnSessions(t *testing.T) {
	t.Parallel()
	all := newReplicas(t, 2, func(o *Options) { o.Servers[0].HoldFor = time.Minute })
	for i, r := range all {
		r.openEvents(t, "/sse/peer", nil)
		if session := r.initialize(t); peer.OfSession(session) != r.peers.Self().Instance {
			t.Errorf("a session of replica %d is at another one", i)
		}
		if got := r.g.Snapshot().Sessions; got != 2 {
			t.Errorf("replica %d has %d sessions, want 2", i, got)
		}
	}
}

// Servers that are configured otherwise at two replicas are served by each of them.
func TestOneReplicaOfAnotherDefinition(t *testing.T) {
	t.Parallel()
	number := 0
	d := newStateful(t, 2, func(o *Options) {
		o.Servers[0].Definition = fmt.Sprint(number)
		number++
	})
	for i, r := range d.all {
		got := served(t, r.send(t, http.MethodPost, modernBody("1", "tools/call", `"name":"t","arguments":{}`), modernHeaders("tools/call", "t")))
		if got != fmt.Sprint(i) {
			t.Errorf("a call at replica %d was served by server %s, want its own", i, got)
		}
	}
}
