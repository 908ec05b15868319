package owner

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/budget"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
)

const (
	alice mcp.Principal = "alice"
	bob   mcp.Principal = "bob"
)

// The bounds are of all and of each; what was used lately stays longest, and memory that
// is given back can be had again.
func TestT03OwnersAreBounded(t *testing.T) {
	const block = 64 << 10
	b, forgot := budget.New(4*block), 0
	o, err := newTasks(4, 2, func(s mcp.Share) *budget.Account { return b.Account(s) }, func() { forgot++ })
	if err != nil {
		t.Fatal(err)
	}
	note := func(who mcp.Principal, id string) { o.note(mcp.Share{Principal: who}, id) }
	known := func(want string) {
		t.Helper()
		got := ""
		for _, id := range strings.Split("a1 a2 a3 b1 b2 c1", " ") {
			if o.ownedByOther("nobody", id) {
				got += id + " "
			}
		}
		if strings.TrimSpace(got) != want {
			t.Errorf("known: %s, want %s", got, want)
		}
	}
	note(alice, "a1")
	note(alice, "a2")
	if o.ownedByOther(alice, "a1") || !o.ownedByOther(bob, "a1") || o.ownedByOther(bob, "b9") {
		t.Error("a task is foreign to its own principal, or not to another")
	}
	note(alice, "a3") // a1 was used after a2
	known("a1 a3")
	note(bob, "b1")
	note(bob, "b2")
	note("carol", "c1")
	known("a3 b1 b2 c1")
	note(bob, "a3") // the server gave the id again, and bob has two
	if o.ownedByOther(bob, "a3") || !o.ownedByOther(alice, "a3") || forgot != 3 || len(o.by) != 2 {
		t.Errorf("forgot %d, %d principals, want 3 and 2, and a3 bob's", forgot, len(o.by))
	}
	o.close()
	if o.known.Len() != 0 || len(o.by) != 0 {
		t.Errorf("after close %d tasks of %d principals are left", o.known.Len(), len(o.by))
	}
	if used := b.Used(); used > 3*block {
		t.Errorf("after close %d bytes are lent, want no more than a block of each principal", used)
	}
}

// Without memory the newest tasks of a principal stand for its oldest.
func TestT03OwnersWithoutMemory(t *testing.T) {
	b := budget.New(128 << 10)
	o, err := newTasks(1000, 1000, func(s mcp.Share) *budget.Account { return b.Account(s) }, func() {})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 500 {
		o.note(mcp.Share{Principal: alice}, fmt.Sprint(i))
	}
	if n := o.known.Len(); n != 128 || !o.ownedByOther(bob, "499") || o.ownedByOther(bob, "0") {
		t.Errorf("%d tasks are known, want the latest 128", n)
	}
	o.note(mcp.Share{Principal: bob}, "x") // all is lent: it goes without
	if o.ownedByOther(alice, "x") {
		t.Error("a task is remembered without memory")
	}
}
