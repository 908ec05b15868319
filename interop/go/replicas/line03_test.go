package replicas

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// TestLine03Questions: a question on one replica's stream is answered at another, a parked
// call is retried at the others, and forged and replayed states are refused everywhere.
func TestLine03Questions(t *testing.T) {
	beside(t)
	over(t, []string{nats, redis, peers}, func(t *testing.T, engine string) {
		beside(t)
		w := newWorld(t, setup{engine: engine})
		for holder, a := range w.replicas {
			b, c := w.replicas[(holder+1)%3], w.replicas[(holder+2)%3]
			for range size(1, 10) {
				for _, f := range []*fixture{w.legacy, w.modern} {
					w.asksSession(t, f, a, a, b)
					w.asksSession(t, f, a, b, c)
					w.asksOld(t, f, a, b)
				}
				w.parks(t, a, b, c)
			}
		}
	})
}

const nonceWanted = "4711"

// asksSession has a session's call at one replica, and the answer to its question at another.
func (w *world) asksSession(t *testing.T, f *fixture, holder, at, then *replica) {
	t.Helper()
	s := w.mustOpen(holder, f.name, nil)
	defer s.end(t.Context(), then)
	events, id, err := s.begin(at, "tools/call", fmt.Sprintf(`{"name":"ask","arguments":{"nonce":%q}}`, nonceWanted))
	if err != nil {
		t.Fatalf("%s: the call at %s: %v", f.name, at.name, err)
	}
	defer events.close()
	q, err := events.find(recovery, "elicitation/create")
	if err != nil {
		t.Fatalf("%s: the question: %v", f.name, err)
	}
	if status := s.reply(t.Context(), then, questionID(t, q), `{"action":"accept","content":`+contentFor(q)+`}`); status != http.StatusAccepted {
		t.Errorf("%s: the answer at %s = %d, want 202", f.name, then.name, status)
	}
	if _, err := events.find(recovery, fmt.Sprintf(`"id":%d`, id), nonceWanted); err != nil {
		t.Errorf("%s: the result: %v", f.name, err)
	}
}

func questionID(t *testing.T, e event) json.RawMessage {
	t.Helper()
	var m struct{ ID json.RawMessage }
	if err := json.Unmarshal([]byte(e.data), &m); err != nil || m.ID == nil {
		t.Fatalf("a question without an id: %s", e.data)
	}
	return m.ID
}

// contentFor fills in the one field that a question has.
func contentFor(e event) string {
	for _, name := range []string{"nonce1", "nonce"} {
		if strings.Contains(e.data, `"`+name+`":{`) {
			return fmt.Sprintf(`{%q:%q}`, name, nonceWanted)
		}
	}
	return fmt.Sprintf(`{"nonce":%q}`, nonceWanted)
}

// asksOld has the question on the stream of HTTP+SSE, and all that is posted elsewhere.
func (w *world) asksOld(t *testing.T, f *fixture, holder, at *replica) {
	t.Helper()
	s, err := w.openOld(t.Context(), holder, f.name, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.feed.close()
	got := make(chan answer, 1)
	go func() { got <- s.call(t.Context(), at, "ask", map[string]any{"nonce": nonceWanted}) }() // ends with the answer
	q, err := s.feed.find(recovery, "elicitation/create")
	if err != nil {
		t.Fatalf("%s: the question: %v", f.name, err)
	}
	if status := s.reply(t.Context(), at, questionID(t, q), `{"action":"accept","content":`+contentFor(q)+`}`); status != http.StatusAccepted {
		t.Errorf("%s: the answer at %s = %d, want 202", f.name, at.name, status)
	}
	if a := <-got; a.problem() != "" || !strings.Contains(a.text, nonceWanted) {
		t.Errorf("%s: the result at %s: %v %s", f.name, holder.name, a.err, a.text)
	}
}

// parks has a modern client's call wait at one replica, and its retries come to others.
func (w *world) parks(t *testing.T, at, first, second *replica) {
	t.Helper()
	args := map[string]any{"nonce": fmt.Sprint("parked ", lastID.Add(1)), "times": 2}
	call := func(r *replica, more string) answer {
		return w.callTool(t.Context(), r.url("legacy"), "ask", args, more, nil)
	}
	one := call(at, "")
	if one.state == "" || len(one.questions) != 1 {
		t.Fatalf("a call that asks = %v %s", one.err, one.text)
	}
	for _, r := range w.replicas {
		w.wantRefused(t, r, args, one)
	}
	two := call(first, one.retry())
	if two.state == "" {
		t.Fatalf("the retry at %s, parked at %s = %v %d %s", first.name, at.name, two.err, two.status, two.text)
	}
	last := call(second, two.retry())
	if last.problem() != "" || !strings.Contains(last.text, args["nonce"].(string)) {
		t.Fatalf("the second retry at %s, parked at %s = %v %d %s", second.name, at.name, last.err, last.status, last.text)
	}
	for _, r := range w.replicas {
		for _, spent := range []answer{one, two} {
			if a := call(r, spent.retry()); a.code != -32602 {
				t.Errorf("a spent state at %s, parked at %s = %v %d %s, want -32602", r.name, at.name, a.err, a.status, a.text)
			}
		}
	}
}

// wantRefused tries states that nobody gave out, and a state with another call.
func (w *world) wantRefused(t *testing.T, r *replica, args map[string]any, good answer) {
	t.Helper()
	forged := map[string]string{
		"nobody's":          "1.AAAAAAAA." + strings.Repeat("A", 80),
		"of no form":        "nonsense",
		"its last altered":  good.state[:len(good.state)-2] + flip(good.state[len(good.state)-2:]),
		"its first altered": good.state[:14] + flip(good.state[14:16]) + good.state[16:],
	}
	for _, other := range w.replicas {
		if a := w.callTool(t.Context(), other.url("legacy"), "ask", map[string]any{"nonce": "another"}, "", nil); a.state != "" && a.state[:10] != good.state[:10] {
			forged["of another's instance"] = a.state[:10] + good.state[10:]
		}
	}
	for what, state := range forged {
		bad := good
		bad.state = state
		if a := w.callTool(t.Context(), r.url("legacy"), "ask", args, bad.retry(), nil); a.code != -32602 || a.took.Seconds() > 3 {
			t.Errorf("a state %s, at %s = %v %d %s after %v, want -32602", what, r.name, a.err, a.status, a.text, a.took)
		}
	}
	other := map[string]any{"nonce": "other arguments", "times": 2}
	if a := w.callTool(t.Context(), r.url("legacy"), "ask", other, good.retry(), nil); a.code != -32602 {
		t.Errorf("the state with other arguments at %s = %v %d %s, want -32602", r.name, a.err, a.status, a.text)
	}
}

// flip returns other letters.
func flip(s string) string {
	return strings.Map(func(r rune) rune {
		if r == 'A' {
			return 'B'
		}
		return 'A'
	}, s)
}
