package member_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/replicastest"
	"github.com/mcpbridge/mcpbridge/internal/replicas"
	"github.com/mcpbridge/mcpbridge/internal/replicas/member"
)

// living asks as one who does not join.
func living(t *testing.T, b *replicastest.Broker) (instances string, took time.Duration) {
	t.Helper()
	began := time.Now()
	all, err := b.Engine(t, member.Options{}).Living(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, r := range all {
		names = append(names, r.Instance)
	}
	return strings.Join(names, " "), time.Since(began)
}

func TestLiving(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := replicastest.New()
		if got, took := living(t, b); got != "" || took > time.Second {
			t.Errorf("of nobody %q live, told after %v", got, took)
		}
		first, second, third := b.Join(t, "aaaa", "h:3"), b.Join(t, "bbbb", "h:2"), b.Join(t, "cccc", "h:1")
		time.Sleep(300 * time.Millisecond)
		if got, took := living(t, b); got != "cccc bbbb aaaa" || took > replicas.Heartbeat+500*time.Millisecond {
			t.Errorf("of three %q live, told after %v", got, took)
		}
		second.SetFrozen(true)
		if err := third.Leave(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got, took := living(t, b); got != "aaaa" || took > replicas.MemberTTL+time.Second {
			t.Errorf("while one is stopped and one has left, %q live, told after %v", got, took)
		}
		if n := len(first.View().Members); n > 2 {
			t.Errorf("%d replicas are known, want that who asks is none", n)
		}
	})
}

// A store that comes late is waited for, and one that does not come is an error.
func TestLivingWithoutAStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := replicastest.New()
		b.Join(t, "aaaa", "h:1")
		b.SetAway(true)
		began := time.Now()
		_, err := b.Engine(t, member.Options{}).Living(t.Context())
		if took := time.Since(began); err == nil || err.Error() != "it can't be reached: the broker of this test is away" || took < 3*time.Second || took > 7*time.Second {
			t.Errorf("= %v after %v", err, took)
		}
		b.SetAway(false)
		time.Sleep(2100 * time.Millisecond) // it has told again
		b.SetAway(true)
		time.AfterFunc(time.Second, func() { b.SetAway(false) })
		if got, _ := living(t, b); got != "aaaa" {
			t.Errorf("once the store is there, %q live", got)
		}
	})
}
