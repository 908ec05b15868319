package front

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/budget"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/moderntest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

func heldNote(method string, n int) mcp.Notification {
	return mcp.Notification{Method: method, Params: fmt.Append(nil, n)}
}

// What waits for a parked call is bounded: the newest progress outdates the one before
// it, and of the log messages that do not fit it is said how many there were.
func TestM2L17HeldNotesAreBounded(t *testing.T) {
	var h backlog
	if h.add(heldNote(spec.NotifyProgress, 0)) {
		t.Error("a message was held although none are")
	}
	h.open = true
	for n := range mcp.MaxBacklog - 2 {
		h.add(heldNote(spec.NotifyMessage, n))
	}
	for n := range 3 {
		h.add(heldNote(spec.NotifyProgress, n))
	}
	for range 3 {
		h.add(mcp.Notification{Method: spec.NotifyMessage, Params: make([]byte, mcp.MaxBacklogBytes)})
	}
	notes, lost := h.take()
	end := notes[len(notes)-2:]
	if len(notes) != mcp.MaxBacklog+1 || lost != 3 || string(end[0].Params) != "2" || !strings.Contains(string(end[1].Params), "3 log messages") {
		t.Errorf("%d notes, %d lost, the last are %s and %s; want %d, 3, the newest progress and what was lost", len(notes), lost, end[0].Params, end[1].Params, mcp.MaxBacklog+1)
	}
	if !h.add(heldNote(spec.NotifyMessage, 1)) {
		t.Error("a message overtakes those that are being delivered")
	}
	h.take()
	if notes, _ := h.take(); len(notes) != 0 || h.add(heldNote(spec.NotifyMessage, 2)) {
		t.Error("messages are held although all were delivered")
	}
}

// The sender may use its text again.
func TestM2L17HeldNotesAreCopies(t *testing.T) {
	h := backlog{open: true}
	n := heldNote(spec.NotifyMessage, 1)
	h.add(n)
	n.Params[0] = 'x'
	if notes, _ := h.take(); string(notes[0].Params) != "1" {
		t.Errorf("held params became %s", notes[0].Params)
	}
}

// What is held is memory: a message that there is none for is lost, which is told of.
func TestHeldNotesDrawOnTheMemory(t *testing.T) {
	account := budget.New(1 << 20).Account("ada")
	h := backlog{open: true, notes: mcp.Backlog{Memory: mcp.NewReservation(oneAccount{account}, mcp.Share{})}}
	big := mcp.Notification{Method: spec.NotifyMessage, Params: make([]byte, 100<<10)}
	for range 10 {
		h.add(big)
	}
	short := h.notes.Short()
	notes, lost := h.take()
	if !short || len(notes) != 2+1 || lost != 8 {
		t.Errorf("%d messages of 100 KiB are held in half of 1 MiB, %d lost, told of %v; want 2 and one that says so, 8 and true", len(notes), lost, short)
	}
	if h.add(big); h.notes.Short() {
		t.Error("what was delivered takes memory still")
	}
}

// Memory is given back with each message that is taken out, outdated or refused.
func TestBacklogGivesItsMemoryBack(t *testing.T) {
	memory := budget.New(64 << 20)
	account := memory.Account("ada")
	b := mcp.Backlog{Memory: mcp.NewReservation(oneAccount{account}, mcp.Share{})}
	big := make([]byte, 10<<10)
	for range mcp.MaxBacklog {
		if !b.Add(mcp.Notification{Method: spec.NotifyProgress, Params: big}) {
			t.Fatal("a message was refused")
		}
	}
	full := memory.Used()
	for range 1000 { // each outdates one
		b.Add(mcp.Notification{Method: spec.NotifyProgress, Params: big})
	}
	if grown := memory.Used() - full; grown > 1<<20 {
		t.Errorf("outdated messages take %d bytes still", grown)
	}
	for range 1000 { // there is no place for most of them
		b.Add(mcp.Notification{Method: spec.NotifyMessage, Params: big})
	}
	if grown := memory.Used() - full; grown > 2*mcp.MaxBacklogBytes {
		t.Errorf("refused messages take %d bytes", grown)
	}
	for b.Len() > 0 {
		b.Next()
	}
	if left := memory.Used(); left > 1<<20 {
		t.Errorf("messages that were taken out take %d bytes still", left)
	}
}

// oneAccount is a memory of one account.
type oneAccount struct{ a *budget.Account }

func (m oneAccount) Account(mcp.Share) *budget.Account { return m.a }
func (m oneAccount) Refuse() error                     { return errors.New("no memory") }

// countedMemory counts how often it was short.
type countedMemory struct {
	oneAccount
	refused atomic.Int32
}

func (m *countedMemory) Refuse() error {
	m.refused.Add(1)
	return m.oneAccount.Refuse()
}

