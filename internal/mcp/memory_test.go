package mcp

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/budget"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A small is a Memory of which one owner may have n bytes of messages: the first gets at most
// half.
type small struct {
	*budget.Budget
	refused int
}

func newSmall(n int) *small { return &small{Budget: budget.New(2 * perByte * int64(n))} }

func (m *small) Account(s Share) *budget.Account { return m.Budget.Account(s) }

func (m *small) Refuse() error {
	m.refused++
	return wire.Errorf(spec.CodeInternal, "no memory")
}

func progress(params string) Notification {
	return Notification{Method: spec.NotifyProgress, Params: []byte(params)}
}

func message(params string) Notification {
	return Notification{Method: spec.NotifyMessage, Params: []byte(params)}
}

// Among many messages the newest progress takes the place of the one before.
func TestM2L11FullBacklog(t *testing.T) {
	var b Backlog
	b.Add(progress("1"))
	for range MaxBacklog - 1 {
		b.Add(message("x"))
	}
	if !b.Add(progress("2")) || b.Len() != MaxBacklog {
		t.Errorf("a full backlog refuses newer progress, or has %d messages", b.Len())
	}
	if n, ok := b.Next(); !ok || string(n.Params) != "x" {
		t.Errorf("Next = %s, %v, want the log message: the progress before it is out of date", n.Params, ok)
	}
	rest := b.Take()
	if last := rest[len(rest)-1]; string(last.Params) != "2" || b.Len() != 0 || b.size != 0 {
		t.Errorf("last is %s, %d left", last.Params, b.Len())
	}
	if _, ok := b.Next(); ok {
		t.Error("an empty backlog has a message")
	}
	for range MaxBacklog {
		b.Add(message("x"))
	}
	if b.Add(progress("1")) {
		t.Error("a backlog that is full of log messages takes progress")
	}
}

// Log messages that do not fit become one, in their place, with how many there were and the
// worst of their levels. The next ones follow once that is read.
func TestM2L12LogMessagesThatDoNotFitAreCounted(t *testing.T) {
	var b Backlog
	if huge := message(strings.Repeat("x", MaxBacklogBytes+1)); !b.Add(huge) || b.Add(message("x")) {
		t.Error("an empty backlog refuses a message for its size, or a full one takes one more")
	}
	for range 2 {
		b.Next()
	}
	fits := 0
	for b.Add(message(`{"level":"info","data":"` + strings.Repeat("x", 1000) + `"}`)) {
		fits++
	}
	if fits < MaxBacklogBytes/1200 || fits > MaxBacklogBytes/1000 {
		t.Errorf("%d messages of 1 KiB fit", fits)
	}
	for _, level := range []string{"error", "nonsense", "warning"} {
		b.Add(message(`{"level":"` + level + `"}`))
	}
	b.Next()
	if b.Add(message("{}")) {
		t.Error("a message overtakes those that were left out")
	}
	for range fits - 1 {
		b.Next()
	}
	const want = `{"level":"error","logger":"mcpbridge","data":"5 log messages of the server are left out here: they came faster than they were read"}`
	if n, ok := b.Next(); !ok || n.Method != spec.NotifyMessage || string(n.Params) != want {
		t.Errorf("Next = %s %s, %v, want %s", n.Method, n.Params, ok, want)
	}
	if got := b.LeftOut(); got != 6 || b.Len() != 0 || !b.Add(message("{}")) {
		t.Errorf("%d were left out, want 6; %d wait", got, b.Len())
	}
}

func TestBacklogOffer(t *testing.T) {
	var b Backlog
	for i, want := range []bool{true, true, false} {
		if got := b.Offer(message("12345"), 3, 10); got != want {
			t.Errorf("Offer of message %d = %v, want %v", i, got, want)
		}
	}
	if b.Offer(message(""), 2, 10) {
		t.Error("Offer takes more messages than it was told")
	}
	b.Take()
	if !b.Offer(message("12345"), 1, 1) {
		t.Error("an empty backlog refuses a message for its size")
	}
}

// What a backlog holds is in the memory of its request until it is read.
func TestBoundedBacklogIsInTheMemory(t *testing.T) {
	m := newSmall(256 << 10)
	b := Backlog{Memory: NewReservation(m, Share{})}
	big := message(strings.Repeat("x", 200<<10))
	if !b.Add(big) || b.Short() {
		t.Fatal("there is no memory for the first message")
	}
	if b.Add(big) || b.Offer(big, 10, 1<<20) {
		t.Error("there is memory for a second message")
	}
	if !b.Short() || b.Short() {
		t.Error("Short does not say once that there was no memory")
	}
	b.Next() // and what tells of the other
	b.Next()
	if !b.Add(big) {
		t.Error("the memory of a message that was read is not given back")
	}
	b.Take()
	if b.Memory.taken != 0 {
		t.Errorf("%d bytes are taken by an empty backlog", b.Memory.taken)
	}
}

