package replicas

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/interop/internal/listen"
)

// earlier builds the version of mcpbridge before this one, once, and returns it. PREVIOUS
// names a program, a commit or a tag instead.
var earlier = sync.OnceValues(func() (string, error) {
	named := os.Getenv("PREVIOUS")
	if info, err := os.Stat(named); err == nil && info.Mode().IsRegular() {
		return filepath.Abs(named)
	}
	cmd := exec.Command("../../previous")
	if named != "" {
		cmd.Args = append(cmd.Args, named)
	}
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%v: %s", err, said.Bytes())
	}
	return strings.TrimSpace(string(out)), nil
})

// A mix says which replicas run this version, N, and which the earlier one, E.
type mix string

// The states of an upgrade and of the way back, one replica after the other.
var (
	shortUpgrade  = []mix{"NEE", "NNE", "ENE"}
	statedUpgrade = []mix{"NEE", "NNE", "NNN", "NNE", "NEE", "EEE", "EEN", "ENN", "NNN", "ENN", "EEN", "EEE"}
)

// TestMixed has replicas of this version and of the earlier one serve together, while they are
// upgraded and brought back under calls: each holds sessions, calls, profiles and processes
// for the others, and hands its sessions over to them.
func TestMixed(t *testing.T) {
	program, err := earlier()
	if err != nil {
		t.Fatal(err)
	}
	beside(t)
	over(t, both, func(t *testing.T, engine string) {
		beside(t)
		m := newMixed(t, engine, program)
		var sessions []*lasting
		for i := range size(4, 40) {
			sessions = append(sessions, m.last(t, m.door, m.modern.item(i)))
		}
		calls := m.pour(t, size(20, 100))
		for _, state := range size(shortUpgrade, statedUpgrade) {
			m.become(t, state)
			m.check(t)
		}
		t.Logf("%d calls", calls())
		moved := 0
		for _, s := range sessions {
			moved += s.end(t)
		}
		t.Logf("%d sessions, whose streams were opened anew %d times", len(sessions), moved)
		m.wantHandedOver(t)
	})
}

// TestMixedPeers has them serve together without an engine: they ask each other who they are.
func TestMixedPeers(t *testing.T) {
	program, err := earlier()
	if err != nil {
		t.Fatal(err)
	}
	beside(t)
	m := newMixed(t, peers, program)
	for _, state := range []mix{"NEE", "NNE"} {
		m.become(t, state)
		m.forwards(t)
	}
}

// TestMixedStolen has replicas of both believe what each other says of a client, and refuse
// what another client has stolen.
func TestMixedStolen(t *testing.T) {
	program, err := earlier()
	if err != nil {
		t.Fatal(err)
	}
	beside(t)
	w := newThiefIn(t, setup{engine: nats, program: program})
	b := w.replicas[1]
	b.stop(time.Minute)
	b.program = programs.Bridge
	b.start()
	w.wantMembers(w.replicas...)
	for _, holder := range w.replicas[:2] {
		for _, f := range []*fixture{w.legacy, w.modern} {
			w.stealSession(t, f, holder)
		}
		w.stealState(t, holder)
	}
}

// A mixed world has replicas of two versions.
type mixed struct {
	*world
	earlier string
	state   mix
	door    *replica // the balancer

	versions map[string]string // of replicas, by instance

	long    []*stream // at each replica, as long as that runs
	watched *fixture  // the server that is called own0, own1 and own2
	used    int       // of its resources
}

func newMixed(t *testing.T, engine, program string) *mixed {
	t.Helper()
	m := &mixed{earlier: program, state: "EEE", versions: make(map[string]string)}
	host := &world{t: t, setup: setup{items: 200}, us: &http.Client{Timeout: 20 * time.Second}}
	m.watched = newFixture(host, "legacy", programs.legacy)
	var servers strings.Builder
	for i := range 3 {
		fmt.Fprintf(&servers, "  own%d: {url: %q}\n", i, "http://"+m.watched.addr+"/mcp")
		fmt.Fprintf(&servers, "  solo%d: {command: %q, replicas: one}\n", i, programs.legacy)
	}
	fmt.Fprintf(&servers, "  single: {url: %q, replicas: one}\n", "http://"+newFixture(host, "modern", programs.modern).addr+"/mcp")
	m.world = newWorld(t, setup{engine: engine, program: program, config: "drain_delay: 3s\ndrain: 10s", servers: servers.String(),
		server: `, cache: {resources/read: {ttl: 10m, scope: public, keep: true}}`})
	m.balancer.follow(t)
	for _, r := range m.replicas {
		m.note(r, "E")
	}
	for _, r := range m.replicas {
		m.long = append(m.long, m.mustListen(r, "legacy", m.legacy.item(45)))
	}
	m.door = &replica{w: m.world, name: "the balancer", listen: strings.TrimPrefix(m.balancer.base, "http://")}
	return m
}

