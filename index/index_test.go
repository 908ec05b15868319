package index

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"unsafe"
)

func TestM2L34FirstAndLast(t *testing.T) {
	const sub, unsub, prune = '+', '-', 'x'
	type step struct {
		op   byte
		key  string
		who  int
		want bool // first for +, last for -; for x that the only key was released as last
	}
	for _, tt := range []struct {
		name  string
		steps []step
	}{
		{"one subscriber", []step{{sub, "a", 1, true}, {unsub, "a", 1, true}}},
		{"only the first of many", []step{{sub, "a", 1, true}, {sub, "a", 2, false}, {sub, "a", 3, false}}},
		{"only the last of many", []step{{sub, "a", 1, true}, {sub, "a", 2, false}, {unsub, "a", 1, false}, {unsub, "a", 2, true}}},
		{"a repeated subscribe is not first", []step{{sub, "a", 1, true}, {sub, "a", 1, false}, {unsub, "a", 1, true}}},
		{"a repeated unsubscribe is not last", []step{{sub, "a", 1, true}, {unsub, "a", 1, true}, {unsub, "a", 1, false}}},
		{"unsubscribe of a stranger", []step{{sub, "a", 1, true}, {unsub, "a", 2, false}, {unsub, "b", 1, false}, {unsub, "a", 1, true}}},
		{"first again after last", []step{{sub, "a", 1, true}, {unsub, "a", 1, true}, {sub, "a", 2, true}}},
		{"keys don't share an end", []step{{sub, "a", 1, true}, {sub, "b", 1, true}, {unsub, "a", 1, true}, {unsub, "b", 1, true}}},
		{"keys match exactly", []step{{sub, "note://a", 1, true}, {sub, "note://a/", 2, true}, {sub, "NOTE://a", 3, true}}},
		{"prune is last for one alone", []step{{sub, "a", 1, true}, {prune, "a", 1, true}, {sub, "a", 1, true}}},
		{"prune is not last for one of two", []step{{sub, "a", 1, true}, {sub, "a", 2, false}, {prune, "a", 1, false}, {unsub, "a", 2, true}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			x := New[string, int](Options{})
			for i, s := range tt.steps {
				var got bool
				switch s.op {
				case sub:
					got = x.Subscribe(s.key, s.who)
				case unsub:
					got = x.Unsubscribe(s.key, s.who)
				case prune:
					r := x.Prune(s.who)
					if len(r) != 1 || r[0].Key != s.key {
						t.Fatalf("step %d: Prune(%d) = %v, want key %q alone", i, s.who, r, s.key)
					}
					got = r[0].Last
				}
				if got != s.want {
					t.Errorf("step %d: %c %q %d = %v, want %v", i, s.op, s.key, s.who, got, s.want)
				}
				checkInvariants(t, x)
			}
		})
	}
}

func TestM2L36PruneLeavesNothing(t *testing.T) {
	const keys = 500
	x := New[string, int](Options{})
	for i := range keys {
		x.Subscribe(fmt.Sprintf("note://%d", i), 1)
		if i%2 == 0 {
			x.Subscribe(fmt.Sprintf("note://%d", i), 2)
		}
	}
	released := x.Prune(1)
	if len(released) != keys {
		t.Fatalf("Prune released %d keys, want %d", len(released), keys)
	}
	for _, r := range released {
		if r.Last == x.Has(r.Key) {
			t.Errorf("released %q with Last = %v, and Has = %v", r.Key, r.Last, x.Has(r.Key))
		}
		if x.Contains(r.Key, 1) {
			t.Errorf("%q still has the pruned subscriber", r.Key)
		}
	}
	checkInvariants(t, x)
	if again := x.Prune(1); again != nil {
		t.Errorf("second Prune = %v, want nothing", again)
	}
	x.Prune(2)
	checkEmpty(t, x)
}

