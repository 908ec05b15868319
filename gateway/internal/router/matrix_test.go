package router

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/mcpbridge/mcpbridge/internal/settings"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/trust/policy"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// TestIsolationMatrix has two principals at the same servers, for clients and servers of
// both eras. Each leg is one way from the one to the other that must not exist: what is
// another's is answered as what nobody has.
func TestIsolationMatrix(t *testing.T) {
	t.Parallel()
	const l, m = spec.Legacy, spec.Modern
	both := []spec.Era{l, m}
	for _, leg := range []struct {
		name          string
		fronts, backs []spec.Era
		run           func(w *world, front spec.Era)
	}{
		{"upstream session", both, []spec.Era{l}, legUpstreamSession},
		{"description", both, both, legDescription},
		{"session id", []spec.Era{l}, both, legSessionID},
		{"session fixation", []spec.Era{l}, both, legFixation},
		{"event id", []spec.Era{l}, both, legEventID},
		{"message endpoint", []spec.Era{l}, both, legMessageEndpoint},
		{"WebSocket", both, both, legSocket},
		{"stream", both, both, legStream},
		{"filter", both, []spec.Era{m}, legFilter},
		{"parked call", []spec.Era{m}, both, legState},
		{"S-01 state of another server", []spec.Era{m}, both, legStateOfAnotherServer},
		{"answer", []spec.Era{l}, both, legAnswer},
		{"cache", []spec.Era{m}, both, legCache},
		{"T-03 task", []spec.Era{m}, []spec.Era{m}, legTask},
		{"T-03 task of a session", []spec.Era{l}, []spec.Era{l}, legSessionTask},
		{"places", both, both, legPlaces},
		{"policy", both, both, legPolicy},
		{"login", both, both, legLogin},
		{"own login", both, both, legOwnLogin},
		{"log", both, both, legLog},
	} {
		for _, front := range leg.fronts {
			for _, back := range leg.backs {
				t.Run(leg.name+" "+front.String()+" "+back.String(), func(t *testing.T) {
					leg.run(newWorld(t, back, settings.IsolatePrincipal), front)
				})
			}
		}
	}
}

func legUpstreamSession(w *world, front spec.Era) {
	a, b := w.client(alice, front), w.client(bob, front)
	if of, and := a.upstreamSession(), b.upstreamSession(); of == and || a.upstreamSession() != of {
		w.t.Errorf("alice reaches session %s, bob %s", of.name, and.name)
	}
}

// A server may tell each what is theirs, and still call it public.
func legDescription(w *world, front spec.Era) {
	describe := func(who string) string {
		c := w.client(who, front)
		got := c.ask("server/discover", "", "")
		if front == spec.Legacy {
			got = w.sendTo(w.t, http.MethodPost, c.path, hello, "", c.headers("", ""))
		}
		_, text, _ := strings.Cut(got.body, `"instructions":"`)
		text, _, _ = strings.Cut(text, `"`)
		return text
	}
	if a, b := describe(alice), describe(bob); a == b || !strings.HasPrefix(a, "for ") || !strings.HasPrefix(b, "for ") {
		w.t.Errorf("alice is told %q, bob %q, want each what is theirs", a, b)
	}
}

// Whoever has the id of another's session can't use it, end it, or find out that it is one.
func legSessionID(w *world, front spec.Era) {
	a, thief := w.client(alice, front), w.client(bob, front)
	unknown := *thief
	thief.session, unknown.session = a.session, "1"+a.session[1:len(a.session)-3]+"AAA"
	get := func(c *tenant) answer {
		res := w.openAt(w.t, http.MethodGet, c.path, "", c.headers("", ""))
		defer res.Body.Close()
		if res.StatusCode == http.StatusOK {
			w.t.Fatalf("GET with the session id of %s opens a stream", c.who)
		}
		text, _ := io.ReadAll(res.Body)
		return answer{res.StatusCode, res.Header, string(text)}
	}
	end := func(c *tenant) answer { return w.sendTo(w.t, http.MethodDelete, c.path, "", "", c.headers("", "")) }
	const batch = `[{"jsonrpc":"2.0","id":1,"method":"ping"}]`
	for what, do := range map[string]func(*tenant) answer{
		"POST": func(c *tenant) answer { c.ids = 0; return c.tool("whoami", "") },
		"POST of a notification": func(c *tenant) answer {
			return c.post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
		},
		"batch": func(c *tenant) answer { return c.post(batch) }, "GET": get, "DELETE": end,
	} {
		got := do(thief)
		w.same(what+" with another's session id", got, do(&unknown))
		if got.status != http.StatusNotFound {
			w.t.Errorf("%s with another's session id = %d %s, want 404", what, got.status, got.body)
		}
	}
	if got := a.ask("ping", "", ""); got.status != 200 {
		w.t.Errorf("the session's own principal gets %d %s, want it to go on", got.status, got.body)
	}
}

