package extensions

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/interop/internal/process"
	"github.com/mcpbridge/mcpbridge/interop/internal/rig"
	"github.com/mcpbridge/mcpbridge/interop/internal/steer"
	"github.com/mcpbridge/mcpbridge/interop/remote"
)

// A wayTo is a network between mcpbridge and a server: it can be slow, or refuse connections.
type wayTo struct {
	at, to string
	delay  atomic.Int64 // ms that each piece takes at most

	mu    sync.Mutex // guards what is below
	open  net.Listener
	conns map[net.Conn]bool
	all   sync.WaitGroup
}

func newWayTo(t *testing.T, to string) *wayTo {
	t.Helper()
	w := &wayTo{at: rig.FreeAddr(t), to: to, conns: make(map[net.Conn]bool)}
	w.listen(t)
	t.Cleanup(w.refuse)
	return w
}

func (w *wayTo) listen(t *testing.T) {
	t.Helper()
	l, err := net.Listen("tcp", w.at)
	if err != nil {
		t.Fatal(err)
	}
	w.mu.Lock()
	w.open = l
	w.mu.Unlock()
	w.all.Go(func() { // ends with the listener
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			w.all.Go(func() { w.carry(c) })
		}
	})
}

// refuse ends all connections, and lets nobody connect.
func (w *wayTo) refuse() {
	w.mu.Lock()
	w.open.Close()
	for c := range w.conns {
		c.Close()
	}
	w.mu.Unlock()
	w.all.Wait()
}

func (w *wayTo) carry(c net.Conn) {
	defer c.Close()
	s, err := net.Dial("tcp", w.to)
	if err != nil {
		return
	}
	defer s.Close()
	w.mu.Lock()
	w.conns[c], w.conns[s] = true, true
	w.mu.Unlock()
	var both sync.WaitGroup
	for from, to := range map[net.Conn]net.Conn{c: s, s: c} {
		both.Go(func() { // ends when either closes
			piece := make([]byte, 64<<10)
			for {
				n, err := from.Read(piece)
				if d := w.delay.Load(); d > 0 {
					time.Sleep(time.Duration(rand.Int64N(d)) * time.Millisecond)
				}
				if _, failed := to.Write(piece[:n]); failed != nil || err != nil {
					_ = to.(*net.TCPConn).CloseWrite() // the other half may go on
					if failed != nil || !errors.Is(err, io.EOF) {
						from.Close()
						to.Close()
					}
					return
				}
			}
		})
	}
	both.Wait()
	w.mu.Lock()
	delete(w.conns, c)
	delete(w.conns, s)
	w.mu.Unlock()
}

// A lifePair is clients of one era with a server of one era, through mcpbridge.
type lifePair struct {
	name      string // the eras of both
	old       bool   // the clients are of 2025-11-25
	oldServer bool
	grouped   bool // the server is in a group
	players   []*taskPlayer
}

// alone returns the name of the pair whose server is in no group.
func (p *lifePair) alone() string { return strings.TrimSuffix(p.name, " in a group") }

// mediated reports whether mcpbridge itself answers for tasks, and has ids of its own.
func (p *lifePair) mediated() bool { return p.grouped || p.old != p.oldServer }

// A lifeWorld is servers of both eras, with a way to each, mcpbridge, and clients of all.
type lifeWorld struct {
	t             *testing.T
	servers       map[string]*restartable // those that mcpbridge has
	ways          map[string]*wayTo
	listen, admin string
	config        string
	bridge        *process.Process
	direct        map[bool]*taskPlayer // by whether it is old
	pairs         []*lifePair
	rng           *rand.Rand
	seen          map[string]bool // differences that were told
	lives, faults int
}

