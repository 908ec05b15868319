package interop

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/interop/internal/process"
	"github.com/mcpbridge/mcpbridge/interop/internal/tap"
	"github.com/mcpbridge/mcpbridge/interop/remote"
)

// A pairSpot is a legacy server that legacy clients reach directly and through
// mcpbridge. Each of them has a fresh one.
type pairSpot struct {
	name string // of the table's column
	path string // of its endpoint over HTTP; empty for stdio
	// argv is its command line, for an address over HTTP, or for a folder of its own.
	argv func(addr, dir string) (env, argv []string)
}

var pairSpots = []pairSpot{
	{"legacy-go", "/mcp", func(addr, _ string) (env, argv []string) {
		return nil, []string{"../bin/legacy-go", "-http", addr, "-event-ids"}
	}},
	{"everything-go", "/", func(addr, _ string) (env, argv []string) {
		return nil, []string{everythingGo, "-http", addr}
	}},
	{"everything-http", "/mcp", func(addr, _ string) (env, argv []string) {
		_, port, _ := net.SplitHostPort(addr)
		return []string{"PORT=" + port}, []string{nodeBinary, everythingNode, "streamableHttp"}
	}},
	{"everything-stdio", "", func(_, dir string) (env, argv []string) {
		return nil, []string{nodeBinary, everythingNode, "stdio", dir}
	}},
	{"files", "", func(_, dir string) (env, argv []string) {
		return nil, []string{nodeBinary, filesNode, dir}
	}},
}

// pairClients are the clients that go there.
var pairClients = []string{"go-1.6.1", "sdk-1.32.2", "sdk-1.12.3", "mcpgo"}

// pairLacks are the cells that can't be compared, by server and feature.
var pairLacks = map[string]string{
	"everything-stdio, answer resumed": "there is no connection to cut",
	"everything-stdio, gap":            "there is no connection to cut",
	"everything-stdio, cancel":         "no tool can be seen to end",
	"everything-stdio, unsubscribed":   "its updates come by the clock",
}

// masks stand for what differs between two runs of one server on the same messages.
var masks = []struct{ server, like, as, why string }{
	{"", `[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z`, "TIME", "the server's clock"},
	{"", `[0-9]{1,2}:[0-9]{2}:[0-9]{2} ?[AP]M`, "TIME", "the server's clock"},
	{"", `[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`, "UUID", "the session's id, and others made at random"},
	{"everything-http", `"blob":"[^"]*"`, "BLOB", "a clock is in it"},
	{"everything-stdio", `"blob":"[^"]*"`, "BLOB", "a clock is in it"},
	{"files", `/[^"\\ ]*/files`, "DIR", "each run has a folder of its own"},
	{"legacy-go", `\\?"at\\?":[0-9]+`, "AT", "the server's clock"},
	{"legacy-go", `"structuredContent":\{"entries":.*`, "LEDGER", "what the server has noted so far, of its own clock and process too"},
	{"legacy-go", `"text":"\{\\"entries\\":.*`, "LEDGER", "likewise"},
}

var (
	// noise are messages that come by the clock, with what they say by chance.
	noise = regexp.MustCompile(`"notifications/message".*[Ll]evel[- ](message|Message)`)
	// byClock come once, but by the clock: their place among others is chance.
	byClock = regexp.MustCompile(`"method":"roots/list"|"Roots updated: `)
)

// TestS02SameEra takes each legacy client through the round on each legacy server
// twice, once directly and once through mcpbridge, and compares what passed on the
// wire: what the clients sent and what arrived at the servers, what the servers sent
// and what arrived at the clients, on each stream.
func TestS02SameEra(t *testing.T) {
	m, err := loadLegacy()
	if err != nil {
		t.Fatal(err)
	}
	all, err := loadMatrix()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range pairSpots {
		t.Run("S-02 "+s.name, func(t *testing.T) {
			t.Parallel()
			column := m.Servers[s.name]
			switch s.name {
			case "everything-stdio":
				column = m.Servers["everything-http"]
			case "files":
				column = all.Servers["files"]
			}
			for _, client := range pairClients {
				t.Run(client, func(t *testing.T) { s.compare(t, m, column, client) })
			}
		})
	}
}

