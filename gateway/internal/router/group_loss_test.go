package router

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/mcpbridge/mcpbridge/gateway/internal/group"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/legacytest"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/names"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	legacyback "github.com/mcpbridge/mcpbridge/legacy/back"
)

// A mortalServer is a legacy server of which all sessions can be killed. It has resources that
// change, and tells who has subscribed to them.
type mortalServer struct {
	t    *testing.T
	name string

	mu       sync.Mutex
	sessions map[*legacytest.Server]map[string]bool // with what they have subscribed to
	opened   int
	heard    []string // what came in, but for the handshake
	dead     bool     // no session can be opened
	calls    int
	serve    func(*legacytest.ServerCall) string // see hold
	versions map[string]int64
}

func newMortalServer(t *testing.T, name string) *mortalServer {
	return &mortalServer{t: t, name: name, sessions: make(map[*legacytest.Server]map[string]bool), versions: make(map[string]int64)}
}

// open returns a back of the server.
func (s *mortalServer) open(o *Options) func(mcp.Changes) (mcp.Back, error) {
	return func(c mcp.Changes) (mcp.Back, error) {
		opts := memberOptions(s.name, "", o, c)
		opts.Settings.Subresources = fanout.SubresourcesAsSent
		return legacyback.New(legacyback.Options{Options: opts, Dial: s.dial})
	}
}

func (s *mortalServer) dial(context.Context) (transport.Conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dead {
		return nil, fmt.Errorf("%s is dead", s.name)
	}
	near, far := transport.NewPipe()
	a := legacytest.NewServer(s.t, far)
	a.Call = s.serveCall
	a.On = map[string]func(wire.Message) string{
		"tools/list": func(wire.Message) string { return `{"tools":[{"name":"x","inputSchema":{"type":"object"}}]}` },
		"resources/list": func(wire.Message) string {
			return `{"resources":[{"name":"a","uri":"` + s.name + `:a"},{"name":"b","uri":"` + s.name + `:b"}]}`
		},
		"resources/templates/list": func(wire.Message) string { return `{"resourceTemplates":[]}` },
	}
	for _, method := range []string{"resources/subscribe", "resources/unsubscribe", "logging/setLevel"} {
		a.On[method] = func(m wire.Message) string { return s.take(a, m) }
	}
	a.Heard = func(m wire.Message) { s.take(a, m) }
	s.sessions[a] = make(map[string]bool)
	s.opened++
	go func() { // ends with the connection
		a.Serve()
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.sessions, a)
	}()
	return near, nil
}

// serveCall answers a call, as hold says if it was called.
func (s *mortalServer) serveCall(c *legacytest.ServerCall) string {
	s.mu.Lock()
	s.calls++
	serve := s.serve
	s.mu.Unlock()
	if serve != nil {
		return serve(c)
	}
	return say("of " + s.name)
}

// hold has calls answered by a function of the test.
func (s *mortalServer) hold(serve func(*legacytest.ServerCall) string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.serve = serve
}

// sessionsOpened returns how many sessions were opened.
func (s *mortalServer) sessionsOpened() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.opened
}

func (s *mortalServer) called() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls
}

func (s *mortalServer) take(a *legacytest.Server, m wire.Message) string {
	uri, _ := wire.GetString(m.Params, "uri")
	level, _ := wire.GetString(m.Params, "level")
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heard = append(s.heard, strings.TrimSpace(m.Method+" "+uri+level))
	if of := s.sessions[a]; of != nil && m.Method == "resources/subscribe" {
		of[uri] = true
	}
	return `{}`
}

// count returns how often something was heard.
func (s *mortalServer) count(what string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, text := range s.heard {
		if text == what {
			n++
		}
	}
	return n
}

// change has a resource change: who has subscribed to it is told.
func (s *mortalServer) change(uri string) { s.changeAs(uri, uri) }

// changeAs has a part of a resource change.
func (s *mortalServer) changeAs(uri, as string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.versions[uri]++
	for a, uris := range s.sessions {
		if uris[uri] {
			a.Send(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":%q}}`, as)
		}
	}
}

// log logs outside of calls, in all sessions.
func (s *mortalServer) log(level, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for a := range s.sessions {
		a.Send(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":%q,"logger":"l","data":%q}}`, level, text)
	}
}

// live returns how many sessions are open.
func (s *mortalServer) live() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.sessions)
}

// version returns how often a resource has changed.
func (s *mortalServer) version(uri string) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.versions[uri]
}

