package forward

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/dev/replicastest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/replicas"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

const (
	callTool   = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}`
	initialize = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}`
)

// placed returns replicas of a server with a state, the first of which serves alice. They are made anew if
// another one does: the others may not hear the first for seconds, on a busy machine.
func placed(t *testing.T, n int, options ...option) []*replica {
	t.Helper()
	var got answer
	for range 3 {
		_, all := newReplicas(t, n, append([]option{stateful}, options...)...)
		if got = all[0].send(http.MethodPost, callTool, modern); got.status == http.StatusOK && got.by == all[0].instance && got.body == callTool {
			return all
		}
		t.Logf("the first call = %+v", got)
	}
	t.Fatalf("the first call = %+v, want it served where it came to", got)
	return nil
}

// One replica serves all calls of a principal, whichever one they come to, of clients of both
// eras. What has no state at the server is served where it comes to.
func TestOneReplicaServesAPrincipal(t *testing.T) {
	all := placed(t, 3)
	holder, other := all[0], all[1]
	for _, tt := range []struct {
		what, method, body string
		header             http.Header
		by                 *replica
	}{
		{"a modern call", "POST", callTool, modern, holder},
		{"initialize", "POST", initialize, nil, holder},
		{"a listen stream", "POST", `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{}}`, modern, other},
		{"a notification", "POST", `{"jsonrpc":"2.0","method":"notifications/cancelled"}`, modern, other},
		{"a legacy message", "POST", callTool, nil, other}, // its session would be here
		{"what is no single message", "POST", `[` + callTool + `]`, nil, other},
		{"a GET", "GET", "", nil, other},
	} {
		wantServed(t, tt.what, other.send(tt.method, tt.body, tt.header), tt.by, tt.body)
	}
}

// A client that has a session of its own at the server is served where it asks; so is a client of
// a server that has a session for each request.
func TestOwnSessionsAreServedWhereTheyBegin(t *testing.T) {
	all := placed(t, 2)
	other := all[1]
	other.ownSessions.Store(true)
	wantServed(t, "initialize", other.send(http.MethodPost, initialize, nil), other, initialize)
	_, all = newReplicas(t, 2, stateful, func(_ *replicas.Replica, o *ServerOptions) {
		o.ClaimFor = func(mcp.Principal) string { return "" }
	})
	for _, r := range all {
		wantServed(t, "a call without a claim", r.send(http.MethodPost, callTool, modern), r, callTool)
	}
}

// A client of a server that nobody has asked yet is served where its principal is: that replica
// finds out whether it has a session of its own.
func TestUntriedServerIsTriedByTheHolder(t *testing.T) {
	var untried atomic.Bool
	all := placed(t, 2, func(_ *replicas.Replica, o *ServerOptions) { o.Untried = untried.Load })
	holder, other := all[0], all[1]
	other.ownSessions.Store(true)
	untried.Store(true)
	wantServed(t, "initialize", other.send(http.MethodPost, initialize, nil), holder, initialize)
	untried.Store(false)
	wantServed(t, "initialize once it is known", other.send(http.MethodPost, initialize, nil), other, initialize)
}

// What another replica has forwarded is served where it comes to, whoever serves the principal.
func TestOneReplicaForwardsOnce(t *testing.T) {
	all := placed(t, 2)
	if status, by := all[0].sendPeer(all[1], callTool, modern.Clone()); status != http.StatusOK || by != all[1].instance {
		t.Errorf("= %d by %q, want it served by %s", status, by, all[1].instance)
	}
}

// A call that is continued goes to the replica that holds it, whoever serves its principal. If
// that is gone, it is answered here, by what knows requestStates.
func TestContinuedCallGoesToItsReplica(t *testing.T) {
	for what, options := range map[string][]option{"with a state": {stateful}, "without": nil} {
		t.Run(what, func(t *testing.T) {
			_, all := newReplicas(t, 3, options...)
			a, b, c := all[0], all[1], all[2]
			a.send(http.MethodPost, callTool, modern)
			retry := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","requestState":"1.%s.sealed"}}`, c.instance)
			wantServed(t, "a retry", b.send(http.MethodPost, retry, modern), c, retry)
			wantServed(t, "a retry at its replica", c.send(http.MethodPost, retry, modern), c, retry)
			c.kill()
			wantServed(t, "a retry of what is gone", b.send(http.MethodPost, retry, modern), b, retry)
		})
	}
}