// become restarts the replicas whose version changes, one after the other.
func (m *mixed) become(t *testing.T, next mix) {
	t.Helper()
	for i, r := range m.replicas {
		if next[i] == m.state[i] {
			continue
		}
		given, begun := m.give(r), time.Now()
		r.stop(time.Minute)
		stopped := time.Since(begun)
		if r.program = m.earlier; next[i] == 'N' {
			r.program = programs.Bridge
		}
		r.start()
		m.note(r, next[i:i+1])
		m.wantMembers(m.replicas...)
		t.Logf("%s was stopped in %v, and is %c after %v", r.name, stopped.Round(time.Millisecond), next[i], time.Since(begun).Round(time.Millisecond))
		m.wantGiven(t, given)
		m.wantLong(t, i)
	}
	m.state = next
}

// give opens sessions at a replica, so many that each of the others will get some of them.
func (m *mixed) give(r *replica) (given []*session) {
	if m.engine == nil {
		return nil // they would end with their replica
	}
	for range 16 {
		given = append(given, m.mustOpen(r, "modern", nil))
	}
	return given
}

// wantGiven wants sessions to be served by every replica, and ends them.
func (m *mixed) wantGiven(t *testing.T, given []*session) {
	t.Helper()
	for _, s := range given {
		for _, r := range m.replicas {
			if a := s.mark(t.Context(), r, "given"); a.problem() != "" {
				t.Errorf("a session that was handed over, at %s: %s", r.name, a.problem())
			}
		}
		if status := s.end(t.Context(), m.replicas[0]); status < 200 || status > 299 {
			t.Errorf("DELETE of a session that was handed over = %d", status)
		}
	}
}

// wantLong wants the streams at all replicas but one to have lasted, whoever owned what they
// watch, and opens another one there. All of them hear of a change.
func (m *mixed) wantLong(t *testing.T, restarted int) {
	t.Helper()
	m.long[restarted] = m.mustListen(m.replicas[restarted], "legacy", m.legacy.item(45))
	touched := m.legacy.touch(m.legacy.item(45))[0].At
	for _, s := range m.long {
		until(t, fmt.Sprintf("the stream at %s is told after %s was restarted", s.at.name, m.replicas[restarted].name), func() bool {
			return s.First(s.want[0], touched) != 0
		})
		if ending, problems := s.Status(); ending != listen.Open || len(problems) > 0 {
			t.Errorf("the stream at %s, after %s was restarted: %s %q", s.at.name, m.replicas[restarted].name, ending, problems)
		}
	}
}

// note notes which version an instance is of.
func (m *mixed) note(r *replica, version mix) {
	_, text := r.get("/readyz")
	var said struct{ Replicas struct{ Self string } }
	if err := json.Unmarshal([]byte(text), &said); err != nil || said.Replicas.Self == "" {
		m.t.Fatalf("readyz of %s says no instance: %s", r.name, text)
	}
	m.versions[said.Replicas.Self] = string(version)
}

// check has every replica do everything for every other.
func (m *mixed) check(t *testing.T) {
	t.Helper()
	begun := time.Now()
	m.forwards(t)
	m.watches(t)
	m.evicts(t)
	m.places(t)
	t.Logf("%s: checked in %v", m.state, time.Since(begun).Round(time.Millisecond))
}

// forwards has requests of sessions, streams and calls of one replica come to the others.
func (m *mixed) forwards(t *testing.T) {
	t.Helper()
	for i, holder := range m.replicas {
		at, then := m.replicas[(i+1)%3], m.replicas[(i+2)%3]
		for _, f := range []*fixture{m.legacy, m.modern} {
			m.asksSession(t, f, holder, at, then)
			m.asksSession(t, f, holder, then, at)
			m.asksOld(t, f, holder, at)
			m.asksOld(t, f, holder, then)
			m.resumesCall(t, f, holder, at, then)
		}
		m.parks(t, holder, at, then)
		m.opensSingle(t, holder, at)
	}
}

// opensSingle opens a session over HTTP+SSE at a server that one replica serves: a replica of a
// version that knows how has it opened there, and no other one is asked for that.
func (m *mixed) opensSingle(t *testing.T, at, posts *replica) {
	t.Helper()
	s, err := m.openOld(t.Context(), at, "single", nil)
	if err != nil {
		t.Errorf("%s: HTTP+SSE of a server that one replica serves, at %s: %v", m.state, at.name, err)
		return
	}
	defer s.feed.close()
	if a := s.mark(t.Context(), posts, "single"); a.problem() != "" {
		t.Errorf("%s: a call over HTTP+SSE at %s: %s", m.state, posts.name, a.problem())
	}
}

