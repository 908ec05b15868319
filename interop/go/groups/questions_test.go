package groups

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/interop/internal/ledger"
	"github.com/mcpbridge/mcpbridge/interop/internal/rig"
	"github.com/mcpbridge/mcpbridge/interop/internal/steer"
	"github.com/mcpbridge/mcpbridge/interop/remote"
)

// askers are the servers that ask, with the names of members.
var askers = []string{"old-1", "old-2", "new-1", "new-2"}

// askerPairs are the groups of two members that ask at once, by name.
var askerPairs = map[string][2]string{"olds": {"old-1", "old-2"}, "news": {"new-1", "new-2"}, "mixed": {"old-1", "new-1"}}

// TestG15QuestionsOfTwoMembers has two members of a group ask one client at once, over and over, with
// calls and answers in random order. Each question is put once, by the name of its server, and each
// server gets the answer to its own.
func TestG15QuestionsOfTwoMembers(t *testing.T) {
	n, seed := int(rig.Int(t, "QUESTIONS", 30)), rig.Seed(t)
	dir := t.TempDir()
	var servers, groups strings.Builder
	for _, name := range askers {
		argv := []string{peer("bin/legacy-go"), "-http", "{addr}", "-ledger", filepath.Join(dir, name)}
		if strings.HasPrefix(name, "new") {
			argv[0] = peer("bin/modern-go")
		}
		addr, _ := startServer(t, name, nil, argv)
		fmt.Fprintf(&servers, "  %s: {url: \"http://%s/mcp\", timeouts: {connect: 1m}}\n", name, addr)
	}
	for name, pair := range askerPairs {
		fmt.Fprintf(&groups, "  %s: {servers: %s}\n", name, inline(pair))
	}
	b := startBridge(t, servers.String(), groups.String())
	var tours sync.WaitGroup
	asked := &wanted{asked: make(map[string]map[string]int)}
	for i, c := range clients() {
		tours.Go(func() {
			t.Run(c.name, func(t *testing.T) {
				v := startVisitor(t, c, b, dir, nil)
				for j, name := range []string{"olds", "news", "mixed"} {
					s := &schedules{v: v, bridge: b, way: "http", group: name, wanted: asked, random: rand.New(rand.NewPCG(seed, uint64(10*i+j)))}
					s.run(n, v.httpTarget(name))
				}
				if c.name == "typescript-1.32.2" || c.name == "go-1.8.0" {
					s := &schedules{v: v, bridge: b, way: "wrap", group: "mixed", wanted: asked, random: rand.New(rand.NewPCG(seed, uint64(10*i+3)))}
					s.run(n, b.wrapped("mixed"))
				}
			})
		})
	}
	tours.Wait()
	if !t.Failed() {
		asked.judge(t, dir)
	}
}

// wanted is what the ledgers of servers have to say.
type wanted struct {
	mu    sync.Mutex                // guards the field below
	asked map[string]map[string]int // by server and nonce, how often it was to ask
}

func (w *wanted) add(server, nonce string, times int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.asked[server] == nil {
		w.asked[server] = make(map[string]int)
	}
	w.asked[server][nonce] = times
}

// judge holds the ledgers against what was wanted: each call came once to its server, and so did
// the answer to each of its questions, and to no other.
func (w *wanted) judge(t *testing.T, dir string) {
	t.Helper()
	calls, answers := 0, 0
	for _, server := range askers {
		got := make(map[string]int)
		entered := make(map[string]int)
		for _, e := range ledger.Read(t, filepath.Join(dir, server)) {
			switch e.What {
			case "call", "asked":
				entered[e.Nonce]++
			case "answer":
				if e.Answer != "re "+e.Nonce {
					t.Errorf("%s was answered %q to %q", server, e.Answer, e.Nonce)
				}
				got[e.Nonce]++
			}
		}
		for nonce, times := range w.asked[server] {
			want := times // of legacy servers; a modern one writes down the last answer, and how often it asked
			if strings.HasPrefix(server, "new") {
				if entered[nonce] != times {
					t.Errorf("%s asked %d times for %q, want %d", server, entered[nonce], nonce, times)
				}
				want = 1
			} else if entered[nonce] != 1 {
				t.Errorf("%s was called %d times for %q, want once", server, entered[nonce], nonce)
			}
			if got[nonce] != want {
				t.Errorf("%s was answered %d times to %q, want %d", server, got[nonce], nonce, want)
			}
			answers += times
			calls++
			delete(got, nonce)
		}
		for nonce := range got {
			t.Errorf("%s was answered to %q, which is not for it", server, nonce)
		}
	}
	t.Logf("%d calls asked %d questions, each of which was answered once to the server that asked", calls, answers)
}

// schedules are calls of one client of one group.
type schedules struct {
	v      *visitor
	bridge *bridge
	way    string
	group  string
	wanted *wanted
	random *rand.Rand // used by run's goroutine alone

	mu   sync.Mutex // guards the fields below
	open []question // those that wait for others
	seen map[string]int
	hold int  // how many are held back before they are answered
	back bool // the last one first
}