// What is about a task goes to the replica that holds it, which its id names. If that is gone, it is
// answered here, by what has the server's tasks.
func TestT11TasksAreAtTheirReplica(t *testing.T) {
	for what, options := range map[string][]option{"with a state": {stateful}, "without": nil} {
		t.Run(what, func(t *testing.T) {
			_, all := newReplicas(t, 3, options...)
			a, b, c := all[0], all[1], all[2]
			a.send(http.MethodPost, callTool, modern)
			for method, params := range map[string]string{
				"tasks/get": `"taskId":"1.%s.task"`, "tasks/update": `"taskId":"1.%s.task","inputResponses":{}`, "tasks/cancel": `"taskId":"1.%s.task"`,
				"subscriptions/listen": `"notifications":{"taskIds":["1.%s.task","x"]}`,
			} {
				about := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{`+params+`}}`, method, c.instance)
				wantServed(t, method, b.send(http.MethodPost, about, modern), c, about)
				wantServed(t, method+" at its replica", c.send(http.MethodPost, about, modern), c, about)
			}
			get := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"taskId":"1.%s.task"}}`, c.instance)
			wantServed(t, "tasks/get of a legacy client, whose session is here", b.send(http.MethodPost, get, nil), b, get)
			c.kill()
			wantServed(t, "a task of what is gone", b.send(http.MethodPost, get, modern), b, get)
		})
	}
}

// A body that has to be read, and can't be, is refused once.
func TestUnreadableBodyIsRefused(t *testing.T) {
	_, all := newReplicas(t, 2)
	req := request(t, http.MethodPost, Streamable.Path(serverName), "", modern)
	req.Body = brokenBody{strings.NewReader("{"), io.ErrUnexpectedEOF}
	if got := all[0].ask(req); got.status != http.StatusBadRequest || got.by != "" || strings.Count(got.body, "\n") != 1 {
		t.Errorf("= %+v, want one refusal", got)
	}
}

// A replica that is alone, and has no claims to look up, does not look at messages.
func TestAloneReadsNoMessage(t *testing.T) {
	alone(t, func(t *testing.T, _ *replicastest.Broker, r *replica) {
		q := &Request{R: request(t, http.MethodPost, "/mcp/docs", callTool, modern), At: Streamable, Read: func() (*wire.Message, spec.Era, bool) {
			t.Error("the message was read")
			return nil, spec.Unknown, true
		}}
		if _, answered := r.server.Elsewhere(q); answered {
			t.Error("it was answered elsewhere")
		}
	})
}

// The replica that serves a principal is gone, which the others do not know yet: the next calls
// wait until another one has taken over, and are served.
func TestNextReplicaServesAPrincipal(t *testing.T) {
	t.Parallel() // it waits for that
	all := placed(t, 3)
	all[0].kill()
	next := all[1]
	if got := all[1].send(http.MethodPost, callTool, modern); got.by == all[2].instance {
		next = all[2]
	}
	for _, r := range []*replica{all[1], all[2], all[1]} {
		wantServed(t, "a call", r.send(http.MethodPost, callTool, modern), next, callTool)
	}
}

// The replica that serves a principal can't be reached from here, and the engine hears it: it may
// serve others, so nobody else does. The first call waits whether that changes.
func TestNobodyServesForAReplicaThatLives(t *testing.T) {
	t.Parallel() // it waits for that
	all := placed(t, 2)
	all[0].listener.CloseClientConnections()
	all[0].listener.Close()
	for range 2 {
		got := all[1].send(http.MethodPost, callTool, modern)
		if got.status != http.StatusServiceUnavailable || got.header.Get("Retry-After") == "" || !strings.Contains(got.body, `"id":1`) {
			t.Errorf("= %+v, want 503 with Retry-After and the id", got)
		}
	}
}