// kill ends all sessions. None can be opened before revive if dead is set.
func (s *mortalServer) kill(dead bool) {
	s.mu.Lock()
	s.dead = dead
	all := s.sessions
	s.sessions = make(map[*legacytest.Server]map[string]bool)
	s.mu.Unlock()
	for a := range all {
		a.CloseConn()
	}
}

func (s *mortalServer) revive() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dead = false
}

// A lossRig is a gateway with a group of two mortal servers and a modern one.
type lossRig struct {
	*rig
	files, docs *mortalServer
	options     Options
}

func newLossRig(t *testing.T, change func(*Options)) *lossRig {
	r := &lossRig{files: newMortalServer(t, "files"), docs: newMortalServer(t, "docs")}
	fresh := newCredulousPeer(t)
	r.rig = newRig(t, func(o *Options) {
		all := groupOf("files", "docs", "new")
		all.Patience = group.DefaultPatience
		o.Servers = []ServerOptions{
			{Name: "files", Open: r.files.open(o)},
			{Name: "docs", Open: r.docs.open(o)},
			{Name: "new", Open: modernMember("new", fresh, o)},
			{Name: "all", Group: all},
		}
		if change != nil {
			change(o)
		}
		r.options = *o
	})
	t.Cleanup(fresh.CloseClientConnections)
	return r
}

// order waits for messages that have these texts, and wants them to come in that order, with
// others between them.
func (l *lines) order(texts ...string) {
	l.t.Helper()
	for _, text := range texts {
		l.want(text)
	}
}

const (
	toolsOfAll  = `"method":"notifications/tools/list_changed"`
	lossOfFiles = `"method":"notifications/message","params":{"level":"warning","logger":"files","data":"server \"files\" has another session`
)

func updateOf(uri string) string {
	return `"method":"notifications/resources/updated","params":{"uri":"` + uri + `"`
}

// A legacy client goes on when a member loses its session: the lists, its subscriptions and its
// log level are back, and it is told so, with the member's name.
func TestG14LostSessionIsRebuiltAlone(t *testing.T) {
	t.Parallel()
	r := newLossRig(t, nil)
	v := r.visit(t, spec.Legacy, "all")
	get := newLines(t, r.openAt(t, http.MethodGet, v.path, "", v.headers("", "")))
	for _, uri := range []string{"files:a", "docs:a"} {
		if got := v.ask("resources/subscribe", "", `"uri":"`+uri+`"`); got.code() != 0 {
			t.Fatalf("subscribing to %s = %s", uri, got.body)
		}
	}
	v.ask("logging/setLevel", "", `"level":"info"`)
	for range 3 {
		if got := v.call("files__x", ""); !strings.Contains(got.body, "of files") {
			t.Fatalf("a call = %s", got.body)
		}
		r.files.change("files:a")
		get.want(updateOf("files:a"))
		before := r.files.count("logging/setLevel info")
		r.files.kill(false)
		get.order(updateOf("files:a"), lossOfFiles)
		if !slices.ContainsFunc(get.seen, func(text string) bool { return strings.Contains(text, toolsOfAll) }) {
			t.Errorf("told %q, want the list of tools before", get.seen)
		}
		get.seen = nil
		if got := v.call("files__x", ""); !strings.Contains(got.body, "of files") {
			t.Fatalf("a call after the loss = %s", got.body)
		}
		if n := r.files.count("logging/setLevel info"); n != before+1 {
			t.Errorf("the level was set %d times, want once more", n-before)
		}
		r.docs.change("docs:a")
		get.want(updateOf("docs:a"))
	}
	if r.docs.opened != 1 || r.files.opened != 4 {
		t.Errorf("%d sessions with docs, %d with files, want 1 and 4", r.docs.opened, r.files.opened)
	}
	v.post(`{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`)
	r.eventually(t, "members are told of changed roots", func() bool {
		return r.files.count("notifications/roots/list_changed") == 1 && r.docs.count("notifications/roots/list_changed") == 1
	})
	if got := r.sendTo(t, http.MethodDelete, v.path, "", "", v.headers("", "")); got.status >= 300 {
		t.Errorf("DELETE = %d %s", got.status, got.body)
	}
	get.wantEnd()
	r.wantNothingLeft(t)
	r.eventually(t, "the sessions with members have ended", func() bool { return r.files.live() == 0 && r.docs.live() == 0 })
}

