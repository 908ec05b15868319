package router

import (
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/settings"
)

// isolated are the rows of the matrix of isolation: something that one of two principals must not
// have of the other, who does the same at the same server, with the same ids, tokens, URIs and texts.
var isolated = []struct {
	name string
	run  func(w *tenants)
}{
	{"M2L-01 sessions", isolatedSessions},
	{"M2L-05 discovery", isolatedDiscovery},
	{"M2L-08 private results", isolatedPrivateResults},
	{"M2L-08 public results", isolatedPublicResults},
	{"M2L-11 progress", isolatedProgress},
	{"M2L-12 logs", isolatedLogs},
	{"M2L-13 cancellation", isolatedCancellation},
	{"M2L-17 answers of parked calls", isolatedAnswers},
	{"M2L-18 stolen states", isolatedStates},
	{"M2L-19 places to park", isolatedPlaces},
	{"M2L-23 roots", isolatedRoots},
	{"M2L-33 listen streams", isolatedStreams},
	{"M2L-34 subscriptions", isolatedSubscriptions},
}

func TestIsolation(t *testing.T) {
	t.Parallel()
	for _, tt := range isolated {
		t.Run(tt.name, func(t *testing.T) {
			w := newTenants(t, settings.IsolatePrincipal)
			w.t = t
			tt.run(w)
		})
	}
}

// Clients of a group are kept apart as those of its members are.
func TestG13IsolationInGroups(t *testing.T) {
	t.Parallel()
	for _, tt := range isolated {
		t.Run(tt.name, func(t *testing.T) {
			w := newGroupTenants(t)
			w.t = t
			tt.run(w)
		})
	}
}

func isolatedSessions(w *tenants) {
	a, b := w.session(alice), w.session(bob)
	if a == b {
		w.t.Errorf("both reach session %s", a.name)
	}
	if again := w.session(alice); again != a {
		w.t.Errorf("alice reaches session %s, and %s before", again.name, a.name)
	}
	if nobody := w.session(""); nobody == a || nobody == b {
		w.t.Errorf("a client without credentials reaches session %s, which is another's", nobody.name)
	}
}

func isolatedDiscovery(w *tenants) {
	a, b := w.session(alice), w.session(bob)
	for who, want := range map[string]*tenantSession{alice: a, bob: b} {
		got := w.ask(who, "server/discover", "", "")
		if !strings.Contains(got.body, `"instructions":"`) || !strings.Contains(got.body, `for `+want.name+`"`) {
			w.t.Errorf("discovery of %s = %s, want what session %s was told", who, got.body, want.name)
		}
	}
	if a == b {
		w.t.Error("both were told the same")
	}
}

func isolatedPrivateResults(w *tenants) {
	w.isolatedResults("resources/read", "note://todo", `"uri":"note://todo"`, 4)
}

// A server may show each what is theirs and still call it public: the word says
// that it may be kept, and the profile for whom.
func isolatedPublicResults(w *tenants) { w.isolatedResults("tools/list", "", "", 2) }

// isolatedResults has both ask for the same in turn, twice.
func (w *tenants) isolatedResults(method, name, rest string, asked int) {
	a, b := w.session(alice), w.session(bob)
	for range 2 {
		for who, own := range map[string]*tenantSession{alice: a, bob: b} {
			other := a
			if own == a {
				other = b
			}
			got := w.ask(who, method, name, rest)
			if !strings.Contains(got.body, `"`+own.name+`"`) || strings.Contains(got.body, `"`+other.name+`"`) {
				w.t.Errorf("%s of %s = %s, want that of session %s", method, who, got.body, own.name)
			}
		}
	}
	if n := w.server.count(method); n != asked {
		w.t.Errorf("the server was asked %d times, want %d", n, asked)
	}
}

