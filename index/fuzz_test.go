package index

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
)

// Few, so that lists and chains form.
const modelKeys, modelSubs = 12, 9

// model is a naive index: a set of subscribers for each key, and a search for everything
// else.
type model [modelKeys]uint16

func (m *model) has(key, sub byte) bool { return m[key]>>sub&1 != 0 }

func (m *model) subscribe(key, sub byte) (first bool) {
	first = m[key] == 0
	m[key] |= 1 << sub
	return first
}

func (m *model) unsubscribe(key, sub byte) (last bool) {
	last = m[key] == 1<<sub
	m[key] &^= 1 << sub
	return last
}

// keysOf returns the keys that sub holds, in order.
func (m *model) keysOf(sub byte) (keys []byte) {
	for key := range byte(modelKeys) {
		if m.has(key, sub) {
			keys = append(keys, key)
		}
	}
	return keys
}

// subsOf returns the subscribers of key, in order.
func (m *model) subsOf(key byte) (subs []byte) {
	for sub := range byte(modelSubs) {
		if m.has(key, sub) {
			subs = append(subs, sub)
		}
	}
	return subs
}

func (m *model) prune(sub byte) (released []Released[byte]) {
	for _, key := range m.keysOf(sub) {
		released = append(released, Released[byte]{Key: key, Last: m.unsubscribe(key, sub)})
	}
	return released
}

// FuzzIndex runs a program of three-byte steps on an index and on the model.
// The first byte sets the number of shards.
func FuzzIndex(f *testing.F) {
	f.Add([]byte{0, 0, 1, 1, 0, 1, 2, 1, 1, 1, 2, 0, 2})
	f.Add([]byte{1, 0, 1, 1, 0, 2, 1, 0, 3, 1, 1, 2, 1, 2, 0, 1})
	f.Fuzz(func(t *testing.T, program []byte) {
		compareWithModel(t, program[:min(len(program), 1+3*maxSteps)])
	})
}

// maxSteps bounds a fuzzed program; the tests' programs are longer.
const maxSteps = 64

func TestIndexAgainstModel(t *testing.T) {
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 34))
		program := make([]byte, 1+3*2_000)
		for i := range program {
			program[i] = byte(r.Uint32())
		}
		compareWithModel(t, program)
		if t.Failed() {
			t.Fatalf("with seed %d", seed)
		}
	}
}

func compareWithModel(t *testing.T, program []byte) {
	if len(program) == 0 {
		return
	}
	x, m := New[byte, byte](Options{Shards: int(program[0]%4) + 1}), new(model)
	for p := program[1:]; len(p) >= 3; p = p[3:] {
		op, key, sub := p[0]%16, p[1]%modelKeys, p[2]%modelSubs
		switch {
		case op < 8:
			if got, want := x.Subscribe(key, sub), m.subscribe(key, sub); got != want {
				t.Fatalf("Subscribe(%d, %d) = %v, want %v", key, sub, got, want)
			}
		case op < 15:
			if got, want := x.Unsubscribe(key, sub), m.unsubscribe(key, sub); got != want {
				t.Fatalf("Unsubscribe(%d, %d) = %v, want %v", key, sub, got, want)
			}
		default:
			got := x.Prune(sub)
			slices.SortFunc(got, func(a, b Released[byte]) int { return cmp.Compare(a.Key, b.Key) })
			if want := m.prune(sub); !slices.Equal(got, want) {
				t.Fatalf("Prune(%d) = %v, want %v", sub, got, want)
			}
		}
		if got, want := x.Contains(key, sub), m.has(key, sub); got != want {
			t.Fatalf("Contains(%d, %d) = %v, want %v", key, sub, got, want)
		}
		if got, want := x.Has(key), m[key] != 0; got != want {
			t.Fatalf("Has(%d) = %v, want %v", key, got, want)
		}
	}
	checkInvariants(t, x)
	compareViews(t, x, m)
}

func compareViews(t *testing.T, x *Index[byte, byte], m *model) {
	t.Helper()
	snapshot, nkeys, npairs := x.Snapshot(), 0, 0
	for key := range byte(modelKeys) {
		want := m.subsOf(key)
		got := x.AppendSubscribers(nil, key)
		slices.Sort(got)
		slices.Sort(snapshot[key])
		if !slices.Equal(got, want) || !slices.Equal(snapshot[key], want) {
			t.Errorf("key %d has %v, in the snapshot %v, want %v", key, got, snapshot[key], want)
		}
		if npairs += len(want); len(want) > 0 {
			nkeys++
		}
	}
	for sub := range byte(modelSubs) {
		got, want := x.AppendKeys(nil, sub), m.keysOf(sub)
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("subscriber %d holds %v, want %v", sub, got, want)
		}
	}
	if k, p := x.Len(); k != nkeys || p != npairs || len(snapshot) != nkeys {
		t.Errorf("Len = %d, %d with %d in the snapshot, want %d, %d", k, p, len(snapshot), nkeys, npairs)
	}
}
