package index

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

// model is the naive index: a map for each direction, searched and copied.
type model struct {
	byKey map[byte]map[byte]bool
	bySub map[byte]map[byte]bool
}

func newModel() *model {
	return &model{make(map[byte]map[byte]bool), make(map[byte]map[byte]bool)}
}

func (m *model) subscribe(key, sub byte) (first bool) {
	first = len(m.byKey[key]) == 0
	put(m.byKey, key, sub)
	put(m.bySub, sub, key)
	return first
}

func (m *model) unsubscribe(key, sub byte) (last bool) {
	last = len(m.byKey[key]) == 1 && m.byKey[key][sub]
	delete(m.byKey[key], sub)
	delete(m.bySub[sub], key)
	return last
}

func (m *model) prune(sub byte) map[byte]bool {
	released := make(map[byte]bool)
	for key := range maps.Clone(m.bySub[sub]) {
		released[key] = m.unsubscribe(key, sub)
	}
	return released
}

func put(m map[byte]map[byte]bool, from, to byte) {
	if m[from] == nil {
		m[from] = make(map[byte]bool)
	}
	m[from][to] = true
}

// FuzzIndex runs a program of three-byte steps on an index and on the model.
// The first byte sets the number of shards.
func FuzzIndex(f *testing.F) {
	f.Add([]byte{0, 0, 1, 1, 0, 1, 2, 1, 1, 1, 2, 0, 2})
	f.Add([]byte{1, 0, 1, 1, 0, 2, 1, 0, 3, 1, 1, 2, 1, 2, 0, 1})
	f.Fuzz(compareWithModel)
}

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
	const keys, subs = 12, 9 // few, so that lists and chains form
	x, m := New[byte, byte](Options{Shards: int(program[0]%4) + 1}), newModel()
	for p := program[1:]; len(p) >= 3; p = p[3:] {
		op, key, sub := p[0]%16, p[1]%keys, p[2]%subs
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
			got := make(map[byte]bool)
			for _, r := range x.Prune(sub) {
				got[r.Key] = r.Last
			}
			if want := m.prune(sub); !maps.Equal(got, want) {
				t.Fatalf("Prune(%d) = %v, want %v", sub, got, want)
			}
		}
		if got, want := x.Contains(key, sub), m.byKey[key][sub]; got != want {
			t.Fatalf("Contains(%d, %d) = %v, want %v", key, sub, got, want)
		}
		if got, want := x.Has(key), len(m.byKey[key]) > 0; got != want {
			t.Fatalf("Has(%d) = %v, want %v", key, got, want)
		}
	}
	checkInvariants(t, x)
	compareViews(t, x, m, keys, subs)
}

func compareViews(t *testing.T, x *Index[byte, byte], m *model, keys, subs byte) {
	t.Helper()
	snapshot, nkeys, npairs := x.Snapshot(), 0, 0
	for key := range keys {
		want := slices.Sorted(maps.Keys(m.byKey[key]))
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
	for sub := range subs {
		want := slices.Sorted(maps.Keys(m.bySub[sub]))
		got := x.AppendKeys(nil, sub)
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("subscriber %d holds %v, want %v", sub, got, want)
		}
	}
	if k, p := x.Len(); k != nkeys || p != npairs || len(snapshot) != nkeys {
		t.Errorf("Len = %d, %d with %d in the snapshot, want %d, %d", k, p, len(snapshot), nkeys, npairs)
	}
}
