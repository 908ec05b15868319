package groups

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/interop/internal/steer"
	"github.com/mcpbridge/mcpbridge/interop/internal/tap"
	"github.com/mcpbridge/mcpbridge/interop/remote"
)

// A client is one on an SDK, under remote control.
type client struct {
	name     string
	argv     []string
	revision string
}

func (c *client) modern() bool { return c.revision >= "2026-07-28" }

// clients are those of the round, of both eras.
func clients() []client {
	const legacy, modern = "2025-11-25", "2026-07-28"
	return []client{
		{"typescript-1.32.2", node("node/remote.mjs", "sdk-1.32.2"), legacy},
		{"typescript-2.4.0", node("node/remote-2.mjs"), modern},
		{"python-1.30.0", python("python-1", "client1.py"), legacy},
		{"python-2.3.0", python("python-2", "client2.py", "auto"), modern},
		{"go-1.6.1", []string{peer("bin/client-go161")}, legacy},
		{"go-1.8.0", []string{peer("bin/client-go180")}, modern},
	}
}

// answers are what clients say to questions: what any of the members may want to know.
var answers = map[string]json.RawMessage{
	"elicitation/create": json.RawMessage(`{"action":"accept","content":{"name":"Ada","color":"red","context":"a proof","answer":"Ada","username":"ada","email":"ada@example.com"}}`),
}

// A visitor is a client in its process, with what passes between it and mcpbridge.
type visitor struct {
	*steer.Client
	client
	t    *testing.T
	tap  *tap.Tap
	dir  string                 // of files of members
	turn map[string]*sync.Mutex // by member: held while what its state is plays a part
	url  string                 // of mcpbridge
}

// startVisitor starts a client. It ends with the test.
func startVisitor(t *testing.T, c client, b *bridge, dir string, turn map[string]*sync.Mutex) *visitor {
	t.Helper()
	between, err := tap.New("http://"+b.listen, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(between.Close)
	s, err := steer.Start(c.argv...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.End(); err != nil || t.Failed() {
			t.Logf("%v; the client wrote:\n%s", err, s.Log())
		}
	})
	return &visitor{s, c, t, between, dir, turn, b.listen}
}

// ask asks, and returns what the SDK made of the answer.
func (v *visitor) ask(method string, params any, progress bool) (any, error) {
	ctx, cancel := context.WithTimeout(v.t.Context(), answerTime)
	defer cancel()
	r, err := v.Begin(method, params, progress)
	if err != nil {
		return nil, err
	}
	return v.Wait(ctx, r)
}

// open has the client connect to a target.
func (v *visitor) open(to remote.Target) {
	v.t.Helper()
	to.Capabilities = json.RawMessage(`{"elicitation":{}}`)
	hello, err := v.ask("initialize", to, false)
	if err != nil {
		v.t.Fatalf("connecting to %s%v: %v; the client wrote:\n%s", to.URL, to.Argv, err, v.Log())
	}
	want := v.revision
	if to.Transport == "sse" || to.Transport == "ws" {
		want = "2025-11-25"
	}
	if met, ok := hello.(map[string]any); !ok || met["protocolVersion"] != nil && met["protocolVersion"] != want {
		v.t.Fatalf("connecting to %s%v = %v, want revision %s", to.URL, to.Argv, hello, want)
	}
}

// shut ends the session.
func (v *visitor) shut() {
	v.t.Helper()
	if _, err := v.ask(remote.Close, nil, false); err != nil {
		v.t.Errorf("closing a session: %v", err)
	}
}

// A seen is what a client saw of one step.
type seen struct {
	result   string   // as the SDK gives it, as JSON; or its error
	asked    []string // questions, as JSON
	progress []string // as JSON
	wire     []string // results and errors of the step's method, as they stood in the bytes
}

// take takes a step; prefix is what names begin with here.
func (v *visitor) take(s *step, prefix string) *seen {
	v.Expect(answers)
	v.tap.Forget()
	params := json.RawMessage(v.fill(string(s.shown(prefix))))
	result, err := v.ask(s.method, params, s.progress > 0)
	got := &seen{result: outcome(v.t, result, err)}
	if strings.HasPrefix(got.result, "no reply") {
		v.t.Fatalf("%s %s: %s; the client wrote:\n%s", s.method, params, got.result, v.Log())
	}
	for q, ok := v.Asked.Take(0); ok; q, ok = v.Asked.Take(0) {
		got.asked = append(got.asked, inline(q))
	}
	if s.progress > 0 {
		for _, p := range v.Progress.Collect(s.progress) {
			got.progress = append(got.progress, inline(p))
		}
	}
	got.wire = passed(v.tap.Passed(), s.method)
	return got
}

// outcome returns a result as JSON, or the error.
func outcome(t *testing.T, result any, err error) string {
	t.Helper()
	e := (*remote.Error)(nil)
	switch {
	case errors.As(err, &e):
		return inline(e)
	case err != nil:
		return err.Error()
	}
	return inline(result)
}

