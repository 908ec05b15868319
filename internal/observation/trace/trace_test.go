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
	asks   bool // for names
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
	if d.asks {
		r.Subject()
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

// What a member of a group serves is told of by its own name, and by that of the group.
func TestG03ServedByAMember(t *testing.T) {
	(*Request)(nil).Pass("files", "read")
	r := New(new(diary)).Begin(Info{Server: "all", Name: "files__read"})
	if server, group, name := r.Served(); server != "all" || group != "" || name != "files__read" {
		t.Errorf("Served() = %q, %q, %q", server, group, name)
	}
	r.Pass("files", "read")
	if server, group, name := r.Served(); server != "files" || group != "all" || name != "read" {
		t.Errorf("Served() = %q, %q, %q after Pass", server, group, name)
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

// A calm is an Observer and a quiet record.
type calm struct{ t *testing.T }

func (c calm) Begin(*Request) Record { return c }
func (c calm) Upstream(x *Exchange)  { x.Context.Traceparent = "00-calm" }
func (c calm) Answered(*Exchange)    { c.t.Error("told of an answer") }
func (c calm) Event(Event)           { c.t.Error("told of an event") }
func (c calm) Follows(Record)        {}
func (c calm) End(*Request)          { c.t.Error("told of the end") }
func (c calm) Quiet()                {}

// Nobody is told more of a request than it wants: a quiet record hears of exchanges alone.
func TestQuietRecords(t *testing.T) {
	o := New(calm{t})
	r := o.Begin(Info{Method: "tools/call", Named: named{t, "nobody asks"}})
	x := r.Upstream(Exchange{Method: "tools/call"})
	if x.Context.Traceparent != "00-calm" {
		t.Errorf("the server gets %+v", x.Context)
	}
	r.Event(Repeated, "why")
	x.End(nil)
	r.Note("ok", nil)
	r.End(nil)
	if !r.began.IsZero() {
		t.Error("the clock was read for nobody")
	}
}

type named struct {
	t    *testing.T
	text string
}

func (n named) Subject() string {
	if n.t != nil {
		n.t.Error(n.text)
	}
	return n.text
}

func TestSubjectIsAskedForOnce(t *testing.T) {
	d := new(diary)
	d.asks = true
	r := New(d).Begin(Info{Named: named{nil, "echo"}})
	if r.Named != nil || r.Subject() != "echo" {
		t.Errorf("subject %q, want that of Begin", r.Subject())
	}
	if r := New(d).Begin(Info{Name: "given"}); r.Subject() != "given" {
		t.Errorf("subject %q", r.Subject())
	}
}

// The first request of an arrival has its memory; further ones have their own.
func TestArrivals(t *testing.T) {
	o := New(new(diary))
	if a := New().Arrive(Arrival{Peer: "p"}); a != nil {
		t.Errorf("nobody observes, and yet there is %+v", a)
	}
	a := o.Arrive(Arrival{Peer: "p"})
	first, second := o.Begin(Info{Arrival: a, ID: "1"}), o.Begin(Info{Arrival: a, ID: "2"})
	if first == second || first.ID != "1" || second.ID != "2" || first.Arrival.Peer != "p" || second.Arrival.Peer != "p" {
		t.Errorf("requests %v and %v", first.Info, second.Info)
	}
	if first != &a.room.request {
		t.Error("the first request has other memory")
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
	const id = "4bf92f3577b34da6a3ce929d0e0e4736"
	for parent, want := range map[string]string{
		"00-" + id + "-00f067aa0ba902b7-01": id, "01-" + id + "-00f067aa0ba902b7-01-more": id, "": "", "00-" + id: "",
		"00-00000000000000000000000000000000-00f067aa0ba902b7-01": "", "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01": "",
		"00-4bf92f3577b34da6a3ce929d0e0e47\"6-00f067aa0ba902b7-01": "", "00_" + id + "-00f067aa0ba902b7-01": "",
	} {
		if got := (Context{Traceparent: parent}).TraceID(); got != want {
			t.Errorf("TraceID of %q = %q, want %q", parent, got, want)
		}
	}
	x := &Exchange{Context: Context{Traceparent: "mine"}}
	meta := x.AppendMeta(nil, []byte(`{"traceparent":"theirs","tracestate":"s","k":1}`))
	if want := `{"k":1,"traceparent":"mine"}`; string(meta) != want {
		t.Errorf("_meta: %s, want %s", meta, want)
	}
	x.Context = Context{"mine", `"s"`, "b"}
	meta = x.AppendMeta([]byte("before "), []byte(`{"token":1}`), wire.Edit{Name: "token"})
	if want := `before {"traceparent":"mine","tracestate":"\"s\"","baggage":"b"}`; string(meta) != want {
		t.Errorf("_meta: %s, want %s", meta, want)
	}
	if meta = (*Exchange)(nil).AppendMeta(nil, []byte(`{"traceparent":"theirs"}`)); string(meta) != `{"traceparent":"theirs"}` {
		t.Errorf("_meta without a context of the exchange: %s", meta)
	}
}

// An observer of clients' requests is not told of the gateway's own.
func TestOwnIsNotForAll(t *testing.T) {
	d := &diary{}
	o := New(d)
	if x := o.Own(Exchange{Server: "docs", Method: "initialize"}); x != nil || d.text() != "" {
		t.Errorf("Own() = %v, told of %q", x, d.text())
	}
	own := &ownDiary{diary: diary{}}
	defer o.Add(own)()
	x := o.Own(Exchange{Server: "docs", Method: "initialize"})
	if x == nil || x.Context.Traceparent != "00-own" || x.Request().Server != "docs" || x.Began.IsZero() {
		t.Fatalf("Own() = %+v", x)
	}
	x.Sent([]byte("{}"))
	x.End(errors.New("gone"))
	if want := "begin own initialize\nupstream initialize\nbody {}\nanswered initialize gone"; own.text() != want || d.text() != "" {
		t.Errorf("told of %q and %q, want %q alone", own.text(), d.text(), want)
	}
}

type ownDiary struct{ diary }

func (d *ownDiary) BeginOwn(r *Request) Record {
	d.add("begin own", r.Method)
	return &entry{&d.diary, r}
}