func isolatedProgress(w *tenants) {
	a, atA := w.work(alice)
	b, atB := w.work(bob)
	if atA.token == atB.token || atA.id == atB.id {
		w.t.Errorf("upstream the calls have ids %s and %s, tokens %s and %s; want each its own on one endpoint", atA.id, atB.id, atA.token, atB.token)
	}
	progress := func(s *tenantSession, token, value string) {
		s.stream <- `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":` + value + `,"progressToken":` + token + `}}`
	}
	progress(w.session(alice), atB.token, "42") // the token of a call on another session is nobody's
	progress(w.session(alice), atA.token, "41")
	a.want(`"progress":41`)
	progress(w.session(bob), atB.token, "42")
	b.want(`"progress":42`)
	a.wantNone("42")
	b.wantNone("41")
	w.end(a, b, atA, atB)
	a.wantNone("42")
}

// end has both calls end.
func (w *tenants) end(a, b *lines, atA, atB tenantWork) {
	w.t.Helper()
	close(atA.finish)
	close(atB.finish)
	a.want(`"result"`)
	b.want(`"result"`)
}

// A message that names no request belongs to the one that runs on its session.
func isolatedLogs(w *tenants) {
	a, atA := w.work(alice)
	b, atB := w.work(bob)
	soon(w.t, w.session(alice).levelled, "the level of alice's session")
	soon(w.t, w.session(bob).levelled, "the level of bob's session")
	logs := func(s *tenantSession, text string) {
		s.stream <- `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"` + text + `"}}`
	}
	logs(w.session(alice), "secret of alice")
	a.want("secret of alice")
	logs(w.session(bob), "secret of bob")
	b.want("secret of bob")
	w.end(a, b, atA, atB)
	a.wantNone("secret of bob")
	b.wantNone("secret of alice")
}

// Of two calls on two sessions one is cancelled, by the id that it alone has.
func isolatedCancellation(w *tenants) {
	a, atA := w.work(alice)
	b, atB := w.work(bob)
	if err := b.res.Body.Close(); err != nil {
		w.t.Fatal(err)
	}
	if got := soon(w.t, w.session(bob).left, "the cancellation"); !strings.Contains(got, `"requestId":`+atB.id) || atA.id == atB.id {
		w.t.Errorf("cancelled = %s, the calls' ids are %s and %s", got, atA.id, atB.id)
	}
	close(atA.finish)
	a.want(`"result"`)
	select {
	case got := <-w.session(alice).left:
		w.t.Errorf("alice's session was told %s", got)
	default:
	}
}

const elicits = `"name":"ask","arguments":{"method":"elicitation/create"}`

// answering returns the params of a retry that says a name.
func (r round) answering(name string) string {
	return elicits + r.retry(map[string]string{"elicitation/create": `{"action":"accept","content":{"name":"` + name + `"}}`})
}

func isolatedAnswers(w *tenants) {
	first := w.ask(alice, "tools/call", "ask", elicits)
	second := w.ask(bob, "tools/call", "ask", elicits)
	a, b := first.round(w.t), second.round(w.t)
	if a.key("elicitation/create") != b.key("elicitation/create") {
		w.t.Error("the questions have different keys, want the same")
	}
	if want := "for " + w.session(alice).name; !strings.Contains(first.body, want) || strings.Contains(second.body, want) {
		w.t.Errorf("alice is asked %s, bob %s, want only alice to be asked what is %q", first.body, second.body, want)
	}
	if got := w.ask(bob, "tools/call", "ask", b.answering("Bob")); !strings.Contains(got.body, "Bob") {
		w.t.Errorf("bob's call = %s, want his own answer", got.body)
	}
	if got := w.ask(alice, "tools/call", "ask", a.answering("Ada")); !strings.Contains(got.body, "Ada") {
		w.t.Errorf("alice's call = %s, want her own answer", got.body)
	}
}

func isolatedStates(w *tenants) {
	a, b := w.ask(alice, "tools/call", "ask", elicits).round(w.t), w.ask(bob, "tools/call", "ask", elicits).round(w.t)
	stolen := []answer{
		w.ask(bob, "tools/call", "ask", a.answering("Mallory")),
		w.ask(alice, "tools/call", "ask", b.answering("Mallory")),
		w.ask("", "tools/call", "ask", b.answering("Mallory")),
	}
	for _, got := range stolen {
		if got.status != 400 || got.code() != -32602 || got.body != stolen[0].body {
			w.t.Errorf("a stolen state: %d %s, want 400, -32602 and one text", got.status, got.body)
		}
	}
	for who, rd := range map[string]round{alice: a, bob: b} {
		if got := w.ask(who, "tools/call", "ask", rd.answering("me, "+who)); !strings.Contains(got.body, "me, "+who) {
			w.t.Errorf("%s's call after the theft = %s", who, got.body)
		}
	}
}