// versionsServing is how many versions serve.
func (m *mixed) versionsServing() int {
	if strings.Contains(string(m.state), "E") && strings.Contains(string(m.state), "N") {
		return 2
	}
	return 1
}

// watches has each replica own a profile that the others watch through it: the server has one
// subscription, or one of each version, since versions may claim by different names. A change
// reaches all of them.
func (m *mixed) watches(t *testing.T) {
	t.Helper()
	var uris []string
	var streams []*stream
	for i := range m.replicas {
		uri := m.watched.item(m.used)
		m.used++
		uris = append(uris, uri)
		for j := range m.replicas { // the first one owns it
			streams = append(streams, m.mustListen(m.replicas[(i+j)%3], fmt.Sprint("own", i), uri))
		}
	}
	for i, uri := range uris {
		if n := m.watched.view().URIs[uri]; n < 1 || n > m.versionsServing() {
			t.Errorf("%s: a resource that %s watches for all has %d subscriptions", m.state, m.replicas[i].name, n)
		}
	}
	since := m.watched.touch(uris...)[0].At
	for i, s := range streams {
		until(t, fmt.Sprintf("%s: the stream at %s of a profile that %s owns is told", m.state, s.at.name, m.replicas[i/3].name), func() bool {
			return s.First(s.want[0], since) != 0
		})
	}
	for _, s := range streams {
		if n := s.Count(s.want[0], since); n > 2 { // streams may be merged meanwhile
			t.Errorf("%s: the stream at %s was told %d times", m.state, s.at.name, n)
		}
		s.Close()
	}
}

// evicts has each replica read what has just changed, as the others were told.
func (m *mixed) evicts(t *testing.T) {
	t.Helper()
	uri := m.legacy.item(1)
	var streams []*stream
	for _, r := range m.replicas {
		streams = append(streams, m.mustListen(r, "legacy", uri))
	}
	m.wantKept(t, m.legacy, uri)
	for i := range size(60, 300) {
		m.hearAndRead(t, m.legacy, uri, streams, i%3, m.replicas[(i+1+i/3%2)%3])
	}
	for _, s := range streams {
		s.Close()
	}
}

// places has each replica call servers with a state of their own: one process serves all, or
// one of each version.
func (m *mixed) places(t *testing.T) {
	t.Helper()
	for i := range m.replicas {
		processes := make(map[string][]string)
		for j := range m.replicas { // the first one that is asked keeps the process
			r := m.replicas[(i+j)%3]
			a := m.callTool(t.Context(), r.url(fmt.Sprint("solo", i)), "subscriptions", map[string]any{}, "", nil)
			pid := pidSaid.FindString(a.text)
			if a.problem() != "" || pid == "" {
				t.Errorf("%s: a call of solo%d at %s: %v %d %s", m.state, i, r.name, a.err, a.status, a.text)
			}
			processes[pid] = append(processes[pid], r.name)
		}
		if len(processes) > m.versionsServing() {
			t.Errorf("%s: solo%d has %d processes: %v", m.state, i, len(processes), processes)
		}
	}
}

// pidSaid finds the process that a server says it is.
var pidSaid = regexp.MustCompile(`pid\\?":\d+`)

// wantHandedOver wants each version to have handed over sessions to the other, by what the
// logs say.
func (m *mixed) wantHandedOver(t *testing.T) {
	t.Helper()
	sessions := make(map[string]int) // by both versions
	for _, r := range m.replicas {
		text, err := os.ReadFile(r.log)
		if err != nil {
			t.Fatal(err)
		}
		from := ""
		for line := range strings.Lines(string(text)) {
			switch who := logged.FindStringSubmatch(line); {
			case who == nil:
			case strings.Contains(line, "this is one of several replicas"):
				from = m.versions[who[1]]
			case strings.Contains(line, "client sessions handed over"):
				sessions[from+" to "+m.versions[who[1]]]++
			}
		}
	}
	t.Logf("sessions were handed over from and to N, this version, and E, the earlier one: %v", sessions)
	if sessions["E to N"] == 0 || sessions["N to E"] == 0 {
		t.Errorf("no version has handed over sessions to the other: %v", sessions)
	}
}

// logged finds the replica that a line of the log names.
var logged = regexp.MustCompile(`replica"?[=:]"?([A-Z2-7]{8})`)
