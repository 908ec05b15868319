package trace

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A diary is an Observer that writes down what it is told.
type diary struct {
	mu     sync.Mutex
	lines  []string
	unwell bool // it wants no request
}

func (d *diary) add(parts ...string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, strings.Join(parts, " "))
}

func (d *diary) text() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return strings.Join(d.lines, "\n")
}

func (d *diary) Begin(r *Request) Record {
	if d.unwell {
		return nil
	}
	d.add("begin", r.Method, r.ID)
	return &entry{d, r}
}

type entry struct {
	d *diary
	r *Request
}

func (e *entry) Upstream(x *Exchange) {
	x.Context.Traceparent = "00-own"
	if x.Former != nil {
		e.d.add("upstream again", x.Method)
		return
	}
	e.d.add("upstream", x.Method)
}
func (e *entry) Answered(x *Exchange) {
	_, err := x.Outcome()
	e.d.add("answered", x.Method, text(err))
}
func (e *entry) Event(ev Event)   { e.d.add("event of", e.r.ID, ev.Kind.String(), ev.Detail) }
func (e *entry) Follows(f Record) { e.d.add(e.r.ID, "follows", f.(*entry).r.ID) }
func (e *entry) Body(x *Exchange, d Direction, text []byte) {
	e.d.add("body", string(text))
}
func (e *entry) End(r *Request) {
	outcome, _, err := r.Outcome()
	in, out := r.Size()
	e.d.add("end", r.ID, outcome, text(err), wire.NumberID(in).String(), wire.NumberID(out).String())
}

func text(err error) string {
	if err == nil {
		return "-"
	}
	return err.Error()
}

func TestRequestIsTold(t *testing.T) {
	d := new(diary)
	o := New(d)
	r := o.Begin(Info{Method: "tools/call", ID: "1"})
	r.Received([]byte("call"))
	x := r.Upstream(Exchange{Method: "tools/call"})
	x.Sent([]byte("forwarded"))
	x.End(errors.New("lost"))
	r.Event(Repeated, "lost")
	x = r.Upstream(Exchange{Method: "tools/call"})
	r.Event(Parked, "")
	r.Note("input_required", nil)
	r.End(nil)

	retry := o.Begin(Info{Method: "tools/call", ID: "2"})
	r.Continue(retry)
	r.Event(InputAnswered, "elicitation/create")
	x.End(nil)
	r.Note("ok", nil)
	r.Note("failed", errors.New("late"))
	retry.Sent([]byte("result"))
	retry.End(nil)
	retry.End(errors.New("again"))
	want := `begin tools/call 1
body call
upstream tools/call
body forwarded
answered tools/call lost
event of 1 repeated lost
upstream again tools/call
event of 1 parked 
end 1 input_required - 4 0
begin tools/call 2
2 follows 1
event of 2 input_answered elicitation/create
answered tools/call -
body result
end 2 ok - 0 6`
	if got := d.text(); got != want {
		t.Errorf("told:\n%s\nwant:\n%s", got, want)
	}
	if a, b := r.RequestID(), retry.RequestID(); a == b || a == "" {
		t.Errorf("request ids %q and %q", a, b)
	}
}

func TestObserversComeAndGo(t *testing.T) {
	var none *Observers
	if none.Any() || none.Begin(Info{}) != nil {
		t.Error("nil observes")
	}
	o, d := New(), new(diary)
	if o.Any() || o.Begin(Info{}) != nil {
		t.Error("nobody observes, and yet there is a request")
	}
	remove := o.Add(d)
	if !o.Any() || o.Begin(Info{}) == nil {
		t.Error("no request for an observer")
	}
	d.unwell = true
	if o.Begin(Info{}) != nil {
		t.Error("a request that nobody wants")
	}
	remove()
	remove()
	if o.Any() {
		t.Error("an observer has not left")
	}
}

// Without an observer nothing is allocated.
func TestNilAllocatesNothing(t *testing.T) {
	var r *Request
	body, err := []byte("{}"), errors.New("x")
	if n := testing.AllocsPerRun(100, func() {
		x := r.Upstream(Exchange{Method: "tools/call"})
		x.Sent(body)
		x.Received(body)
		x.End(err)
		r.Event(Repeated, "why")
		r.Received(body)
		r.Sent(body)
		r.Note("ok", nil)
		r.Continue(nil)
		r.End(nil)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestContextInMessages(t *testing.T) {
	got := FromMeta([]byte(`{"a":1,"traceparent":"p","tracestate":"s=1","baggage":"b=2"}`))
	if want := (Context{"p", "s=1", "b=2"}); got != want {
		t.Errorf("FromMeta: %+v, want %+v", got, want)
	}
	got = FromHeader(map[string][]string{"Traceparent": {"p"}, "Tracestate": {"a=1", "b=2"}})
	if want := (Context{"p", "a=1,b=2", ""}); got != want {
		t.Errorf("FromHeader: %+v, want %+v", got, want)
	}
	if got := FromHeader(map[string][]string{"Traceparent": {"p", "q"}}); !got.IsZero() {
		t.Errorf("two traceparents: %+v", got)
	}
	x := &Exchange{Context: Context{Traceparent: "mine"}}
	meta := wire.AppendEdited(nil, []byte(`{"traceparent":"theirs","tracestate":"s","k":1}`), x.Edits(nil)...)
	if want := `{"traceparent":"mine","k":1}`; string(meta) != want {
		t.Errorf("_meta: %s, want %s", meta, want)
	}
	h := map[string][]string{}
	if !x.SetHeader(h) || len(h) != 1 || h["Traceparent"][0] != "mine" {
		t.Errorf("header: %v", h)
	}
}