// The replica that serves a principal says nothing for a second, as one without a processor: a call that
// comes then is served once it answers again, also when that happens a second time.
func TestACallWaitsForAReplicaThatIsSilentForAMoment(t *testing.T) {
	t.Parallel() // it waits for that
	all := placed(t, 2)
	wantServed(t, "a call before", all[1].send(http.MethodPost, callTool, modern), all[0], callTool)
	for range 2 {
		stall := make(chan struct{})
		all[0].serveBeside(func(*http.Request) { <-stall })
		all[0].listener.CloseClientConnections() // a new one begins with a hello
		time.AfterFunc(1200*time.Millisecond, func() { close(stall) })
		wantServed(t, "a call during the silence", all[1].send(http.MethodPost, callTool, modern), all[0], callTool)
	}
}

// While the engine is away nobody takes over, since the replica that serves may hear it.
func TestNextReplicaWithoutEngine(t *testing.T) {
	broker, all := newReplicas(t, 3, stateful)
	for _, r := range all { // all of them know who serves alice
		wantServed(t, "a call before", r.send(http.MethodPost, callTool, modern), all[0], callTool)
	}
	broker.SetAway(true)
	bridgetest.Eventually(t, "the engine is away", func() bool { return !all[1].peers.View().Away.IsZero() })
	all[0].kill()
	for _, r := range all[1:] {
		if got := r.send(http.MethodPost, callTool, modern); got.status != http.StatusServiceUnavailable || got.by != "" {
			t.Errorf("a call = %+v, want 503", got)
		}
	}
}

// Only the owner of a principal serves it, and only while others have heard that it lives; what it
// has served meanwhile is acknowledged only if nobody can have taken over.
func TestOnlyTheOwnerServesAPrincipal(t *testing.T) {
	t.Parallel() // it waits for the end of a lease
	all := placed(t, 2)
	owner, other := all[0], all[1]
	call := func(r *replica, during func()) error {
		res, err := r.server.Serve(t.Context(), &mcp.Request{Method: spec.MethodToolsCall, Profile: mcp.Profile{Principal: alice}}, nil,
			handlerFunc(func() (*mcp.Result, error) { during(); return &mcp.Result{Body: []byte("{}")}, nil }))
		if err == nil {
			res.Release()
		}
		return err
	}
	if err := call(owner, func() {}); err != nil {
		t.Errorf("at the owner: %v", err)
	}
	if err := call(other, func() { t.Error("it was served elsewhere, too") }); err == nil || !mcp.MayTryLater(err) {
		t.Errorf("elsewhere: %v, want that the client tries again", err)
	}
	req := &mcp.Request{Method: spec.MethodToolsCall, Params: []byte(`{"requestState":"1.BBBBBBBB.sealed"}`), Profile: mcp.Profile{Principal: alice}}
	if _, err := other.server.Serve(t.Context(), req, nil, handlerFunc(nil)); err == nil || mcp.MayTryLater(err) || !strings.Contains(err.Error(), "anew") {
		t.Errorf("a call that goes on elsewhere: %v, want that it is sent anew: it would come here each time", err)
	}
	get := &mcp.Request{Method: spec.MethodTaskGet, Params: []byte(`{"taskId":"1.` + other.instance + `.task"}`), Profile: mcp.Profile{Principal: alice}}
	other.era.Store(uint32(spec.Legacy))
	if res, err := other.server.Serve(t.Context(), get, nil, handlerFunc(func() (*mcp.Result, error) { return &mcp.Result{Body: []byte("{}")}, nil })); err != nil {
		t.Errorf("T-11: a task that was made before: %v, want it served where it is", err)
	} else {
		res.Release()
	}
	err := call(owner, func() {
		owner.engine.SetAway(true)
		other.listener.CloseClientConnections() // nor can the other one write its heartbeats
		other.listener.Close()
		time.Sleep(replicas.MemberTTL)
	})
	if err == nil || !strings.Contains(err.Error(), "may have taken effect") {
		t.Errorf("a call during which the lease ended: %v, want that it may have taken effect", err)
	}
	if err := call(owner, func() { t.Error("it was served without a lease") }); err == nil || mcp.HintOf(err).Status != http.StatusServiceUnavailable || mcp.HintOf(err).RetryAfter == 0 {
		t.Errorf("without a lease: %v, want 503 with Retry-After", err)
	}
}