func TestReservation(t *testing.T) {
	if r, err := Reserve(nil, Share{}, 1<<40); err != nil || r.taken != 0 {
		t.Errorf("Reserve of no memory = %v, want it unbounded", err)
	}
	m := newSmall(256 << 10)
	r, err := Reserve(m, Share{Principal: "ada"}, 256<<10)
	if err != nil {
		t.Fatal(err)
	}
	other, err := Reserve(m, Share{Principal: "bob"}, 1<<20)
	if err == nil || m.refused != 1 || other.account != nil {
		t.Errorf("Reserve of more than there is = %v, %d counted", err, m.refused)
	}
	r.Shrink(1 << 20) // no more than it has
	r.Release()
	if r.taken != 0 || r.account != nil {
		t.Errorf("after Release %d bytes are taken", r.taken)
	}
	if err := other.Grow(64 << 10); err != nil {
		t.Errorf("what was released can't be taken: %v", err)
	}
	other.Release()
}

// A small response is part of its request; a large one takes memory while it is read, and
// is given up where there is none.
func TestBoundedIntake(t *testing.T) {
	read := func(in *Intake, n int) error {
		_, err := io.Copy(io.Discard, in.From(io.LimitReader(neverEnds{}, int64(n))))
		return err
	}
	m := newSmall(256 << 10)
	var in, beside Intake
	in.Use(m, Share{})
	beside.Share(&in)
	if err := errors.Join(read(&in, smallAnswer), in.Take(smallAnswer)); err != nil || in.memory.taken != 0 {
		t.Errorf("a small response takes %d bytes, %v", in.memory.taken, err)
	}
	in.Next()
	if err := read(&in, 128<<10); err != nil || in.memory.taken < perByte*128<<10 {
		t.Errorf("a response of 128 KiB takes %d bytes, %v", in.memory.taken, err)
	}
	var short *ShortageError
	if err := beside.Take(1 << 20); !errors.As(err, &short) || m.refused != 1 {
		t.Errorf("Take of more than there is = %v, %d counted", err, m.refused)
	}
	if err := read(&beside, 1<<20); !errors.As(err, &short) {
		t.Errorf("reading more than there is = %v, want a ShortageError", err)
	}
	for repeatable, want := range map[bool]string{
		true:  `the answer of server "s" to tools/list was given up: no memory (code -32603)`,
		false: `the answer of server "s" to tools/list was given up: no memory; the request may have taken effect: check before sending it again (code -32603)`,
	} {
		if got := short.Of("s", spec.MethodToolsList, repeatable); got.Error() != want || WireError(got).Code != spec.CodeInternal || !MayTryLater(got) {
			t.Errorf("Of = %v, want %s", got, want)
		}
	}
	in.Close()
	beside.Close()
	if err := beside.Take(1 << 20); err != nil || in.memory.taken != 0 {
		t.Errorf("after Close: Take = %v, %d bytes taken", err, in.memory.taken)
	}
}

type neverEnds struct{}

func (neverEnds) Read(p []byte) (int, error) { return len(p), nil }

func TestEarlyQueue(t *testing.T) {
	var q EarlyQueue[int]
	if !q.Add(0, 2*MaxEarlyBytes) || q.Add(1, 0) {
		t.Error("a queue takes one message whatever its size, and then no other")
	}
	if m, ok := q.Next(); !ok || m != 0 {
		t.Errorf("Next = %d, %v", m, ok)
	}
	for i := range MaxEarly {
		q.Add(i, 1)
	}
	if q.Add(MaxEarly, 1) {
		t.Error("a full queue takes a message")
	}
	if !q.Remove(func(i int) bool { return i == 1 }) || q.Remove(func(i int) bool { return i == 1 }) {
		t.Error("Remove does not remove the one message")
	}
	for _, want := range []int{0, 2} {
		if m, ok := q.Next(); !ok || m != want {
			t.Errorf("Next = %d, %v, want %d", m, ok, want)
		}
	}
	for ok := true; ok; {
		_, ok = q.Next()
	}
	if q.bytes != 0 {
		t.Errorf("an empty queue has %d bytes", q.bytes)
	}
}
