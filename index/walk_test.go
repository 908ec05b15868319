package index

import "testing"

// Walk visits each key once, with all of its subscribers.
func TestWalk(t *testing.T) {
	x := New[string, int](Options{})
	want := map[string]int{"a": 3, "b": 1, "c": 0}
	for key, n := range want {
		for i := range n {
			x.Subscribe(key, i)
		}
	}
	delete(want, "c")
	x.Walk(func(key string, subs []int) {
		if want[key] != len(subs) {
			t.Errorf("%s has %d subscribers, want %d", key, len(subs), want[key])
		}
		delete(want, key)
	})
	if len(want) > 0 {
		t.Errorf("not visited: %v", want)
	}
}