// A call that takes longer than its replica serves a principal after the last one has its result, and the
// replica serves the principal for all of that time after its end: the session with the server, and with it
// the client's state there, lasts as long. So it does after what is about a task.
func TestLongCallsKeepTheirReplica(t *testing.T) {
	alone(t, func(t *testing.T, _ *replicastest.Broker, r *replica) {
		held := func(what string) {
			t.Helper()
			if c, held := r.engine.Holder("claim of " + string(alice)); !held || c.Epoch != 1 {
				t.Errorf("%s: the claim is %+v, %v, want the one of the first call", what, c, held)
			}
		}
		call := func(what, method, params string, takes time.Duration) {
			t.Helper()
			req := &mcp.Request{Method: method, Params: []byte(params), Profile: mcp.Profile{Principal: alice}}
			res, err := r.server.Serve(t.Context(), req, nil, handlerFunc(func() (*mcp.Result, error) {
				time.Sleep(takes)
				return &mcp.Result{Body: []byte("{}")}, nil
			}))
			if err != nil {
				t.Fatalf("%s: %v, want its result", what, err)
			}
			res.Release()
			held(what)
			time.Sleep(50 * time.Second)
			held("50 s after " + what)
		}
		r.era.Store(uint32(spec.Legacy))
		call("a long call", spec.MethodToolsCall, `{"name":"t"}`, 3*time.Minute)
		for range 3 {
			call("a question for a task", spec.MethodTaskGet, `{"taskId":"1.AAAAAAAA.task"}`, 0)
		}
	}, stateful)
}

// A replica that is told to end ends the calls that it has begun: their results are good, though another one
// serves the principal by then.
func TestCallsOfADrainingOwnerKeepTheirResults(t *testing.T) {
	name := "claim of " + string(alice)
	for what, tt := range map[string]struct {
		passage *mcp.Passage
		moves   func(owner, other *replica)
	}{
		"another one takes the name":       {moves: func(_, other *replica) { other.group.placement.Find(t.Context(), name, time.Minute) }},
		"it gives the name to who goes on": {moves: func(owner, _ *replica) { owner.group.placement.Heir(name) }},
		"through a group":                  {&mcp.Passage{Group: "all"}, func(owner, _ *replica) { owner.group.placement.Heir(name) }},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			all := placed(t, 3, func(_ *replicas.Replica, o *ServerOptions) { o.Remote = func(replicas.Replica) Remote { return nil } })
			owner := all[0]
			req := &mcp.Request{Method: spec.MethodToolsCall, Profile: mcp.Profile{Principal: alice}, Passage: tt.passage}
			res, err := owner.server.Serve(t.Context(), req, nil, handlerFunc(func() (*mcp.Result, error) {
				owner.drain(all)
				tt.moves(owner, all[1])
				bridgetest.Eventually(t, "another replica serves the principal", func() bool {
					c, held := owner.engine.Holder(name)
					return held && c.Holder.Instance != owner.instance
				})
				return &mcp.Result{Body: []byte("{}")}, nil
			}))
			if err != nil {
				t.Fatalf("= %v, want the result", err)
			}
			res.Release()
		})
	}
}

// An owner that can't reach the engine serves its principal all the same, since the others write
// its heartbeats, and one that answers keeps its sessions.
func TestAnOwnerIsHeardThroughOthers(t *testing.T) {
	t.Parallel() // it waits for the end of a lease that does not end
	all := placed(t, 3)
	all[0].engine.SetAway(true)
	time.Sleep(2 * replicas.MemberTTL)
	for _, r := range all {
		wantServed(t, "a call", r.send(http.MethodPost, callTool, modern), all[0], callTool)
	}
	if teller, there := all[0].engine.Teller(); !there || teller.Instance == all[0].instance {
		t.Errorf("its heartbeats are written by %q, want another replica", teller.Instance)
	}
	if n := len(all[1].peers.View().Members); n != 3 {
		t.Errorf("%d members, want that the owner is one", n)
	}
}

