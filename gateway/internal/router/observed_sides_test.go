package router

import (
	"bufio"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/observation/trace"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A ledger writes down the messages and headers of tools/call, on both sides.
type ledger struct {
	mu    sync.Mutex
	lines []string // "client→", "→client", "→server" or "server→", and the message
	heads []string // the same, the status, and the type
	steps []string
}

func (l *ledger) Begin(r *trace.Request) trace.Record {
	if r.Method != "tools/call" {
		return nil
	}
	if r.Arrival != nil && r.Arrival.Header != nil {
		l.Head(nil, trace.Head{Direction: trace.Received, Fields: r.Arrival.Header})
	}
	return l
}

func side(x *trace.Exchange, d trace.Direction) string {
	return []string{"client→", "→client", "server→", "→server"}[map[bool]int{false: 2}[x == nil]+int(d)]
}

func (l *ledger) Body(x *trace.Exchange, d trace.Direction, text []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, side(x, d)+string(text))
}

func (l *ledger) Head(x *trace.Exchange, h trace.Head) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.heads = append(l.heads, fmt.Sprint(side(x, h.Direction), " ", h.Status, " ", http.Header(h.Fields).Get("Content-Type")))
}

func (l *ledger) Event(e trace.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.steps = append(l.steps, e.Kind.String())
}

func (*ledger) Upstream(*trace.Exchange) {}
func (*ledger) Answered(*trace.Exchange) {}
func (*ledger) Follows(trace.Record)     {}
func (*ledger) End(*trace.Request)       {}

func (l *ledger) all() (lines, heads []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.lines), slices.Clone(l.heads)
}

// passed returns the messages of one side and direction.
func (l *ledger) passed(side string) (out []string) {
	lines, _ := l.all()
	for _, line := range lines {
		if text, ok := strings.CutPrefix(line, side); ok {
			out = append(out, text)
		}
	}
	return out
}

// wants reports messages of the server's side that are not what the server has sent and got.
func (l *ledger) wants(t *testing.T, p *scriptedPeer, question, result string) {
	t.Helper()
	p.mu.Lock()
	got := slices.DeleteFunc(slices.Clone(p.got), func(text string) bool {
		m, err := wire.Parse([]byte(text), wire.Options{})
		return err != nil || m.Method != "" && m.Method != "tools/call"
	})
	p.mu.Unlock()
	if to := l.passed("→server"); !slices.Equal(to, got) || len(got) != 2 {
		t.Errorf("observers were told of %q to the server, which got %q", to, got)
	}
	if from := l.passed("server→"); len(from) != 2 || from[0] != question || !strings.Contains(from[1], result) {
		t.Errorf("observers were told of %q by the server, want %s and a result with %s", from, question, result)
	}
}

const askedOfClient = `{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"message":"who?","requestedSchema":{"type":"object","properties":{}}}}`

// observed returns a rig whose server asks during a call, and what observers are told of it.
func observedRig(t *testing.T) (*rig, *ledger) {
	l := &ledger{}
	r := newRig(t, func(o *Options) { o.Observers = trace.New(l) })
	r.peer.handle["tools/call"] = func(c *peerCall) string {
		return say(c.ask("elicitation/create", `{"message":"who?","requestedSchema":{"type":"object","properties":{}}}`))
	}
	return r, l
}

// Observers are told of a question, and of its answer, as the server has sent and got them, byte
// for byte, and of the headers of both sides: with a client of another era.
func TestBothSidesOfAQuestionModern(t *testing.T) {
	t.Parallel()
	r, l := observedRig(t)
	rd := r.tool(t, "1", allQuestions, "").round(t)
	got := r.tool(t, "2", allQuestions, rd.retry(map[string]string{"elicitation/create": accept}))
	if !strings.Contains(got.body, "Ada") {
		t.Fatalf("result = %s", got.body)
	}
	l.wants(t, r.peer, askedOfClient, "Ada")
	if from, to := l.passed("client→"), l.passed("→client"); len(from) != 2 || len(to) != 2 || !strings.Contains(to[0], "input_required") || to[1] != strings.TrimSpace(got.body) {
		t.Errorf("observers were told of %q by the client, and %q to it", from, to)
	}
	_, heads := l.all()
	for _, want := range []string{"client→ 0 application/json", "→client 200 application/json", "→server 0 application/json", "server→ 200 text/event-stream"} {
		if !slices.Contains(heads, want) {
			t.Errorf("no header %q; told of %q", want, heads)
		}
	}
}

// The same where client and server are both legacy, so that messages are passed on.
func TestBothSidesOfAQuestionLegacy(t *testing.T) {
	t.Parallel()
	r, l := observedRig(t)
	open := r.send(t, http.MethodPost, strings.Replace(hello, `"capabilities":{}`, `"capabilities":{"elicitation":{}}`, 1), legacyHeaders(""))
	h := legacyHeaders(open.header.Get("Mcp-Session-Id"))
	r.send(t, http.MethodPost, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, h)
	const asks, answers = `{"jsonrpc":"2.0","id":"one","method":"tools/call","params":{"name":"a"}}`, `{"jsonrpc":"2.0","id":1,"result":{"action":"accept","content":{"name":"Ada"}}}`
	res := r.open(t, http.MethodPost, asks, h)
	defer res.Body.Close()
	f := &frames{t, res, bufio.NewReader(res.Body)}
	question := f.next()
	for question == "" && res.StatusCode == http.StatusOK { // an event without data comes first
		question = f.next()
	}
	if got := r.send(t, http.MethodPost, answers, h); got.status != http.StatusAccepted {
		t.Fatalf("the answer = %d %s", got.status, got.body)
	}
	result := f.next()
	bridgetest.Eventually(t, "observers are told of all", func() bool { return len(l.passed("→client")) == 2 })
	l.wants(t, r.peer, askedOfClient, "Ada")
	if from := l.passed("client→"); !slices.Equal(from, []string{asks, answers}) {
		t.Errorf("observers were told of %q by the client", from)
	}
	if to := l.passed("→client"); !slices.Equal(to, []string{question, result}) {
		t.Errorf("observers were told of %q to the client, which got %q and %q", to, question, result)
	}
	f.next()
	bridgetest.Eventually(t, "observers are told of the client's header", func() bool {
		_, heads := l.all()
		return slices.Contains(heads, "→client 200 text/event-stream")
	})
	if want := []string{"input_required", "input_answered"}; !slices.Equal(l.steps, want) {
		t.Errorf("the steps are %q, want %q", l.steps, want)
	}
}