// compare has one client do the same twice.
func (s *pairSpot) compare(t *testing.T, m *Matrix, column *Server, client string) {
	ways := make([]*journal, 2)
	t.Run("runs", func(t *testing.T) {
		for i, name := range []string{"directly", "through mcpbridge"} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				ways[i] = s.take(t, m, column, client, i == 1)
			})
		}
	})
	if t.Failed() {
		return
	}
	direct, through := ways[0], ways[1]
	n := 0
	for _, c := range []struct {
		what     string
		one, two map[string][]string
	}{
		{"sent directly and through mcpbridge", direct.client.sent(true), through.client.sent(true)},
		{"sent by the client and arrived at the server", through.client.sent(false), through.server.sent(false)},
		{"received directly and through mcpbridge", direct.client.received(true), through.client.received(true)},
		{"sent by the server and arrived at the client", through.server.received(false), through.client.received(false)},
	} {
		n += same(t, c.what, c.one, c.two)
	}
	t.Logf("compared %d distinct messages of the client, %d streams, %d transcripts in all; %d and %d of %d cells were ok",
		len(direct.client.sent(true)), len(direct.client.received(true)), n, direct.ok, through.ok, direct.cells)
}

// same compares transcripts by what they are of, and returns how many messages they
// have.
func same(t *testing.T, what string, one, two map[string][]string) (n int) {
	t.Helper()
	for _, key := range slices.Sorted(maps.Keys(one)) {
		n += len(one[key])
		a, b := one[key], two[key]
		if early := len(b) - len(a); key == "GET" && early > 0 && early <= 3 {
			// Directly, a server has nowhere to send what it says before the client's GET.
			b = b[early:]
		}
		if !slices.Equal(a, b) {
			t.Errorf("%s: %s:\n  %s\nagainst\n  %s", what, key, strings.Join(one[key], "\n  "), strings.Join(two[key], "\n  "))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(two)) {
		if one[key] == nil {
			t.Errorf("%s: only once: %s:\n  %s", what, key, strings.Join(two[key], "\n  "))
		}
	}
	return n
}

// A journal is what passed at both ends of mcpbridge. Directly both ends are one. Of
// the cells not all suit all clients: SDKs refuse what their revision has not, and lose
// progress that comes together with the answer. The wire is what counts here.
type journal struct {
	client, server record
	ok, cells      int
}

// A record is what passed at one place, in order.
type record struct {
	server string
	passed []tap.Passed
}

// take takes a client through the round on a fresh server.
func (s *pairSpot) take(t *testing.T, m *Matrix, column *Server, client string, through bool) *journal {
	dir := filepath.Join(t.TempDir(), "files")
	if err := errors.Join(os.Mkdir(dir, 0o700), testFiles(dir)); err != nil {
		t.Fatal(err)
	}
	c := m.Clients[client]
	roots := fmt.Appendf(nil, `{"roots": [{"uri": "file:///%s", "name": "root of %[1]s"}]}`, client)
	if s.name == "files" {
		roots = fmt.Appendf(nil, `{"roots": [{"uri": %q, "name": "root of %s"}]}`, "file://"+dir, client)
	}
	target := remote.Target{Capabilities: c.Capabilities, Roots: roots}
	var j func() *journal
	ok, cells := 0, 0
	r := &legacyRound{client: c, cut: func(bool) int { return 0 }, resumed: func() int { return 0 }}
	if s.path != "" {
		j = s.overHTTP(t, through, &target, r)
	} else {
		j = s.overPipes(t, through, &target, dir)
	}
	t.Run("round", func(t *testing.T) { // the client ends with it
		r.remoteClient = startRemote(t, client, target)
		for _, f := range m.Features {
			if m.Servers[s.name] != nil && m.lack(client, s.name, f) != "" || pairLacks[s.name+", "+f] != "" || column.Cells[f] == nil {
				continue
			}
			steps, err := column.steps(f, client, dir)
			if err != nil {
				t.Fatal(err)
			}
			steps = slices.DeleteFunc(steps, func(s Step) bool { return !s.fits(c.Revision) })
			cells++
			if err := r.cell(t.Context(), steps); err == nil {
				ok++
			} else {
				t.Logf("%s: %.300v", f, err)
			}
		}
		if 2*ok <= cells {
			t.Errorf("%d of %d cells were ok, which proves nothing", ok, cells)
		}
	})
	all := j()
	all.ok, all.cells = ok, cells
	return all
}

// overHTTP starts the server, and mcpbridge before it if through, with taps.
func (s *pairSpot) overHTTP(t *testing.T, through bool, target *remote.Target, r *legacyRound) func() *journal {
	addr := freeAddr(t)
	env, argv := s.argv(addr, "")
	run(t, "http://"+addr+s.path, 0, env, argv...)
	atServer := newTap(t, "http://"+addr)
	atClient := atServer
	target.Transport, target.URL = "http", atServer.URL(s.path)
	if through {
		listen, admin := freeAddr(t), freeAddr(t)
		config := filepath.Join(t.TempDir(), "mcpbridge.yaml")
		text := fmt.Sprintf("listen: %s\nadmin: %s\nservers:\n  it: {url: %q, era: legacy}\n", listen, admin, atServer.URL(s.path))
		if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		run(t, "http://"+admin+"/readyz", 200, nil, bridgeBinary, "serve", "-c", config)
		atServer.Forget() // how mcpbridge made sure that it is there
		atClient = newTap(t, "http://"+listen)
		target.URL = atClient.URL("/mcp/it")
	}
	r.cut = func(get bool) int { return atClient.Cut(&get) }
	r.resumed = func() int { return len(atClient.Resumed()) }
	return func() *journal {
		return &journal{client: record{s.name, atClient.Passed()}, server: record{s.name, atServer.Passed()}}
	}
}

func newTap(t *testing.T, base string) *tap.Tap {
	t.Helper()
	between, err := tap.New(base, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(between.Close)
	return between
}

// overPipes has the client start the server, or mcpbridge wrap before it, with the
// test's own program in between that writes down what passes.
func (s *pairSpot) overPipes(t *testing.T, through bool, target *remote.Target, dir string) func() *journal {
	_, argv := s.argv("", dir)
	for i := range 2 {
		var err error
		if argv[i], err = filepath.Abs(argv[i]); err != nil {
			t.Fatal(err)
		}
	}
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	notes := t.TempDir()
	atServer, atClient := filepath.Join(notes, "server"), filepath.Join(notes, "client")
	target.Transport = "stdio"
	if target.Argv = append([]string{own, scribeFlag, atServer}, argv...); through {
		bridge, err := filepath.Abs(bridgeBinary)
		if err != nil {
			t.Fatal(err)
		}
		target.Argv = append(process.WithCache(own, scribeFlag, atClient, bridge, "wrap", "--"), target.Argv...)
	}
	return func() *journal {
		j := &journal{server: readNotes(t, s.name, atServer)}
		j.client = j.server
		if through {
			j.client = readNotes(t, s.name, atClient)
		}
		return j
	}
}

// A message is a JSON-RPC message as far as ids go.
type message struct {
	ID     json.RawMessage
	Method string
	Params json.RawMessage
}

// plain returns a message without ids, and without what is masked if that is so. The
// bytes of results and params are kept.
func (r *record) plain(text string, masked bool) string {
	var members map[string]json.RawMessage
	if json.Unmarshal([]byte(text), &members) != nil {
		return text
	}
	if members["id"] != nil {
		members["id"] = json.RawMessage(`"ID"`)
	}
	if params := members["params"]; params != nil {
		members["params"] = ids.ReplaceAll(params, []byte(`"$1":"ID"`))
	}
	var out bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(members)) {
		fmt.Fprintf(&out, "%s=%s ", name, members[name])
	}
	plain := out.String()
	for _, m := range masks {
		if masked && (m.server == "" || m.server == r.server) {
			plain = regexp.MustCompile(m.like).ReplaceAllString(plain, m.as)
		}
	}
	return plain
}

var ids = regexp.MustCompile(`"(requestId|progressToken)": ?(?:\d+|"[^"]*")`)

// sent returns the messages that a client sent. How often it asks again until
// something has happened is chance.
func (r *record) sent(masked bool) map[string][]string {
	all := make(map[string][]string)
	for _, p := range r.passed {
		if p.Up {
			plain := r.plain(p.Text, masked)
			all[plain] = []string{plain}
		}
	}
	return all
}

// A transcript is what came for one request, or for none.
type transcript struct {
	of    string
	texts []string
	// gone says that its client has cancelled it, and may not have waited for what
	// came.
	gone     bool
	answered bool
}

// received returns transcripts, joined, by their requests: of equal ones in a row one.
// What came on the stream of a request, and its answer wherever it came, are its
// transcript. On a pipe, and on GET streams, all else is one.
func (r *record) received(masked bool) map[string][]string {
	streams, answers := make(map[string]*transcript), make(map[string]*transcript)
	var order []*transcript
	at := func(by map[string]*transcript, name, of string) *transcript {
		if by[name] == nil {
			by[name] = &transcript{of: of}
			order = append(order, by[name])
		}
		return by[name]
	}
	for _, p := range r.passed {
		var m message
		_ = json.Unmarshal([]byte(p.Text), &m) // all is as it was if it is none
		plain := r.plain(p.Text, masked)
		switch {
		case !strings.Contains(p.Text, `"jsonrpc"`): // {}, by which a server remembers that a stream began
		case p.Up && m.Method == "notifications/cancelled":
			var c struct{ RequestID json.RawMessage }
			if json.Unmarshal(m.Params, &c) == nil && answers[string(c.RequestID)] != nil {
				answers[string(c.RequestID)].gone = true
			}
		case p.Up && m.Method != "" && m.ID != nil:
			x := &transcript{of: plain}
			order = append(order, x)
			answers[string(m.ID)] = x
			if p.Stream != "pipe" {
				streams[p.Stream] = x
			}
		case p.Up || masked && noise.MatchString(p.Text):
		case m.Method == "" && answers[string(m.ID)] != nil:
			answers[string(m.ID)].add(plain)
			answers[string(m.ID)].answered = true
		case strings.HasSuffix(p.Stream, tap.Again):
			// SDKs resume a stream that ended with an error, and server-everything
			// replays there what it sent on others since.
			if x := streams[strings.TrimSuffix(p.Stream, tap.Again)]; x != nil && !x.answered {
				x.add(plain)
			}
		case byClock.MatchString(p.Text):
			at(streams, p.Stream+" by the clock", p.Stream+" by the clock").add(plain)
		default:
			at(streams, p.Stream, p.Stream).add(plain)
		}
	}
	all := make(map[string][]string)
	for _, x := range order {
		if strings.HasPrefix(x.of, "GET") || strings.HasPrefix(x.of, "pipe") {
			all[x.of] = x.texts
			continue
		}
		if x.gone {
			x.texts = nil
		}
		one := strings.Join(x.texts, "\n    ")
		if n := len(all[x.of]); n == 0 || all[x.of][n-1] != one {
			all[x.of] = append(all[x.of], one)
		}
	}
	return all
}

// add adds a message, unless it comes again, as a client that resumes may have it.
func (x *transcript) add(text string) {
	if n := len(x.texts); n == 0 || x.texts[n-1] != text {
		x.texts = append(x.texts, text)
	}
}