// While the engine is away for all, a principal that only its owner was ever asked for is served by that
// one, and one that nobody was asked for by the replica that all choose. Without the answer of each other
// replica nobody serves it.
func TestAllAreAskedWithoutTheEngine(t *testing.T) {
	t.Parallel() // it waits for what replicas tell each other
	broker, all := newReplicas(t, 3, stateful, func(_ *replicas.Replica, o *ServerOptions) {
		o.ClaimFor = func(p mcp.Principal) string { return string(p) }
	})
	chosen := func(name string) *replica {
		to := all[0].peers.View().Choose(name)
		return all[slices.IndexFunc(all, func(r *replica) bool { return r.instance == to.Instance })]
	}
	named := func(by *replica, from string) mcp.Principal {
		for chosen(from) != by {
			from += "s"
		}
		return mcp.Principal(from)
	}
	free, unsure, held := named(all[0], "free"), named(all[0], "unsure"), named(all[0], "held")
	owner := all[2]
	serve := func(r *replica, p mcp.Principal) error {
		res, err := r.server.Serve(t.Context(), &mcp.Request{Method: spec.MethodToolsCall, Profile: mcp.Profile{Principal: p}}, nil,
			handlerFunc(func() (*mcp.Result, error) { return &mcp.Result{Body: []byte("{}")}, nil }))
		if err == nil {
			res.Release()
		}
		return err
	}
	find := func(r *replica, p mcp.Principal) string {
		return r.group.placement.Find(t.Context(), string(p), time.Minute).Instance
	}
	if err := serve(owner, held); err != nil {
		t.Fatal(err)
	}
	asked := func() bool {
		for _, r := range all {
			if r.engine.View().Away.IsZero() || r.engine.Inquire(t.Context(), "another") != nil {
				return false
			}
		}
		return true
	}
	bridgetest.Eventually(t, "the engine is away for all, which know all", func() bool {
		broker.SetAway(false)
		time.Sleep(replicas.MemberTTL + 2*replicas.Heartbeat) // none may be without a processor meanwhile
		broker.SetAway(true)
		for end := time.Now().Add(2 * replicas.MemberTTL); !asked() && time.Now().Before(end); {
			time.Sleep(replicas.Heartbeat / 10)
		}
		return asked()
	})
	for _, r := range all {
		if got := find(r, held); got != owner.instance {
			t.Errorf("%s has what is held served by %s, want its owner", r.instance, got)
		}
		if got := find(r, free); got != all[0].instance {
			t.Errorf("%s has what nobody holds served by %s, want the one that all choose", r.instance, got)
		}
		if err := serve(r, held); (err == nil) != (r == owner) {
			t.Errorf("%s serves what another one holds: %v", r.instance, err)
		}
		if err := serve(r, free); (err == nil) != (r == all[0]) {
			t.Errorf("%s serves what nobody holds: %v", r.instance, err)
		}
	}
	all[1].former.Store(true)
	if err := serve(all[0], unsure); mcp.HintOf(err).Status != http.StatusServiceUnavailable || mcp.HintOf(err).RetryAfter == 0 || !strings.Contains(err.Error(), "not all of them have answered whether another one serves this") {
		t.Errorf("without an answer: %v, want 503 with Retry-After", err)
	}
	all[1].former.Store(false)
	if err := serve(all[0], unsure); err != nil {
		t.Errorf("once all have answered: %v", err)
	}
}

// What a replica is told of the others without the engine: who is replaced is gone, and who only
// refuses to be connected to may live.
func TestNeighbors(t *testing.T) {
	broker, all := newReplicas(t, 3)
	record := []byte(`{"addr":"10.0.0.1:1","beat":1}`)
	self, to := all[0], all[1].peers.Self()
	if err := self.peers.Tell(t.Context(), to, record); err != nil {
		t.Errorf("Tell = %v of who hears the engine", err)
	}
	broker.SetAway(true)
	if err := self.peers.Tell(t.Context(), to, record); !errors.Is(err, replicas.ErrAway) {
		t.Errorf("Tell = %v of who does not, want %v", err, replicas.ErrAway)
	}
	if err := self.peers.Greet(t.Context(), to); err != nil {
		t.Errorf("Greet = %v of who answers", err)
	}
	former := replicas.Replica{Instance: "ZZZZZZZZ", Addr: to.Addr, Revision: replicas.Revision}
	if err := self.peers.Tell(t.Context(), former, record); !errors.Is(err, replicas.ErrGone) {
		t.Errorf("Tell = %v of who is replaced, want %v", err, replicas.ErrGone)
	}
	const key = "0123456789abcdef0123456789abcdef"
	if epoch, err := self.peers.Ask(t.Context(), to, key); epoch != 0 || err != nil {
		t.Errorf("Ask = %d, %v of who holds nothing", epoch, err)
	}
	if _, err := self.peers.Ask(t.Context(), former, key); !errors.Is(err, replicas.ErrGone) {
		t.Errorf("Ask = %v of who is replaced, want %v", err, replicas.ErrGone)
	}
	all[2].kill()
	if _, err := self.peers.Ask(t.Context(), all[2].peers.Self(), key); err == nil || errors.Is(err, replicas.ErrGone) {
		t.Errorf("Ask = %v of who refuses to be connected to, want that it may live", err)
	}
	if err := self.peers.Tell(t.Context(), all[2].peers.Self(), record); err == nil || errors.Is(err, replicas.ErrGone) || errors.Is(err, replicas.ErrAway) {
		t.Errorf("Tell = %v of who refuses to be connected to, want that it may live", err)
	}
	if err := self.peers.Greet(t.Context(), all[2].peers.Self()); err == nil {
		t.Error("who refuses to be connected to has answered")
	}
}