// What a legacy member logs outside of calls reaches each legacy client of the group once, of the
// level that it has set, after its session was lost, too; and no modern client, as at the member's
// own endpoint.
func TestG15MessagesOutsideOfCalls(t *testing.T) {
	t.Parallel()
	r := newLossRig(t, nil)
	listen := newLines(t, r.openAt(t, http.MethodPost, "/mcp/all",
		modernBody("7", spec.MethodListen, `"notifications":{"toolsListChanged":true,"resourceSubscriptions":["docs:a"]}`), modernHeaders(spec.MethodListen, "")))
	listen.want(`"resourceSubscriptions":["docs:a"]`)
	levels := []string{"info", "warning"}
	gets := make(map[string]*lines)
	for i, level := range levels {
		v := r.visit(t, spec.Legacy, "all")
		gets[level] = newLines(t, r.openAt(t, http.MethodGet, v.path, "", v.headers("", "")))
		v.ask("logging/setLevel", "", `"level":"`+level+`"`)
		for _, s := range []*mortalServer{r.files, r.docs} {
			r.eventually(t, "its sessions have the level", func() bool { return s.count("logging/setLevel "+level) == 1 })
			r.eventually(t, "its sessions are followed", func() bool {
				s.log("alert", "followed")
				select {
				case data := <-gets[level].data:
					return strings.Contains(data, s.name+"/l")
				default:
					return false
				}
			})
		}
		if n := r.docs.sessionsOpened(); n < i+1 {
			t.Errorf("%d sessions, want one for each client", n)
		}
	}
	message := func(of, level, text string) string {
		return `"params":{"level":"` + level + `","logger":"` + of + `/l","data":"` + text + `"}`
	}
	for n := range 3 {
		text := fmt.Sprint("in round ", n)
		for _, s := range []*mortalServer{r.files, r.docs} {
			s.log("info", text)
			s.log("error", text)
			gets["info"].order(message(s.name, "info", text), message(s.name, "error", text))
			gets["warning"].want(message(s.name, "error", text))
		}
		r.files.kill(n == 1)
		r.docs.log("alert", text) // nobody waits for the other
		for _, level := range levels {
			gets[level].want(message("docs", "alert", text))
		}
		r.files.revive()
		for _, level := range levels {
			gets[level].want(lossOfFiles)
			r.eventually(t, "its session has the level again", func() bool { return r.files.count("logging/setLevel "+level) == n+2 })
		}
	}
	for _, level := range levels {
		all := strings.Join(gets[level].seen, "\n")
		if got := strings.Count(all, message("docs", "error", "in round 0")); got > 1 || level == "warning" && strings.Contains(all, `"level":"info"`) {
			t.Errorf("at %s it was told\n%s", level, all)
		}
	}
	r.docs.change("docs:a")
	listen.want(updateOf("docs:a"))
	if all := strings.Join(listen.seen, "\n"); strings.Contains(all, "notifications/message") {
		t.Errorf("a listen stream was told %s", all)
	}
}

// A listen stream of a group goes on when a member loses its sessions, is replaced, or has gone;
// what the members that live tell comes all the time.
func TestG13StreamsOutliveMembers(t *testing.T) {
	t.Parallel()
	r := newLossRig(t, nil)
	listen := newLines(t, r.openAt(t, http.MethodPost, "/mcp/all",
		modernBody("7", spec.MethodListen, `"notifications":{"toolsListChanged":true,"resourceSubscriptions":["docs:a","files:a"]}`), modernHeaders(spec.MethodListen, "")))
	listen.want(`"notifications":{"toolsListChanged":true,"resourceSubscriptions":["docs:a","files:a"]},`)
	alive := func() {
		t.Helper()
		r.docs.change("docs:a")
		listen.want(updateOf("docs:a"))
	}
	alive()
	r.files.kill(false)
	listen.want(updateOf("files:a"))
	alive()

	r.files.kill(true)
	alive()
	r.files.revive()
	listen.want(updateOf("files:a"))

	o := r.options
	kept := func(servers ...string) Options {
		o.Servers = slices.Clone(r.options.Servers)
		for i := range o.Servers {
			o.Servers[i].Kept = slices.Contains(servers, o.Servers[i].Name)
			if o.Servers[i].Kept && o.Servers[i].Name != "all" {
				o.Servers[i] = ServerOptions{Name: o.Servers[i].Name, Kept: true}
			}
		}
		return o
	}
	r.reload(t, kept("docs", "new", "all"))
	listen.want(updateOf("files:a"))
	alive()
	r.files.change("files:a")
	listen.want(updateOf("files:a"))

	without := kept("files", "docs", "new", "all")
	without.Servers[3].Group = groupOf("docs", "new")
	r.reload(t, without)
	listen.order(toolsOfAll, updateOf("files:a"))
	alive()
	listen.res.Body.Close()
	r.wantNothingLeft(t)
}