func newLifeWorld(t *testing.T, seed uint64) *lifeWorld {
	t.Helper()
	w := &lifeWorld{t: t, servers: make(map[string]*restartable), ways: make(map[string]*wayTo), direct: make(map[bool]*taskPlayer), seen: make(map[string]bool),
		rng: rand.New(rand.NewPCG(seed, 2)), listen: rig.FreeAddr(t), admin: rig.FreeAddr(t)}
	lines := fmt.Sprintf("listen: %s\nadmin: %s\nstate_keys: [a-key-of-interop-0001]\nservers:\n", w.listen, w.admin)
	for name, s := range map[string]*taskServer{"old": oldServers["typescript"], "new": newServers["fastmcp"]} {
		w.servers[name] = newRestartable(t, s)
		w.ways[name] = newWayTo(t, strings.TrimSuffix(strings.TrimPrefix(w.servers[name].url, "http://"), "/mcp"))
		lines += "  " + s.settings(atURL(name, "http://"+w.ways[name].at+"/mcp"), ", tasks: on, timeouts: {connect: 2s}") + "\n"
		direct := newRestartable(t, s)
		w.direct[name == "old"] = newTaskPlayer(t, direct.url, name == "old")
	}
	lines += "  beside: {command: node, args: [\"" + peer("node/node_modules/@modelcontextprotocol/server-memory/dist/index.js") + "\"]}\n"
	w.config = lines + "groups:\n  all-old: {servers: [old, beside], prefix: never, attribute: false}\n  all-new: {servers: [beside, new], prefix: never, attribute: false}\n"
	w.bridge = programs.StartBridge(t, w.config, w.admin)
	t.Cleanup(func() { w.stopBridge() })
	for _, p := range []lifePair{{name: "old to old", old: true, oldServer: true}, {name: "old to new", old: true}, {name: "new to old", oldServer: true}, {name: "new to new"}} {
		for range 2 {
			player := newTaskPlayer(t, "http://"+w.listen+"/mcp/"+p.server(), p.old)
			player.hears = p.oldServer
			p.players = append(p.players, player)
		}
		in := lifePair{name: p.name + " in a group", old: p.old, oldServer: p.oldServer, grouped: true}
		in.players = append(in.players, newTaskPlayer(t, "http://"+w.listen+"/mcp/all-"+p.server(), p.old))
		w.pairs = append(w.pairs, &p, &in)
	}
	return w
}

func (p *lifePair) server() string {
	if p.oldServer {
		return "old"
	}
	return "new"
}

func (w *lifeWorld) stopBridge() {
	if err := w.bridge.Stop(time.Minute); err != nil {
		w.t.Error(err)
	}
}

// newTaskPlayer starts a client and has it connect.
func newTaskPlayer(t *testing.T, url string, old bool) *taskPlayer {
	t.Helper()
	argv, capabilities := node("node/remote-2.mjs", modernRevision), `{"elicitation": {"form": {}}, "extensions": {"io.modelcontextprotocol/tasks": {}}}`
	if old {
		argv, capabilities = node("node/remote.mjs", "sdk-1.32.2"), `{"elicitation": {"form": {}}}`
	}
	c, err := steer.Start(argv...)
	if err != nil {
		t.Fatal(err)
	}
	p := &taskPlayer{c: c, legacy: old, to: remote.Target{Transport: "http", URL: url, Capabilities: json.RawMessage(capabilities)},
		asked: make(map[string]chan steer.Question), told: make(map[string]map[string]bool)}
	c.Decide(p.take)
	c.Hear(p.hear)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("a client of %s wrote:\n%.2000s", url, c.Log())
		}
		c.Kill() // what it waits for may be on a server that is gone
	})
	p.connect(t)
	return p
}

// connect has the client connect anew, as one whose session was lost.
func (p *taskPlayer) connect(t *testing.T) {
	t.Helper()
	rig.Until(t, 3*time.Minute, "the client connects", func() string {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := p.c.Request(ctx, "initialize", p.to); err != nil {
			return err.Error()
		}
		return ""
	})
}

// playAll plays lives, some at once, each on one of the clients.
func playAll(ctx context.Context, name string, players []*taskPlayer, lives []*life, like [][]event) [][]event {
	events := make([][]event, len(lives))
	_ = rig.Each(len(lives), 2+2*len(players), func(i int) error {
		var same []event
		if like != nil {
			same = append([]event{}, like[i]...)
		}
		events[i] = players[i%len(players)].play(ctx, lives[i].as(name), same).events
		return nil
	})
	return events
}

// wants are what is seen directly, by the era of the client.
func (w *lifeWorld) wants(lives []*life) map[bool][][]event {
	var seen [2][][]event
	var both sync.WaitGroup
	for i, old := range []bool{true, false} {
		both.Go(func() { seen[i] = playAll(w.t.Context(), "directly", []*taskPlayer{w.direct[old]}, lives, nil) }) // ends with the lives
	}
	both.Wait()
	return map[bool][][]event{true: seen[0], false: seen[1]}
}

