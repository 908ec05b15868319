package deviations

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/url"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/mcpbridge/mcpbridge/interop/internal/process"
	"github.com/mcpbridge/mcpbridge/interop/internal/rig"
)

// usualOnConnections is the seed of those scripts that have to meet each line of the differences
// on connections.
const usualOnConnections = 1

// onPipe is the value of the sides that a connection of messages does not have.
const onPipe = "pipe"

// An opening is what a client sends before its deviations: the initialize of a session, or
// nothing.
type opening struct{ asks, envelope string }

// openings are those that are played against each server.
var openings = []opening{{}, {"2025-11-25", "legacy"}, {"2026-07-28", "none"}, {"2025-03-26", "none"}, {"2024-11-05", "partial"}, {"2025-11-25", "full"}}

// shortly is how many of the openings CI plays, and slowly how many against servers that start
// slowly.
const shortly, slowly = 4, 2

// A script is what is sent on one connection, in order.
type script struct {
	opening
	deviations []deviation
}

// scripts draws n deviations for each opening. A second initialize comes last, since servers
// differ in what is open after it.
func scripts(seed uint64, openings []opening, n int) (all []script) {
	r := rand.New(rand.NewPCG(seed, 30))
	for _, o := range openings {
		s := script{opening: o}
		session := "own"
		if o.asks == "" {
			session = "none"
		}
		seen := make(map[deviation]bool)
		for i := range n {
			verbs := []string{"tools/list", "tools/call", "resources/read", "ping", "server/discover", "notification", "response", "batch"}
			d := deviation{verbs[i%len(verbs)], "2025-11-25", onPipe, "", session, onPipe, ""}
			d[envelope] = values[envelope][r.IntN(len(values[envelope]))]
			d[body] = []string{"fine", "fine", "fine", "fine", "text-id", "text-id", "no-params", "null-params"}[r.IntN(8)]
			if o.asks != "" {
				d[asks] = o.asks
			}
			if strings.HasSuffix(d[body], "-params") || d[verb] == "response" {
				d[envelope] = "none" // there is no place for it
			}
			if !seen[d] {
				seen[d] = true
				s.deviations = append(s.deviations, d)
			}
		}
		isBatch := func(d deviation) bool { return d[verb] == "batch" }
		batches := slices.Collect(func(yield func(deviation) bool) {
			for _, d := range s.deviations {
				if isBatch(d) && !yield(d) {
					return
				}
			}
		})
		s.deviations = append(slices.DeleteFunc(s.deviations, isBatch), batches...) // some servers end at one
		s.deviations = append(s.deviations, deviation{"initialize", "2025-11-25", onPipe, values[envelope][r.IntN(4)], session, onPipe, "fine"})
		all = append(all, s)
	}
	return all
}

// A line is a connection of messages.
type line struct {
	grace time.Duration // how long an answer may come after that of a later ping
	write func(text string) error
	came  chan string // closed when nothing more comes
	close func()
	log   func() string
}

// openPipe starts a program and returns its pipes.
func openPipe(argv []string) (*line, error) {
	cmd := exec.Command(argv[0], argv[1:]...)
	var log process.Tail
	cmd.Stderr = &log
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	l := &line{came: make(chan string, 64), log: log.String, write: func(text string) error {
		_, err := io.WriteString(in, text+"\n")
		return err
	}}
	go func() { // ends with the program
		defer close(l.came)
		for lines := bufio.NewReader(out); ; {
			text, err := lines.ReadString('\n')
			if err != nil {
				return
			}
			l.came <- text
		}
	}()
	l.close = func() {
		_ = in.Close()
		late := time.AfterFunc(briefly, func() { _ = cmd.Process.Kill() })
		defer late.Stop()
		for range l.came {
		}
		_ = cmd.Wait() // how a server ends is not what is tested
	}
	return l, nil
}

// openSocket opens a WebSocket.
func openSocket(address string) (*line, error) {
	d := websocket.Dialer{Subprotocols: []string{"mcp"}, HandshakeTimeout: patience}
	ws, _, err := d.Dial(address, nil)
	if err != nil {
		return nil, err
	}
	l := &line{came: make(chan string, 64), log: func() string { return "" }, write: func(text string) error {
		return ws.WriteMessage(websocket.TextMessage, []byte(text))
	}}
	go func() { // ends with the connection
		defer close(l.came)
		for {
			_, text, err := ws.ReadMessage()
			if err != nil {
				return
			}
			l.came <- string(text)
		}
	}()
	l.close = func() {
		_ = ws.Close()
		for range l.came {
		}
	}
	return l, nil
}

var errSilent = errors.New("no answer")

// starting is how long an answer may take. A server may have to be started for any: for a second
// session, mcpbridge starts another process.
const starting = time.Minute

// play plays a script, and returns an outcome for each of its deviations.
func (l *line) play(p place, s script) ([]outcome, error) {
	defer l.close()
	if s.asks != "" {
		hello := deviation{"initialize", s.asks, onPipe, s.envelope, "none", onPipe, "fine"}
		if _, err := l.ask(p, hello, "hello"); err != nil {
			return nil, fmt.Errorf("initialize: %w; it wrote:\n%s", err, l.log())
		}
		if err := l.write(p.message(deviation{"initialized", s.asks, onPipe, "none", "own", onPipe, "fine"})); err != nil {
			return nil, err
		}
	}
	outcomes := make([]outcome, 0, len(s.deviations))
	for i, d := range s.deviations {
		o, err := l.ask(p, d, fmt.Sprint("n", i))
		if err != nil && !errors.Is(err, errSilent) {
			return outcomes, fmt.Errorf("%s: %w; it wrote:\n%s", d, err, l.log())
		}
		outcomes = append(outcomes, o)
	}
	return outcomes, nil
}

