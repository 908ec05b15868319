package fanout

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
)

// model is a naive mailbox: an ordered list with linear search.
type model struct {
	max       int
	pending   []Event
	collapsed map[Topic]bool
	refused   map[Topic]bool
	ended     bool
}

func (m *model) put(ev Event) {
	if m.ended || m.refused[ev.Topic] {
		return
	}
	own := ev.Topic.URI
	if ev.URI != own && m.collapsed[ev.Topic] {
		ev.URI = own
	}
	same := func(p Event) bool { return p.Topic == ev.Topic && p.URI == ev.URI }
	if at := slices.IndexFunc(m.pending, same); at >= 0 {
		m.pending[at] = ev
		return
	}
	m.pending = append(m.pending, ev)
	nested := func(p Event) bool { return p.Topic == ev.Topic && p.URI != own }
	count := 0
	for _, p := range m.pending {
		if nested(p) {
			count++
		}
	}
	if count <= m.max {
		return
	}
	ev.URI, m.collapsed[ev.Topic] = own, true
	at := slices.IndexFunc(m.pending, same)
	if at < 0 {
		at = slices.IndexFunc(m.pending, nested)
	}
	m.pending[at] = ev
	m.pending = slices.DeleteFunc(m.pending, nested)
}

func (m *model) next() (Event, bool) {
	if len(m.pending) == 0 {
		return Event{}, false
	}
	ev := m.pending[0]
	m.pending = m.pending[1:]
	if ev.URI == ev.Topic.URI {
		delete(m.collapsed, ev.Topic)
	}
	return ev, true
}

func (m *model) drop(topic Topic) {
	delete(m.collapsed, topic)
	m.pending = slices.DeleteFunc(slices.Clone(m.pending), func(p Event) bool { return p.Topic == topic })
}

// FuzzMailbox runs a program of three-byte steps on a mailbox and on the model.
// The first byte sets MaxSubresources.
func FuzzMailbox(f *testing.F) {
	f.Add([]byte{2, 0, 1, 1, 0, 1, 2, 0, 1, 3, 200, 0, 0, 0, 1, 1})
	f.Add([]byte{0, 0, 1, 1, 0, 1, 2, 240, 1, 3, 200, 0, 0, 0, 1, 1})
	f.Fuzz(func(t *testing.T, program []byte) {
		compareWithModel(t, program[:min(len(program), 1+3*maxSteps)])
	})
}

// maxSteps is enough to fill, collapse and drain every topic. The tests' programs are
// longer.
const maxSteps = 96

// Formatted once, because formatting would take most of a step's time.
var (
	modelURIs  = spelled("r", 16)
	modelMetas = spelled("", 256)
)

func spelled(prefix string, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = prefix + strconv.Itoa(i)
	}
	return out
}

func TestMailboxAgainstModel(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 35))
		program := make([]byte, 1+3*500)
		for i := range program {
			program[i] = byte(r.Uint32())
		}
		if compareWithModel(t, program); t.Failed() {
			t.Fatalf("with seed %d", seed)
		}
	}
}

func compareWithModel(t *testing.T, program []byte) {
	if len(program) == 0 {
		return
	}
	limit := int(program[0]%6) - 1 // -1 is none; 0 would be the default
	if limit == 0 {
		limit = DefaultMaxSubresources
	}
	m := NewMailbox(MailboxOptions{MaxSubresources: limit})
	naive := &model{max: max(limit, 0), collapsed: make(map[Topic]bool), refused: make(map[Topic]bool)}
	for step, p := 0, program[1:]; len(p) >= 3; step, p = step+1, p[3:] {
		topic := Topic{"s", ResourceUpdated, modelURIs[p[1]%8]}
		switch op := p[0]; {
		case op < 150:
			ev := under(topic, modelURIs[p[2]%16], modelMetas[step%len(modelMetas)])
			m.Put(ev)
			naive.put(ev)
		case op < 235:
			checkNext(t, m, naive)
		case op < 252:
			drop(m, topic)
			delete(naive.refused, topic)
			naive.drop(topic)
		case op < 255 && p[2] < 64:
			m.Refuse(topic)
			naive.refused[topic] = true
			naive.drop(topic)
		case op == 255 && p[1] < 8:
			m.End(nil)
			naive.ended = true
		}
		if m.Len() != len(naive.pending) {
			t.Fatalf("step %d: Len = %d, want %d", step, m.Len(), len(naive.pending))
		}
		if _, got := m.Ended(); got != (naive.ended && len(naive.pending) == 0) {
			t.Fatalf("step %d: Ended = %v with %d pending", step, got, len(naive.pending))
		}
	}
	for len(naive.pending) > 0 {
		checkNext(t, m, naive)
	}
	checkNext(t, m, naive)
	if cap(m.queue) > 1 || m.places != nil || m.subs != nil {
		t.Errorf("an empty mailbox keeps room for %d, places %v, nested %v", cap(m.queue), m.places, m.subs)
	}
}

func checkNext(t *testing.T, m *Mailbox, naive *model) {
	t.Helper()
	got, ok := m.Next()
	want, wantOK := naive.next()
	if ok != wantOK || got.Topic != want.Topic || got.URI != want.URI || string(got.Meta) != string(want.Meta) {
		t.Fatalf("Next = %v, %v, want %v, %v", got, ok, want, wantOK)
	}
}