// A key with many subscribers, and a subscriber of all keys: neither may be searched.
func TestHotKeyAndGreedySubscriber(t *testing.T) {
	const n = 10_000
	x := New[string, int](Options{})
	for i := range n {
		x.Subscribe("hot", i)
		x.Subscribe(fmt.Sprint(i), -1)
	}
	checkInvariants(t, x)
	if got := len(x.AppendSubscribers(nil, "hot")); got != n {
		t.Errorf("hot key has %d subscribers, want %d", got, n)
	}
	if got := len(x.AppendKeys(nil, -1)); got != n {
		t.Errorf("greedy subscriber has %d keys, want %d", got, n)
	}
	for _, i := range rand.New(rand.NewPCG(1, 2)).Perm(n) {
		x.Unsubscribe("hot", i)
		x.Unsubscribe(fmt.Sprint(i), -1)
	}
	checkEmpty(t, x)
}

func TestStorageOfAnEmptiedShardIsReturned(t *testing.T) {
	x := New[string, int](Options{Shards: 1})
	for i := range keepNumbers + 1 {
		x.Subscribe(fmt.Sprint(i), 1)
	}
	x.Prune(1)
	if sh := &x.shards[0]; sh.keys != nil || sh.subs != nil || sh.links != nil || sh.names != nil {
		t.Error("a large shard keeps its storage when empty")
	}
	x.Subscribe("a", 1) // and is usable again
	checkInvariants(t, x)
}

func TestListShrinks(t *testing.T) {
	x := New[string, int](Options{Shards: 1})
	for i := range 10_000 {
		x.Subscribe("hot", i)
	}
	for i := range 9_990 {
		x.Unsubscribe("hot", i)
	}
	if got := cap(x.shards[0].keys["hot"].subs); got > 4*keepList {
		t.Errorf("list of 10 subscribers keeps a capacity of %d", got)
	}
	checkInvariants(t, x)
}

func TestAppendKeepsPrefix(t *testing.T) {
	x := New[string, int](Options{})
	x.Subscribe("a", 1)
	if got := x.AppendSubscribers([]int{7}, "a"); !slices.Equal(got, []int{7, 1}) {
		t.Errorf("AppendSubscribers = %v, want [7 1]", got)
	}
	if got := x.AppendKeys([]string{"z"}, 1); !slices.Equal(got, []string{"z", "a"}) {
		t.Errorf("AppendKeys = %q, want [z a]", got)
	}
	if got := x.AppendSubscribers([]int{7}, "none"); !slices.Equal(got, []int{7}) {
		t.Errorf("AppendSubscribers of no key = %v, want [7]", got)
	}
}

func TestSnapshotIsACopy(t *testing.T) {
	x := New[string, int](Options{})
	x.Subscribe("a", 1)
	x.Subscribe("a", 2)
	s := x.Snapshot()
	s["a"][0], s["b"] = 99, []int{1}
	got := x.AppendSubscribers(nil, "a")
	slices.Sort(got)
	if !slices.Equal(got, []int{1, 2}) || x.Has("b") {
		t.Errorf("after changing a snapshot: subscribers %v, Has(b) %v", got, x.Has("b"))
	}
}

func TestOptionsShards(t *testing.T) {
	for _, tt := range []struct{ in, want int }{
		{-1, DefaultShards}, {0, DefaultShards}, {1, 1}, {2, 2}, {3, 4}, {64, 64}, {65, 128}, {1 << 30, maxShards},
	} {
		if got := len(New[int, int](Options{Shards: tt.in}).shards); got != tt.want {
			t.Errorf("New with %d shards has %d, want %d", tt.in, got, tt.want)
		}
	}
}

// Each subscription arrives with its own copy of the URI; the index may keep one only.
func TestKeyBytesAreHeldOnce(t *testing.T) {
	x := New[string, int](Options{Shards: 1})
	for i := range 3 {
		x.Subscribe(strings.Clone("note://todo"), i)
	}
	sh := &x.shards[0]
	for key, a := range sh.keys {
		if name := sh.names[a.number]; unsafe.StringData(key) != unsafe.StringData(name) {
			t.Errorf("the bytes of %q are held twice", key)
		}
	}
}