// A session has the id that the gateway gave it, whatever its client, or somebody for it,
// came with (CWE-384).
func legFixation(w *world, front spec.Era) {
	a := w.client(alice, front)
	victim := &tenant{w: w, t: w.t, who: bob, era: front, path: a.path, session: a.session}
	got := victim.post(hello)
	given := got.header.Get("Mcp-Session-Id")
	if given == "" || given == a.session {
		w.t.Errorf("initialize with another's session id opens %q, want one of its own", given)
	}
	const chosen = "1chosen-by-the-attacker"
	victim.session = chosen
	if got := victim.post(hello); got.header.Get("Mcp-Session-Id") == chosen {
		w.t.Error("initialize opens a session by an id that its client chose")
	}
	if got := victim.ask("ping", "", ""); got.status != http.StatusNotFound {
		w.t.Errorf("a session by a chosen id = %d %s, want 404", got.status, got.body)
	}
	a.session = given
	if got := a.ask("ping", "", ""); got.status != http.StatusNotFound {
		w.t.Errorf("alice uses the session that bob was given: %d %s", got.status, got.body)
	}
}

// An event id names an event of the session that it is sent with, whosever it was.
func legEventID(w *world, front spec.Era) {
	a, b := w.client(alice, front), w.client(bob, front)
	l := a.follow("note://private")
	a.change("note://private")
	l.want("note://private")
	_ = l.res.Body.Close()
	l.wantEnd()
	h := b.headers("", "")
	h.Set("Last-Event-ID", l.last[:strings.LastIndex(l.last, ".")]+".0")
	mine := newLines(w.t, w.openAt(w.t, http.MethodGet, b.path, "", h))
	b.subscribe("note://todo")
	b.change("note://todo")
	mine.want("note://todo")
	mine.wantNone("private")
}

func legMessageEndpoint(w *world, front spec.Era) {
	a, b := &tenant{w: w, t: w.t, who: alice, era: front}, &tenant{w: w, t: w.t, who: bob, era: front}
	stream := w.openEvents(w.t, "/sse/peer", http.Header{"Authorization": a.headers("", "")["Authorization"]})
	post := func(c *tenant, path string) answer {
		return w.sendTo(w.t, http.MethodPost, path, `{"jsonrpc":"2.0","id":6,"method":"ping"}`, "", c.headers("", ""))
	}
	got := post(b, stream.messages)
	w.same("POST to another's endpoint", got, post(b, stream.messages[:len(stream.messages)-3]+"AAA"))
	if got.status != http.StatusNotFound {
		w.t.Errorf("POST to another's endpoint = %d %s, want 404", got.status, got.body)
	}
	if got := post(a, strings.Replace(stream.messages, "/peer", "/"+other, 1)); got.status != http.StatusNotFound {
		w.t.Errorf("POST to the session at another server = %d %s, want 404", got.status, got.body)
	}
	stream.send(`{"jsonrpc":"2.0","id":7,"method":"ping"}`)
	stream.want(`"id":7`) // and no 6
}