// ask sends d under an id, and a ping behind it, and returns what d got. Some servers say nothing
// of a message that they don't take: soon after the ping's answer no other is waited for.
func (l *line) ask(p place, d deviation, id string) (o outcome, err error) {
	quoted, second := fmt.Sprintf("%q", id), fmt.Sprintf("%q", id+"b")
	if d[body] != "text-id" {
		number := 100
		for _, c := range id {
			number = number*31 + int(c)
		}
		quoted, second = fmt.Sprint(number), fmt.Sprint(number+1)
	}
	text := strings.NewReplacer(`"seven"`, quoted, `"eight"`, second, `"id":7`, `"id":`+quoted, `"id":8`, `"id":`+second).Replace(p.message(d))
	if err := l.write(text); err != nil {
		return o, err
	}
	behind := id + "-behind"
	if d[verb] != "initialize" { // a ping may not come before its answer
		if err := l.write(`{"jsonrpc":"2.0","id":"` + behind + `","method":"ping"}`); err != nil {
			return o, err
		}
	}
	late, all, rest := time.NewTimer(starting), "", d.answersDue()
	defer late.Stop()
	for pinged := d[verb] == "initialize"; rest > 0 || !pinged; {
		select {
		case came, ok := <-l.came:
			switch {
			case !ok:
				return o, io.ErrUnexpectedEOF
			case of(came) == behind:
				pinged = true
				late.Reset(l.grace)
			case of(came) == strings.Trim(quoted, `"`) || strings.HasPrefix(came, "["):
				all, rest = came, 0
			case of(came) == strings.Trim(second, `"`) || d[verb] == "batch" && isError(came):
				rest--
				all = came
			case isError(came) && of(came) == "":
				all, rest = came, 0
			}
		case <-late.C:
			return o, errSilent
		}
	}
	results := 0
	results, o.code = answers(all)
	o.text, o.taken = all, !d.isRequest() && o.code == 0 || results > 0 && o.code == 0
	return o, nil
}

// answersDue is how many answers d gets, each in a message of its own.
func (d deviation) answersDue() int {
	if d.isRequest() {
		return 1
	}
	return 0
}

// of returns the id of the request that a message answers; it is empty if it is no answer to one.
func of(text string) string {
	var m struct {
		ID     any
		Method string
	}
	if json.Unmarshal([]byte(text), &m) != nil || m.ID == nil || m.Method != "" {
		return ""
	}
	if n, ok := m.ID.(float64); ok {
		return fmt.Sprintf("%.0f", n)
	}
	return fmt.Sprint(m.ID)
}

func isError(text string) bool {
	_, code := answers(text)
	return code != 0
}

// TestDeviationsOnConnections plays messages that keep to no revision on the pipes of each
// published server, directly, through mcpbridge wrap, and over a WebSocket of mcpbridge serve.
func TestDeviationsOnConnections(t *testing.T) {
	seed, n := rig.Int(t, "SEED", usualOnConnections), rig.Int(t, "DEVIATIONS", 300)/10 // per opening
	r := &record{stays: differences(t, true), met: make(map[string]int)}
	t.Run("servers", func(t *testing.T) {
		for _, s := range all {
			if s.pipe != nil {
				t.Run(s.name, func(t *testing.T) {
					t.Parallel()
					r.playConnections(t, s, scripts(uint64(seed), openings[:s.openings(n)], int(n)))
				})
			}
		}
	})
	r.report(t, seed == usualOnConnections && n == 30)
}

// openings is how many openings are played when n deviations are.
func (s published) openings(n int64) int {
	switch {
	case n > 30:
		return len(openings)
	case s.slow:
		return slowly
	}
	return shortly
}

func (r *record) playConnections(t *testing.T, s published, scripts []script) {
	argv := s.pipe()
	quoted := make([]string, len(argv)-1)
	for i, a := range argv[1:] {
		quoted[i] = fmt.Sprintf("%q", a)
	}
	endpoints, admin := serve(t, fmt.Sprintf("servers:\n  it: {command: %q, args: [%s]}\n", argv[0], strings.Join(quoted, ", ")))
	at, err := url.Parse(endpoints)
	if err != nil {
		t.Fatal(err)
	}
	at.Scheme = "ws"
	for _, sc := range scripts {
		direct, err := playOn(func() (*line, error) { return openPipe(argv) }, time.Second, s.place, sc)
		if err != nil {
			t.Logf("directly: %v", err) // what it has not answered is not taken
		}
		for how, open := range map[string]func() (*line, error){
			"wrap": func() (*line, error) {
				return openPipe(append(process.WithCache(programs.Bridge, "wrap", "--"), argv...))
			},
			"ws": func() (*line, error) { return openSocket(at.String() + "it") },
		} {
			got, err := playOn(open, patience, s.place, sc)
			if err != nil {
				t.Errorf("%s after %v: %v", how, sc.opening, err)
			}
			for i, d := range sc.deviations {
				if i < len(direct) && i < len(got) {
					r.compare(s.name, d, direct[i], got[i])
				}
			}
		}
	}
	if n := rig.Gauges(t, newClient(t), admin)[`mcpbridge_quirks_total{quirk="stray-envelope",server="it"}`]; n == 0 {
		t.Error("mcpbridge has not met stray-envelope")
	}
}

// playOn opens a line and plays a script on it. grace is how long an answer may come after that of
// a later ping.
func playOn(open func() (*line, error), grace time.Duration, p place, s script) ([]outcome, error) {
	l, err := open()
	if err != nil {
		return nil, err
	}
	l.grace = grace
	return l.play(p, s)
}