// What a parked call keeps for its next response is paid from the front's memory. That there
// is none is reported, and the client told how many messages it does not get.
func TestBoundedParkedCallsDrawOnTheMemory(t *testing.T) {
	memory := &countedMemory{oneAccount: oneAccount{budget.New(2 << 20).Account("ada")}}
	callers := make(chan mcp.Caller, 1)
	s := moderntest.NewScript()
	s.OnServe = func(ctx context.Context, _ *mcp.Request, x mcp.Caller) (*mcp.Result, error) {
		callers <- x
		_, err := x.RequestInput(ctx, []mcp.InputRequest{{Method: spec.MethodElicit, Params: []byte(`{"message":"m"}`)}})
		return mcp.NewResult([]byte(`{"content":[]}`), nil), err
	}
	f := frontOf(t, s, func(o *Options) { o.Memory = memory })
	call := func(rest string) string {
		text := moderntest.Request("1", "tools/call", `{"elicitation":{}}`, `,"name":"ask"`+rest)
		return moderntest.OverHTTP(t, f, text, map[string]string{"Accept": "application/json, text/event-stream"}).Body.String()
	}
	asked := call("")
	_, state, _ := strings.Cut(asked, `"requestState":"`)
	state, _, ok := strings.Cut(state, `"`)
	if !ok {
		t.Fatalf("the call was answered with %s, want input_required", asked)
	}
	x, before := <-callers, memory.refused.Load()
	big := fmt.Appendf(nil, `{"level":"info","data":%q}`, strings.Repeat("x", 100<<10))
	for range 10 {
		if err := x.Notify(t.Context(), mcp.Notification{Method: spec.NotifyMessage, Params: big}); err != nil {
			t.Fatal(err)
		}
	}
	refused := int(memory.refused.Load() - before)
	answered := call(`,"requestState":"` + state + `","inputResponses":{"q1":{"action":"decline"}}`)
	// Five of them take all that half of 2 MiB has, and the call itself needs some.
	kept := strings.Count(answered, strings.Repeat("x", 100<<10))
	missed := fmt.Sprintf("%d log messages of the server are left out", 10-kept)
	if kept < 3 || kept > 5 || refused != 1 || !strings.Contains(answered, missed) || !strings.Contains(answered, `"content":[]`) {
		t.Errorf("the retry got %d messages, it was short %d times; want 3 to 5, 1, that %s, and the result; it ends with %.200s", kept, refused, missed, answered[max(0, len(answered)-200):])
	}
}

// Messages that follow one another at once are sent together, also where the last of them
// is not sent at all.
func TestNotesAreSentTogether(t *testing.T) {
	f := frontOf(t, moderntest.NewScript(), nil)
	for _, last := range []mcp.Notification{heldNote(spec.NotifyMessage, 9), heldNote(spec.NotifyProgress, 9)} {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodPost, "/", nil)
		r.Header.Set("Accept", "application/json, text/event-stream")
		p := &newHTTPReply(f, w, r, wire.NumberID(1)).reply
		c := &parkedCall{calls: f.parked, req: &mcp.Request{}, reply: p}
		for n := range 3 {
			note := heldNote(spec.NotifyMessage, n)
			note.More = true
			if err := c.Notify(t.Context(), note); err != nil || w.Body.Len() > 0 {
				t.Errorf("Notify() = %v, wrote %q", err, w.Body)
			}
		}
		want := 3
		if last.Method == spec.NotifyMessage {
			want = 4
		}
		if err := c.Notify(t.Context(), last); err != nil || strings.Count(w.Body.String(), "data:") != want {
			t.Errorf("the last Notify() = %v, wrote %q, want %d messages", err, w.Body, want)
		}
	}
}

// A front that ends gives back the memory of its parked calls.
func TestParkedCallsGiveTheirMemoryBackAtTheEnd(t *testing.T) {
	memory := budget.New(64 << 20)
	s := moderntest.NewScript()
	s.OnServe = func(ctx context.Context, _ *mcp.Request, x mcp.Caller) (*mcp.Result, error) {
		_, err := x.RequestInput(ctx, []mcp.InputRequest{{Method: spec.MethodElicit, Params: []byte(`{"message":"m"}`)}})
		return mcp.NewResult([]byte(`{"content":[]}`), nil), err
	}
	f := frontOf(t, s, func(o *Options) { o.Memory = oneAccount{memory.Account("ada")} })
	text := moderntest.Request("1", "tools/call", `{"elicitation":{}}`, `,"name":"ask","arguments":{"a":"`+strings.Repeat("x", 1<<20)+`"}`)
	moderntest.OverHTTP(t, f, text, map[string]string{"Accept": "application/json, text/event-stream"})
	if taken := memory.Used(); taken < 1<<20 {
		t.Fatalf("%d bytes are taken while the call is parked", taken)
	}
	f.Close()
	if left := memory.Used(); left >= 1<<20 { // an account keeps some ahead
		t.Errorf("%d bytes are taken still", left)
	}
}