// A WebSocket is its principal's, whatever it names.
func legSocket(w *world, front spec.Era) {
	a := w.client(alice, front)
	socket := func(who string) *websocket.Conn {
		h := http.Header{"Authorization": {"Bearer " + tokenOf(who)}}
		if a.session != "" {
			h.Set("Mcp-Session-Id", a.session)
		}
		ws, resp := w.raw(w.t, h)
		if ws == nil {
			w.t.Fatalf("the handshake of %s: %d", who, resp.StatusCode)
		}
		_ = ws.SetReadDeadline(time.Now().Add(patience))
		if front == spec.Legacy {
			exchange(w.t, ws, hello)
		}
		return ws
	}
	ofAlice, ofBob := socket(alice), socket(bob)
	call := a.body("tools/call", `"name":"whoami"`)
	if mine, others := exchange(w.t, ofAlice, call), exchange(w.t, ofBob, call); w.legacy != nil && mine == others {
		w.t.Errorf("both reach the session of %s", mine)
	}
	if front == spec.Modern {
		rd := a.tool("ask", elicitArgs).round(w.t)
		stolen := exchange(w.t, ofBob, a.body("tools/call", rd.answering("Mallory")))
		if !strings.Contains(stolen, `"code":-32602`) || !strings.Contains(stolen, "requestState is not valid") {
			w.t.Errorf("a stolen state on bob's WebSocket: %s, want it refused", stolen)
		}
	}
	if ws, resp := w.raw(w.t, http.Header{}); ws != nil || resp.StatusCode != http.StatusUnauthorized {
		w.t.Errorf("a WebSocket without a credential: %d, want 401", resp.StatusCode)
	}
}

// exchange sends a message, and returns the next that comes.
func exchange(t *testing.T, ws *websocket.Conn, text string) string {
	t.Helper()
	if err := ws.WriteMessage(websocket.TextMessage, []byte(text)); err != nil {
		t.Fatal(err)
	}
	_, msg, err := ws.ReadMessage()
	if err != nil {
		t.Fatalf("%s is answered by %v", text, err)
	}
	return string(msg)
}

// What a server tells on the one's session, or stream, the other does not hear.
func legStream(w *world, front spec.Era) {
	a, b := w.client(alice, front), w.client(bob, front)
	ofAlice, ofBob := a.follow("note://shared"), b.follow("note://shared")
	a.change("note://shared")
	ofAlice.want("note://shared")
	b.change("note://todo")
	ofBob.want("note://todo")
	for _, msg := range ofBob.seen {
		if strings.Contains(msg, "note://shared") && !strings.Contains(msg, "acknowledged") {
			w.t.Errorf("bob hears what alice's session was told: %s", msg)
		}
	}
}

// What the server grants one of them is not granted to the other.
func legFilter(w *world, front spec.Era) {
	a, b := w.client(alice, front), w.client(bob, front)
	a.follow("note://private")
	if front == spec.Legacy {
		if got := b.ask("resources/subscribe", "", `"uri":"note://private"`); got.code() != spec.CodeInvalidParams {
			w.t.Errorf("bob subscribes to what the server grants alice alone: %s", got.body)
		}
		return
	}
	if granted := b.follow("note://private").seen[0]; strings.Contains(granted, "private") || !strings.Contains(granted, "note://todo") {
		w.t.Errorf("bob is granted %s, want what the server grants him", granted)
	}
}

const elicitArgs = `,"arguments":{"method":"elicitation/create"}`

// A requestState is of one principal's one call; a forged one, a replayed one and
// another's are all the same.
func legState(w *world, _ spec.Era) {
	a, b := w.client(alice, spec.Modern), w.client(bob, spec.Modern)
	rd := a.tool("ask", elicitArgs).round(w.t)
	retry := func(c *tenant, params string) answer {
		c.ids = 50
		return c.ask("tools/call", "ask", params)
	}
	forged, raw := rd, rd
	forged.State = "forged"
	raw.State, _, _ = strings.Cut(rd.State, "~")
	want := retry(b, forged.answering("Mallory"))
	if want.status != http.StatusBadRequest || want.code() != spec.CodeInvalidParams {
		w.t.Errorf("a forged state = %d %s, want 400 and -32602", want.status, want.body)
	}
	w.same("another's state", retry(b, rd.answering("Mallory")), want)
	w.same("another's state without its tag", retry(b, raw.answering("Mallory")), want)
	w.same("a state that is no string", retry(b, elicits+`,"requestState":7`), want)
	if w.modern != nil {
		if got := retry(b, strings.Replace(raw.answering("Mallory"), `"requestState"`, `"RequestState"`, 1)); got.code() != spec.CodeInvalidParams {
			w.t.Errorf("another's state in another case = %s", got.body)
		}
	}
	if got := retry(a, rd.answering("Ada")); !strings.Contains(got.body, "Ada") {
		w.t.Errorf("alice's own answer = %d %s", got.status, got.body)
	}
	if w.legacy != nil {
		w.same("a replayed state", retry(a, rd.answering("Ada")), want)
		return
	}
	w.modern.mu.Lock()
	defer w.modern.mu.Unlock()
	if len(w.modern.states) != 1 || w.modern.states[0] != raw.State || raw.State == rd.State {
		w.t.Errorf("the server got the states %q, want its own alone: %s", w.modern.states, raw.State)
	}
}