func isolatedPlaces(w *tenants) {
	w.ask(alice, "tools/call", "ask", elicits).round(w.t)
	// Nothing comes of the second call but an error to its server.
	if got := w.ask(alice, "tools/call", "ask", elicits); strings.Contains(got.body, "input_required") {
		w.t.Errorf("alice's second call = %s, want it refused at her bound", got.body)
	}
	w.ask(bob, "tools/call", "ask", elicits).round(w.t)
}

// What a client says of its roots is never given for another client's: a server that asks
// outside of calls may do so for anybody.
func isolatedRoots(w *tenants) {
	w.capabilities = `{"elicitation":{},"roots":{}}`
	const asks = `"name":"ask","arguments":{"method":"roots/list"}`
	rd := w.ask(alice, "tools/call", "ask", asks).round(w.t)
	w.ask(alice, "tools/call", "ask", asks+rd.retry(map[string]string{"roots/list": someDir}))
	for who, want := range map[string]string{bob: `{"roots":[]}`, alice: `{"roots":[]}`} {
		s := w.session(who)
		s.stream <- `{"jsonrpc":"2.0","id":1,"method":"roots/list"}`
		if got := soon(w.t, s.replies, "the roots"); got != want {
			w.t.Errorf("%s's session was told %s, want %s", who, got, want)
		}
	}
}

func isolatedStreams(w *tenants) {
	a, b := w.subscribe(alice), w.subscribe(bob)
	w.session(alice).stream <- updated("note://todo")
	a.want("resources/updated")
	w.session(bob).stream <- toolsChanged
	b.want("tools/list_changed")
	b.wantNone("resources/updated")
	w.session(alice).stream <- updated("note://todo")
	a.want("resources/updated")
	a.wantNone("tools/list_changed")
}

// One leaves; the other's subscription, the same in every word, stays.
func isolatedSubscriptions(w *tenants) {
	a, b := w.subscribe(alice), w.subscribe(bob)
	if err := b.res.Body.Close(); err != nil {
		w.t.Fatal(err)
	}
	if got := soon(w.t, w.session(bob).left, "the end of bob's subscription"); !strings.Contains(got, "note://todo") {
		w.t.Errorf("bob's session was told %s", got)
	}
	w.session(alice).stream <- updated("note://todo")
	a.want("resources/updated")
	select {
	case got := <-w.session(alice).left:
		w.t.Errorf("alice's session was told %s", got)
	default:
	}
}

// Where the configuration says that all share one session there is nothing to
// keep apart: a public result is everybody's. A private one is nobody's but whose
// it is, all the same.
func TestM2L08SharedIsolationSharesPublicResults(t *testing.T) {
	t.Parallel()
	w := newTenants(t, settings.IsolateNothing)
	if a, b := w.session(alice), w.session(bob); a != b {
		t.Errorf("alice reaches session %s, bob %s, want one", a.name, b.name)
	}
	for _, who := range []string{alice, bob} {
		w.ask(who, "tools/list", "", "")
		w.ask(who, "resources/read", "note://todo", `"uri":"note://todo"`)
	}
	if n := w.server.count("tools/list"); n != 1 {
		t.Errorf("the server was asked %d times for what is public, want once", n)
	}
	if n := w.server.count("resources/read"); n != 2 {
		t.Errorf("the server was asked %d times for what is private, want twice", n)
	}
	rd := w.ask(alice, "tools/call", "ask", elicits).round(t)
	if got := w.ask(bob, "tools/call", "ask", rd.answering("Mallory")); got.code() != -32602 {
		t.Errorf("a stolen state: %s, want -32602", got.body)
	}
}