// Every goroutine has subscribers of its own, and all share the keys. The reports first
// and last of a key must alternate, which their sums show, and at the end both directions
// must be empty.
func TestM2L34ConcurrentUse(t *testing.T) {
	const goroutines, rounds, keys = 8, 3_000, 7
	x := New[int, int](Options{Shards: 2})
	balance := make([][keys]int, goroutines) // firsts minus lasts
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(g), 1))
			var subs, held []int
			count := &balance[g]
			for range rounds {
				key, sub := r.IntN(keys), g*10+r.IntN(3)
				switch r.IntN(8) {
				case 0, 1, 2:
					if x.Subscribe(key, sub) {
						count[key]++
					}
					if !x.Contains(key, sub) || !x.Has(key) {
						t.Errorf("pair (%d, %d) is missing after its owner added it", key, sub)
					}
				case 3, 4:
					if x.Unsubscribe(key, sub) {
						count[key]--
					}
					if x.Contains(key, sub) {
						t.Errorf("pair (%d, %d) is there after its owner removed it", key, sub)
					}
				case 5:
					for _, rel := range x.Prune(sub) {
						if rel.Last {
							count[rel.Key]--
						}
					}
					if held = x.AppendKeys(held[:0], sub); len(held) > 0 {
						t.Errorf("subscriber %d holds %v after its owner pruned it", sub, held)
					}
				case 6:
					subs = x.AppendSubscribers(subs[:0], key)
				default:
					x.Len()
					x.Snapshot()
				}
			}
		})
	}
	wg.Wait()
	checkInvariants(t, x)
	for key := range keys {
		sum := 0
		for g := range balance {
			sum += balance[g][key]
		}
		if want := map[bool]int{true: 1}[x.Has(key)]; sum != want {
			t.Errorf("key %d: firsts minus lasts = %d, want %d", key, sum, want)
		}
	}
	for sub := range goroutines * 10 {
		x.Prune(sub)
	}
	checkEmpty(t, x)
}

// checkInvariants compares both directions of every shard, link by link.
func checkInvariants[K, S comparable](t *testing.T, x *Index[K, S]) {
	t.Helper()
	for i := range x.shards {
		sh := &x.shards[i]
		listed, chained := 0, 0
		for key, a := range sh.keys {
			if x.shard(key) != sh || sh.names[a.number] != key || len(a.subs) == 0 {
				t.Errorf("shard %d: key %v has number %d, which names %v, and %d subscribers", i, key, a.number, sh.names[a.number], len(a.subs))
			}
			for at, sub := range a.subs {
				if l, ok := sh.links[pair{a.number, sh.subs[sub].number}]; !ok || int(l.at) != at {
					t.Errorf("shard %d: (%v, %v) is at %d in the list, and its link is %+v, %v", i, key, sub, at, l, ok)
				}
				listed++
			}
			var zero S
			for _, left := range a.subs[len(a.subs):cap(a.subs)] {
				if left != zero {
					t.Errorf("shard %d: the list of %v keeps %v alive", i, key, left)
				}
			}
		}
		for sub, h := range sh.subs {
			for n, prev := h.head, none; n != none; {
				l, ok := sh.links[pair{n, h.number}]
				if !ok || l.prev != prev {
					t.Fatalf("shard %d: chain of %v is broken at %d: %+v, %v", i, sub, n, l, ok)
				}
				chained++
				prev, n = n, l.next
			}
		}
		if listed != len(sh.links) || chained != len(sh.links) {
			t.Errorf("shard %d: %d pairs listed, %d chained, %d linked", i, listed, chained, len(sh.links))
		}
		if got := int(sh.keyNumbers.next) - len(sh.keyNumbers.free); got != len(sh.keys) {
			t.Errorf("shard %d: %d key numbers in use for %d keys", i, got, len(sh.keys))
		}
		if got := int(sh.subNumbers.next) - len(sh.subNumbers.free); got != len(sh.subs) {
			t.Errorf("shard %d: %d subscriber numbers in use for %d subscribers", i, got, len(sh.subs))
		}
	}
}

func checkEmpty[K, S comparable](t *testing.T, x *Index[K, S]) {
	t.Helper()
	checkInvariants(t, x)
	if keys, pairs := x.Len(); keys != 0 || pairs != 0 || len(x.Snapshot()) != 0 {
		t.Errorf("index holds %d keys, %d pairs, want nothing", keys, pairs)
	}
	for i := range x.shards {
		if n := len(x.shards[i].subs); n != 0 {
			t.Errorf("shard %d still knows %d subscribers", i, n)
		}
		var zero K
		for _, name := range x.shards[i].names {
			if name != zero {
				t.Errorf("shard %d keeps the name %v alive", i, name)
			}
		}
	}
}