// A server's state is not taken to another server by the gateway, whose credential may
// open more there (confused deputy).
func legStateOfAnotherServer(w *world, _ spec.Era) {
	here, there := w.clientOf(alice, spec.Modern, "peer"), w.clientOf(alice, spec.Modern, other)
	rd := here.tool("ask", elicitArgs).round(w.t)
	forged := rd
	forged.State = "forged"
	want := there.ask("tools/call", "ask", forged.answering("Ada"))
	there.ids--
	w.same("the state of another server", there.ask("tools/call", "ask", rd.answering("Ada")), want)
}

// Who answers a question in a session of their own answers none of another's.
func legAnswer(w *world, front spec.Era) {
	a, b := w.client(alice, front), w.client(bob, front)
	call := newLines(w.t, w.openAt(w.t, http.MethodPost, a.path, a.body("tools/call", elicits), a.headers("", "")))
	call.want("elicitation/create")
	id := string(wire.Get([]byte(call.seen[len(call.seen)-1]), "id"))
	reply := func(name string) string {
		return `{"jsonrpc":"2.0","id":` + id + `,"result":{"action":"accept","content":{"name":"` + name + `"}}}`
	}
	b.post(reply("Mallory"))
	thief := *b
	thief.session = a.session
	if got := thief.post(reply("Mallory")); got.status != http.StatusNotFound {
		w.t.Errorf("an answer in another's session = %d %s, want 404", got.status, got.body)
	}
	a.post(reply("Ada"))
	call.want(`"result"`)
	if last := call.seen[len(call.seen)-1]; !strings.Contains(last, "Ada") {
		w.t.Errorf("alice's call = %s, want her own answer", last)
	}
}

func legCache(w *world, _ spec.Era) {
	a, b := w.client(alice, spec.Modern), w.client(bob, spec.Modern)
	tool := func(c *tenant) string {
		got := c.ask("tools/list", "", "").body
		name, _, _ := strings.Cut(got[strings.Index(got, `"name":`):], ",")
		return name
	}
	first := tool(a)
	if others := tool(b); others == first {
		w.t.Errorf("bob is shown what alice was: %s", others)
	}
	if again := tool(a); w.legacy != nil && again != first {
		w.t.Errorf("alice is shown %s, and %s before", again, first)
	}
}

// Another's task is answered as one that nobody has, in requests and filters, by whatever
// spelling a server might take for its name.
func legTask(w *world, _ spec.Era) {
	a, b := w.client(alice, spec.Modern), w.client(bob, spec.Modern)
	a.tool("task", "")
	const task, missing = `"task-1"`, `"none-1"`
	for _, method := range []string{spec.MethodTaskGet, spec.MethodTaskCancel} {
		ask := func(c *tenant, params string) answer {
			c.ids = 1
			return c.ask(method, strings.Trim(params[strings.Index(params, ":")+1:], `"`), params)
		}
		got, want := ask(b, `"taskId":`+task), ask(b, `"taskId":`+missing)
		want.body = strings.ReplaceAll(want.body, "none-1", "task-1")
		w.same(method+" of another's task", got, want)
		if got := ask(a, `"taskId":`+task); !strings.Contains(got.body, "secret") {
			w.t.Errorf("%s of the own task = %s", method, got.body)
		}
		b.ids = 1
		if got := b.ask(method, "none-1", `"taskId":`+missing+`,"TaskId":`+task); got.code() != spec.CodeInvalidParams || strings.Contains(got.body, "secret") {
			w.t.Errorf("%s of another's task in another case = %s", method, got.body)
		}
	}
	for _, filter := range []string{`"taskIds":["task-1"]`, `"taskIds":["mine"],"taskIds":["task-1"]`, `"t\u0061skIds":["task-1"]`} {
		l := newLines(w.t, w.openAt(w.t, http.MethodPost, b.path, b.body("subscriptions/listen", `"notifications":{`+filter+`}`), b.headers("subscriptions/listen", "")))
		l.want("acknowledged")
		l.wantNone("task-1")
	}
}