// lately returns what has passed last between the client and mcpbridge.
func (v *visitor) lately() string {
	all := v.tap.Passed()
	var out strings.Builder
	for _, p := range all[max(0, len(all)-60):] {
		way := "<-"
		if p.Up {
			way = "->"
		}
		fmt.Fprintf(&out, "%s %s\n", way, p.Text)
	}
	return out.String()
}

func (v *visitor) fill(text string) string {
	return strings.NewReplacer("{dir}", v.dir, "{client}", v.name).Replace(text)
}

// passed returns results and errors of requests of a method, as they stood in the bytes.
func passed(all []tap.Passed, method string) (texts []string) {
	type message struct {
		ID            json.RawMessage
		Method        string
		Result, Error json.RawMessage
	}
	wanted := make(map[string]bool)
	for _, p := range all {
		var m message
		if json.Unmarshal([]byte(p.Text), &m) != nil {
			continue // no JSON, which the SDK sees, too
		}
		switch {
		case p.Up && m.Method == method:
			wanted[string(m.ID)] = true
		case !p.Up && m.Method == "" && wanted[string(m.ID)]:
			texts = append(texts, string(m.Result)+string(m.Error))
		}
	}
	return texts
}

// A tour is what a client saw of one member, at its own endpoint or in a group.
type tour struct {
	lists map[string][]json.RawMessage // items by what is listed, as they stood in the bytes
	items map[string][]any             // likewise, as the SDK gives them
	steps []*seen
}

// everyList reads all lists whole.
func (v *visitor) everyList() *tour {
	v.t.Helper()
	out := &tour{lists: make(map[string][]json.RawMessage), items: make(map[string][]any)}
	for _, l := range lists {
		v.tap.Forget()
		items, err := v.pages(l.method, l.of)
		if err != nil && !isMethodNotFound(err) {
			v.t.Fatalf("%s: %v; the client wrote:\n%s", l.method, err, v.Log())
		}
		out.items[l.of] = items
		for _, text := range passed(v.tap.Passed(), l.method) {
			var page map[string]json.RawMessage
			var raw []json.RawMessage
			if json.Unmarshal([]byte(text), &page) == nil && json.Unmarshal(page[l.of], &raw) == nil {
				out.lists[l.of] = append(out.lists[l.of], raw...)
			}
		}
	}
	return out
}

// isMethodNotFound reports whether there is no such list.
func isMethodNotFound(err error) bool {
	e := (*remote.Error)(nil)
	return errors.As(err, &e) && (e.Code == -32601 || strings.Contains(e.Message, "does not support"))
}

func (v *visitor) pages(method, of string) (items []any, err error) {
	params := map[string]any{}
	for {
		result, err := v.ask(method, params, false)
		if err != nil {
			return nil, err
		}
		page, _ := result.(map[string]any)
		some, _ := page[of].([]any)
		items = append(items, some...)
		next, _ := page["nextCursor"].(string)
		if next == "" || len(items) > 10_000 {
			return items, nil
		}
		params["cursor"] = next
	}
}

// steps takes those of a member, and watches its resource.
func (v *visitor) steps(m *member, prefix string) (all []*seen) {
	v.t.Helper()
	if turn := v.turn[m.name]; turn != nil {
		turn.Lock()
		defer turn.Unlock()
	}
	for i := range m.asks {
		if m.asks[i].legacy && v.modern() {
			continue
		}
		all = append(all, v.take(&m.asks[i], prefix))
	}
	if m.watches != nil {
		v.watch(m.watches, prefix)
	}
	return all
}

// againTime is how long a change is waited for before it is made again: some SDKs are subscribed
// later than they say.
const againTime = time.Second

// watch subscribes, has the resource change, and waits to be told.
func (v *visitor) watch(w *watching, prefix string) {
	v.t.Helper()
	v.Changed.Clear()
	uri := map[string]any{"uri": w.uri}
	if _, err := v.ask("resources/subscribe", uri, false); err != nil {
		v.t.Errorf("subscribing to %s: %v", w.uri, err)
		return
	}
	defer func() {
		if _, err := v.ask("resources/unsubscribe", uri, false); err != nil {
			v.t.Errorf("unsubscribing from %s: %v", w.uri, err)
		}
	}()
	trigger := call(w.tool, w.arguments)
	for end := time.Now().Add(answerTime); time.Now().Before(end); {
		if w.before != "" {
			before := step{method: "tools/call", params: w.before}
			if _, err := v.ask(before.method, json.RawMessage(v.fill(string(before.shown(prefix)))), false); err != nil {
				v.t.Errorf("%s: %v", w.before, err)
			}
		}
		if _, err := v.ask(trigger.method, json.RawMessage(v.fill(string(trigger.shown(prefix)))), false); err != nil {
			v.t.Errorf("%s: %v", w.tool, err)
			return
		}
		for got, ok := v.Changed.Take(againTime); ok; got, ok = v.Changed.Take(againTime) {
			if got == w.uri {
				return
			}
		}
	}
	v.t.Errorf("nothing was told of %s within %v of its change", w.uri, answerTime)
}

// httpTarget is where a client finds what mcpbridge has under a name.
func (v *visitor) httpTarget(name string) remote.Target {
	return remote.Target{Transport: "http", URL: v.tap.URL("/mcp/" + name)}
}