// What a member hides is in no acknowledgment and in no update of the group, and can't be
// subscribed to, whichever way.
func TestG13MembersHideWhatTheyHide(t *testing.T) {
	t.Parallel()
	r := newLossRig(t, naming(t, names.Options{Resources: names.Part{Deny: []string{"files:b", "files:a/secret*", "unlisted:*"}}}))
	listen := newLines(t, r.openAt(t, http.MethodPost, "/mcp/all",
		modernBody("7", spec.MethodListen, `"notifications":{"resourceSubscriptions":["files:b","FILES:b","docs:a","unlisted:1","files:a"]}`), modernHeaders(spec.MethodListen, "")))
	listen.want(`"notifications":{"resourceSubscriptions":["docs:a","files:a"]},`)
	v := r.visit(t, spec.Legacy, "all")
	for _, uri := range []string{"files:b", "unlisted:1"} {
		if got := v.ask("resources/subscribe", "", `"uri":"`+uri+`"`); got.code() == 0 {
			t.Errorf("subscribing to %s = %s, want it refused", uri, got.body)
		}
	}
	if got := v.ask("resources/subscribe", "", `"uri":"files:a"`); got.code() != 0 {
		t.Fatalf("subscribing to files:a = %s", got.body)
	}
	get := newLines(t, r.openAt(t, http.MethodGet, v.path, "", v.headers("", "")))
	r.files.changeAs("files:a", "files:a/secret/1")
	r.files.changeAs("files:a", "files:a/open")
	for _, l := range []*lines{listen, get} {
		l.want(updateOf("files:a/open"))
		if all := strings.Join(l.seen, ""); strings.Contains(all, "secret") {
			t.Errorf("told %s, want nothing of what is hidden", all)
		}
	}
	if n := r.files.count("resources/subscribe files:b") + r.docs.count("resources/subscribe files:b"); n != 0 {
		t.Errorf("servers were asked %d times for what is hidden", n)
	}
}

// A member is killed again and again under many clients of both eras, and changes while it is
// dead: each client hears after the last change of what it follows, calls of others go on, and no
// session or stream ends.
func TestG13KillsUnderManyClients(t *testing.T) {
	t.Parallel()
	const clients, kills = 48, 12
	r := newLossRig(t, nil)
	var all []*reader
	for n := range clients {
		of := []*mortalServer{r.files, r.docs}[n/2%2]
		all = append(all, r.follow(t, bothEras[n%2], of, of.name+[]string{":a", ":b"}[n/4%2]))
	}
	caller := r.visit(t, spec.Modern, "all")
	for n := range kills {
		r.files.kill(n%3 == 0)
		for _, s := range []*mortalServer{r.files, r.docs} {
			s.change(s.name + ":a")
			s.change(s.name + ":b")
		}
		if got := caller.call("docs__x", ""); !strings.Contains(got.body, "of docs") {
			t.Errorf("a call of the one that lives = %d %s", got.status, got.body)
		}
		r.files.revive()
	}
	upToDate := func() bool {
		return !slices.ContainsFunc(all, func(c *reader) bool { return c.seen.Load() < c.of.version(c.uri) })
	}
	r.eventually(t, "all have heard of the last change", upToDate)
	for _, s := range []*mortalServer{r.files, r.docs} {
		s.change(s.name + ":a")
		s.change(s.name + ":b")
	}
	r.eventually(t, "all hear of changes as before", upToDate)
}

// A reader is a client that follows one resource, and reads its version when it hears of a change.
type reader struct {
	of   *mortalServer
	uri  string
	seen atomic.Int64
}

// follow returns a client of the group that follows a resource.
func (r *lossRig) follow(t *testing.T, era spec.Era, of *mortalServer, uri string) *reader {
	t.Helper()
	c := &reader{of: of, uri: uri}
	var l *lines
	if era == spec.Modern {
		body := modernBody("7", spec.MethodListen, `"notifications":{"resourceSubscriptions":["`+uri+`"]}`)
		l = newLines(t, r.openAt(t, http.MethodPost, "/mcp/all", body, modernHeaders(spec.MethodListen, "")))
		l.want(uri)
	} else {
		v := r.visit(t, era, "all")
		if got := v.ask("resources/subscribe", "", `"uri":"`+uri+`"`); got.code() != 0 {
			t.Fatalf("subscribing to %s = %s", uri, got.body)
		}
		l = newLines(t, r.openAt(t, http.MethodGet, v.path, "", v.headers("", "")))
	}
	go func() { // ends with the response
		for data := range l.data {
			if strings.Contains(data, updateOf(uri)) {
				c.seen.Store(of.version(uri))
			}
		}
	}()
	return c
}