// The tasks of a legacy session are its principal's, though the server gives them to every
// session.
func legSessionTask(w *world, _ spec.Era) {
	a, again, b := w.client(alice, spec.Legacy), w.client(alice, spec.Legacy), w.client(bob, spec.Legacy)
	made := a.tool("whoami", `,"task":{"ttl":60000}`)
	if !strings.Contains(made.body, `"taskId":"task-1"`) {
		w.t.Fatalf("the call = %s, want a task", made.body)
	}
	b.tool("whoami", `,"task":{}`)
	for _, method := range []string{"tasks/get", "tasks/result", "tasks/cancel"} {
		b.ids = 0
		got := b.ask(method, "", `"taskId":"task-1"`)
		b.ids = 0
		want := b.ask(method, "", `"taskId":"none-1"`)
		want.body = strings.ReplaceAll(want.body, "none-1", "task-1")
		w.same(method+" of another's task", got, want)
		if got := b.ask(method, "", `"taskId":"none-1","taskid":"task-1"`); got.code() != spec.CodeInvalidParams {
			w.t.Errorf("%s of another's task in another case = %s", method, got.body)
		}
		if got := again.ask(method, "", `"taskId":"task-1"`); !strings.Contains(got.body, "secret") {
			w.t.Errorf("%s in another session of the principal = %s, want the task", method, got.body)
		}
	}
	for c, want := range map[*tenant]string{a: "task-1", b: "task-2"} {
		got := c.ask("tasks/list", "", "")
		if strings.Count(got.body, `"taskId"`) != 1 || !strings.Contains(got.body, want) || !strings.Contains(got.body, `"nextCursor":"c"`) {
			w.t.Errorf("tasks/list of %s = %s, want %s alone", c.who, got.body, want)
		}
	}
}

// Who has used up what one may have leaves the others theirs.
func legPlaces(w *world, front spec.Era) {
	b := w.client(bob, front)
	switch {
	case front == spec.Legacy:
		for range 6 {
			w.client(alice, front)
		}
		if got := b.ask("ping", "", ""); got.status != 200 || w.limits.limits("client_sessions") == 0 {
			w.t.Errorf("bob's session = %d %s after alice has opened too many", got.status, got.body)
		}
	case w.legacy != nil:
		a := w.client(alice, front)
		a.tool("ask", elicitArgs).round(w.t)
		if got := a.tool("ask", elicitArgs); strings.Contains(got.body, "input_required") {
			w.t.Errorf("alice's second call = %s, want it refused at her bound", got.body)
		}
		b.tool("ask", elicitArgs).round(w.t)
	default:
		for n, who := range []string{alice, alice, alice, alice, alice, bob} {
			l := newLines(w.t, w.openAt(w.t, http.MethodPost, b.path, (&tenant{era: front}).body("subscriptions/listen", `"notifications":{"toolsListChanged":true}`),
				(&tenant{who: who, era: front}).headers("subscriptions/listen", "")))
			if l.want("jsonrpc"); n == 4 != strings.Contains(l.seen[0], "limits.streams_each") {
				w.t.Errorf("listen stream %d, of %s: %s", n, who, l.seen[0])
			}
			ws, _ := w.raw(w.t, http.Header{"Authorization": {"Bearer " + tokenOf(who)}})
			if got, want := ws != nil, n != 4; got != want {
				w.t.Errorf("WebSocket %d, of %s: %v, want %v", n, who, got, want)
			}
		}
	}
}

