package member_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/replicastest"
)

// drains has replicas say that they take no new work.
func drains(t *testing.T, all ...*replicastest.Engine) {
	t.Helper()
	for _, e := range all {
		self := e.View().Self
		self.Draining = true
		e.Update(self)
	}
}

// A replica that drains holds what nobody else wants, and what nobody could take: until another
// that does not drain wants it.
func TestADrainingReplicaHoldsUntilAnotherTakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, r := room(t)
		claim(t, r[0], "alone")
		claim(t, r[0], "shared")
		claim(t, r[1], "shared")
		drains(t, r[0], r[1])
		pass(t, 10*time.Second)
		wantHolder(t, "alone", "aaaa", r[0])
		wantHolder(t, "shared", "aaaa", r[0], r[1])
		for _, name := range []string{"alone", "shared"} {
			if c := claim(t, r[2], name); c.Holder.Instance != "cccc" || c.Epoch != 2 {
				t.Errorf("a replica that does not drain claims %s and is told %+v", name, c)
			}
		}
		pass(t, time.Second)
		wantHolder(t, "alone", "cccc", r[0], r[2])
		wantHolder(t, "shared", "cccc", r[:]...)
	})
}

// One that wants a name already takes it as soon as its holder drains, and at no moment has it no
// holder.
func TestADrainingReplicaIsFollowedWithoutAGap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, r := room(t)
		for _, e := range r {
			claim(t, e, "profile")
		}
		drains(t, r[0])
		after := 0
		for after = range 300 {
			pass(t, time.Millisecond)
			for _, e := range r {
				if _, held := e.Holder("profile"); !held {
					t.Fatalf("after %d ms %s knows no holder", after, e.View().Self.Instance)
				}
			}
			if c, _ := r[1].Holder("profile"); c.Holder.Instance != "aaaa" {
				break
			}
		}
		c, _ := r[1].Holder("profile")
		if c.Holder.Instance != r[1].View().Choose("profile").Instance || c.Epoch != 2 {
			t.Errorf("after %d ms the holder is %+v, want the one that all choose", after, c)
		}
		pass(t, 5*time.Second)
		wantHolder(t, "profile", c.Holder.Instance, r[:]...)
		if again, _ := r[0].Holder("profile"); again.Epoch != 2 {
			t.Errorf("the claim has moved again: %+v", again)
		}
	})
}

// A holder gives a name to whom it likes, unless another one has it.
func TestYield(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, r := room(t)
		claim(t, r[0], "mine")
		claim(t, r[1], "mine")
		claim(t, r[2], "theirs")
		to := r[1].View().Self
		for name, want := range map[string]string{"mine": "bbbb", "theirs": "cccc", "nobody's": "bbbb"} {
			if c, err := r[0].Yield(t.Context(), name, to); err != nil || c.Holder.Instance != want {
				t.Errorf("Yield(%s) = %+v, %v, want %s", name, c, err, want)
			}
		}
		pass(t, time.Second)
		wantHolder(t, "mine", "bbbb", r[0], r[1])
		if c := claim(t, r[1], "nobody's"); c.Holder.Instance != "bbbb" || c.Epoch != 1 {
			t.Errorf("who was given a name claims it and is told %+v", c)
		}
		r[1].Release("nobody's")
		pass(t, time.Second)
		if c := claim(t, r[2], "nobody's"); c.Holder.Instance != "cccc" {
			t.Errorf("the name that was given and released is %+v", c)
		}
	})
}