// handlerFunc is an [mcp.Handler] that takes no request.
type handlerFunc func() (*mcp.Result, error)

func (f handlerFunc) Serve(context.Context, *mcp.Request, mcp.Caller) (*mcp.Result, error) {
	return f()
}

// Sessions go on where the calls of their principal do.
func TestHeirServesThePrincipal(t *testing.T) {
	all := placed(t, 3)
	a := all[0]
	var sessions []string
	for i := range 8 {
		sessions = append(sessions, fmt.Sprint(sessionAt(a), i))
		a.adopt(sessions[i])
	}
	a.drain(all)
	a.group.Drain([]*Server{a.server})
	a.group.AwaitDrain(t.Context())
	heir, other := holderAmong(t, sessions[0], all[1], all[2])
	for _, session := range sessions {
		if !heir.has(session) {
			t.Errorf("session %s is not at %s, which has others", session, heir.instance)
		}
	}
	if err := a.engine.Leave(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, r := range []*replica{heir, other} {
		bridgetest.Eventually(t, "the replica is gone", func() bool { _, lives := r.peers.View().Member(a.instance); return !lives })
		wantServed(t, "a call", r.send(http.MethodPost, callTool, modern), heir, callTool)
	}
}

// initialize waits for the era of a server that is starting, and for no longer than that may
// take.
func TestInitializeWaitsForTheEra(t *testing.T) {
	for _, tt := range []struct {
		what     string
		known    time.Duration // until the server has started; zero: never
		waited   time.Duration
		starting bool
	}{
		{"it is known", 0, 0, false},
		{"it becomes known", 3 * time.Second, 3 * time.Second, true},
		{"it is never known", 0, verdictWait, true},
	} {
		t.Run(tt.what, func(t *testing.T) {
			alone(t, func(t *testing.T, _ *replicastest.Broker, r *replica) {
				r.era.Store(uint32(spec.Unknown))
				r.starting.Store(tt.starting)
				if tt.known > 0 {
					time.AfterFunc(tt.known, func() { r.era.Store(uint32(spec.Legacy)) })
				}
				begin := time.Now()
				wantServed(t, "initialize", r.send(http.MethodPost, initialize, nil), r, initialize)
				if took := time.Since(begin); took < tt.waited || took > tt.waited+verdictPoll {
					t.Errorf("it waited %v, want %v", took, tt.waited)
				}
			}, stateful)
		})
	}
}

// Too many principals: the one whose replica was not asked for longest is forgotten, and the log
// and a metric say so.
func TestTooManyPrincipalsAreTold(t *testing.T) {
	alone(t, func(t *testing.T, _ *replicastest.Broker, r *replica) {
		for i := 0; r.limits.Count("placed_profiles") == 0; i++ {
			if i > 1<<15 {
				t.Fatal("there is no limit")
			}
			r.group.placement.Find(t.Context(), fmt.Sprint("claim ", i), time.Hour)
		}
		if !strings.Contains(r.logs.String(), "too many profiles have a replica") {
			t.Errorf("the log: %s", r.logs.String())
		}
	}, stateful)
}