// A question is one that has come, with the nonce that it asks for.
type question struct {
	steer.Question
	nonce string
}

func (s *schedules) run(n int, to remote.Target) {
	t := s.v.t
	t.Helper()
	s.v.open(to)
	s.seen = make(map[string]int)
	s.v.Decide(s.decide)
	for i := range n {
		s.once(i)
	}
	s.v.Decide(nil)
	s.v.shut()
}

// once has both members ask at once.
func (s *schedules) once(i int) {
	t := s.v.t
	t.Helper()
	times := [2]int{1 + s.random.IntN(2), 1 + s.random.IntN(2)}
	s.mu.Lock()
	s.hold, s.back, s.open = s.random.IntN(3), s.random.IntN(2) == 0, nil
	s.mu.Unlock()
	pair := askerPairs[s.group]
	order := s.random.Perm(2)
	var running [2]steer.Running
	var nonces [2]string
	for _, k := range order {
		nonces[k] = fmt.Sprintf("<%s %s %s %d %s>", s.v.name, s.way, s.group, i, pair[k])
		s.wanted.add(pair[k], nonces[k], times[k])
		args := map[string]any{"nonce": nonces[k], "delay": s.random.IntN(10), "times": times[k]}
		if strings.HasPrefix(pair[k], "new") {
			args = map[string]any{"nonce": nonces[k], "rounds": times[k]}
		}
		r, err := s.v.Begin("tools/call", map[string]any{"name": pair[k] + "__ask", "arguments": args}, false)
		if err != nil {
			t.Fatal(err)
		}
		running[k] = r
		time.Sleep(time.Duration(s.random.IntN(8)) * time.Millisecond) // part of the schedule
	}
	for k := range running {
		s.finish(running[k], nonces[k])
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for k := range pair {
		if s.seen[nonces[k]] != times[k] {
			t.Errorf("%s: the client was asked %d times for %q, want %d", s.group, s.seen[nonces[k]], nonces[k], times[k])
		}
	}
}

// finish waits for the result of a call, which has the answer. What is held back is given out
// while it waits.
func (s *schedules) finish(r steer.Running, nonce string) {
	t := s.v.t
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), answerTime)
	defer cancel()
	done := make(chan struct{})
	var letting sync.WaitGroup
	letting.Go(func() { s.letGo(done) }) // ends with the call
	result, err := s.v.Wait(ctx, r)
	close(done)
	letting.Wait()
	if err != nil {
		t.Fatalf("%s: the call for %q: %v; what passed last:\n%s\nthe client wrote:\n%s\nmcpbridge's goroutines:\n%s", s.group, nonce, err, s.v.lately(), s.v.Log(), s.bridge.goroutines())
	}
	if text := inline(result); !strings.Contains(strings.ReplaceAll(strings.ReplaceAll(text, `\u003c`, "<"), `\u003e`, ">"), "re "+nonce) {
		t.Errorf("%s: the call for %q gave %s", s.group, nonce, text)
	}
}

// letGo answers questions that wait for others that don't come.
func (s *schedules) letGo(done <-chan struct{}) {
	for {
		select {
		case <-done:
			return
		case <-time.After(50 * time.Millisecond):
			s.mu.Lock()
			open := s.open
			s.open = nil
			s.mu.Unlock()
			s.answer(open)
		}
	}
}

var nonceIn = regexp.MustCompile(`<[^>]*>`)

// decide takes a question. Some wait for one of the other call, and are answered in the order of
// the schedule.
func (s *schedules) decide(q steer.Question) {
	var p struct{ Message string }
	_ = json.Unmarshal(q.Params, &p) // a question without a message has no nonce
	nonce := nonceIn.FindString(p.Message)
	if server := nonce[strings.LastIndexByte(nonce, ' ')+1:]; len(nonce) < 2 || !strings.HasPrefix(p.Message, strings.TrimSuffix(server, ">")+": ") {
		s.v.t.Errorf("the question is %q, want the name of its server at the beginning", p.Message)
	}
	s.mu.Lock()
	s.seen[nonce]++
	s.open = append(s.open, question{q, nonce})
	var ready []question
	if len(s.open) > s.hold/2 { // one or two
		ready, s.open = s.open, nil
	}
	back := s.back
	s.mu.Unlock()
	if back {
		slices.Reverse(ready)
	}
	s.answer(ready)
}

func (s *schedules) answer(all []question) {
	for _, q := range all {
		text, err := json.Marshal(map[string]any{"action": "accept", "content": map[string]any{"nonce": "re " + q.nonce}})
		if err == nil {
			err = q.Answer(text)
		}
		if err != nil {
			s.v.t.Errorf("answering %q: %v", q.nonce, err)
		}
	}
}