// playRound plays lives directly and through mcpbridge, with all pairs at once: they differ only in
// what the rules say.
func (w *lifeWorld) playRound(seed uint64, n int, what string) {
	lives := drawLives(seed, n)
	w.direct[true].c.Progress.Clear()
	wants := w.wants(lives)
	_ = rig.Each(len(w.pairs), len(w.pairs), func(i int) error {
		p := w.pairs[i]
		for _, player := range p.players {
			player.c.Progress.Clear() // of what went wrong
		}
		got := playAll(w.t.Context(), p.name, p.players, lives, wants[p.old])
		for i, l := range lives {
			p.compare(w.t, what, l, got[i], wants[p.old][i])
		}
		return nil
	})
	w.lives += n
	n = len(slices.DeleteFunc(lives, func(l *life) bool { return !l.progress }))
	if told := progressOf(n, w.direct[true]); told != n {
		w.t.Errorf("%s, directly, %d notifications of progress of %d tasks", what, told, n)
	}
	for _, p := range w.pairs {
		want := n
		if !p.old || p.mediated() {
			want = 0 // T-19, and servers of 2026-07-28 have none
		}
		sooner := p.grouped && p.old && p.oldServer // some may come before the call is known to be a task
		if told := progressOf(want, p.players...); told != want && !(sooner && told <= n) {
			w.t.Errorf("%s, %s, %d notifications of progress of tasks, want %d", what, p.name, told, want)
		}
	}
}

// progressOf returns how often clients were told of progress; n times are waited for.
func progressOf(n int, players ...*taskPlayer) (told int) {
	for end := time.Now().Add(2 * time.Minute); ; {
		for _, p := range players {
			for _, ok := p.c.Progress.Take(0); ok; _, ok = p.c.Progress.Take(0) {
				told++
			}
		}
		if told >= n || time.Now().After(end) {
			return told
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// compare holds what was seen through mcpbridge against what the rules make of what was seen
// directly.
func (p *lifePair) compare(t *testing.T, what string, l *life, got, direct []event) {
	t.Helper()
	want := p.expect(l, direct)
	if p.mediated() {
		got = alikeEvents(l, got)
	}
	if slices.Equal(got, want) {
		return
	}
	for i := range max(len(got), len(want)) {
		var a, b event
		if i < len(got) {
			a = got[i]
		}
		if i < len(want) {
			b = want[i]
		}
		if a != b {
			t.Errorf("%s, %s, %s %s %s %v, step %d:\nit is %v\n  want %v", what, p.name, l.tool, l.arguments, l.reply, l.steps, i, a, b)
			return
		}
	}
}

var (
	statusMessage = regexp.MustCompile(` \(.*?\)`)
	errorText     = regexp.MustCompile(`^error (-?\d+): .*`)
	ownID         = regexp.MustCompile(`\{text [0-9a-zA-Z_-]{20,}\}`)
)

// alike takes from events what servers of two eras say in their own words: status messages, errors of
// requests (T-11 and T-21 have one text), and ids that a tool tells (T-11, T-21).
func alikeEvents(l *life, events []event) (plain []event) {
	for _, e := range events {
		e.text = strings.ReplaceAll(e.text, "MCP error -32603: ", "") // as the TypeScript SDK has it
		if e.text = statusMessage.ReplaceAllString(e.text, ""); e.step != "settle" {
			e.text = errorText.ReplaceAllString(e.text, "error $1")
		}
		if l.tool == "own_id" {
			e.text = strings.ReplaceAll(ownID.ReplaceAllString(e.text, "{text ID}"), "{text ID}", "{an id}")
		}
		plain = append(plain, e)
	}
	return plain
}

// expect says what the rules make of what is seen directly.
func (p *lifePair) expect(l *life, direct []event) (want []event) {
	if !p.mediated() {
		return direct
	}
	for _, e := range alikeEvents(l, direct) {
		switch {
		case !p.old:
		case e.step == "list":
			e.text = "error -32601" // T-22
		case e.step == "told":
			e.text = "nothing" // T-27: of changes before the end
		}
		want = append(want, e)
	}
	return want
}