// What one may do opens nothing to the other: neither a list that was kept for the one, nor
// a call that waits for the one's answer, even where they share a session upstream.
func legPolicy(w *world, front spec.Era) {
	for _, isolation := range []settings.Isolation{settings.IsolatePrincipal, settings.IsolateNothing} {
		w := newWorldWith(w.t, w.era, isolation, func(o *Options) {
			for i := range o.Servers {
				o.Servers[i].Access.Policy = policy.New(false, []policy.Rule{{Principals: []string{alice}}, {Principals: []string{bob}, Tools: []string{"whoami"}}})
			}
		})
		a, b := w.client(alice, front), w.client(bob, front)
		for range 2 {
			if got := a.ask("tools/list", "", ""); !strings.Contains(got.body, `"name"`) {
				w.t.Errorf("alice's list = %s", got.body)
			}
			if got := b.ask("tools/list", "", ""); !strings.Contains(got.body, `"tools":[]`) {
				w.t.Errorf("bob's list = %s, want nothing that is denied", got.body)
			}
		}
		if got := b.tool("whoami", ""); got.code() != 0 {
			w.t.Errorf("bob's own tool = %s", got.body)
		}
		if got := b.tool("denied", ""); !strings.Contains(got.body, "policy of server") {
			w.t.Errorf("bob's call of what is denied = %d %s", got.status, got.body)
		}
		if front != spec.Modern {
			continue
		}
		rd := a.tool("ask", elicitArgs).round(w.t)
		if got := b.ask("tools/call", "ask", rd.answering("Mallory")); got.code() == 0 {
			w.t.Errorf("bob goes on with alice's call: %d %s", got.status, got.body)
		}
	}
}

// A server that is used with the login of the one is no server of the other's: not even what
// it says of itself, which the gateway has asked with that login, is told.
func legLogin(w *world, front spec.Era) {
	w = newWorldWith(w.t, w.era, settings.IsolatePrincipal, func(o *Options) { o.Servers[0].OnlyFor = alice })
	w.g.Start()
	w.client(alice, front).tool("whoami", "")
	b := &tenant{w: w, t: w.t, who: bob, era: front, path: "/mcp/peer"}
	asks := []func() answer{
		func() answer { return b.ask("server/discover", "", "") },
		func() answer { return b.tool("whoami", "") },
		func() answer {
			return b.ask("subscriptions/listen", "", `"notifications":{"toolsListChanged":true}`)
		},
	}
	if front == spec.Legacy {
		asks = []func() answer{func() answer { return b.post(hello) }}
	}
	for _, ask := range asks {
		if got := ask(); !strings.Contains(got.body, "on behalf of another principal") || got.header.Get("Mcp-Session-Id") != "" {
			w.t.Errorf("bob's request = %d %s, want it refused", got.status, got.body)
		}
	}
	w.clientOf(bob, front, other).tool("whoami", "")
}

// The log says whose each request was.
func legLog(w *world, front spec.Era) {
	for _, who := range []string{alice, bob} {
		w.client(who, front).tool("tool-of-"+who, "")
		w.eventually(w.t, "the line of "+who, func() bool {
			for line := range strings.Lines(w.logs.String()) {
				if strings.Contains(line, "name=tool-of-"+who) {
					return strings.Contains(line, fmt.Sprintf("principal=%s ", who))
				}
			}
			return false
		})
	}
	if logs := w.logs.String(); strings.Contains(logs, tokenOf(alice)) || strings.Contains(logs, tokenOf(bob)) {
		w.t.Errorf("the log has a token: %s", logs)
	}
}

// Isolation that the configuration gives up: sessions upstream are shared, and with them
// what the server says in them. What a client holds is its principal's all the same.
func TestSharedIsolationIsTheException(t *testing.T) {
	t.Parallel()
	w := newWorld(t, spec.Legacy, settings.IsolateNothing)
	if w.client(alice, spec.Modern).upstreamSession() != w.client(bob, spec.Modern).upstreamSession() {
		t.Error("two sessions upstream, want one for all")
	}
	for name, leg := range map[string]struct {
		run         func(*world, spec.Era)
		front, back spec.Era
	}{
		"session id":        {legSessionID, spec.Legacy, spec.Legacy},
		"message endpoint":  {legMessageEndpoint, spec.Legacy, spec.Legacy},
		"parked call":       {legState, spec.Modern, spec.Legacy},
		"state of a server": {legState, spec.Modern, spec.Modern},
		"answer":            {legAnswer, spec.Legacy, spec.Legacy},
		"task":              {legTask, spec.Modern, spec.Modern},
		"task of a session": {legSessionTask, spec.Legacy, spec.Legacy},
		"log":               {legLog, spec.Modern, spec.Legacy},
	} {
		t.Run(name, func(t *testing.T) { leg.run(newWorld(t, leg.back, settings.IsolateNothing), leg.front) })
	}
}
