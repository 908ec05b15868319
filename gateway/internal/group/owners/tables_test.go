package owners

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/trust/policy"
)

func newTables(t testing.TB, prefer map[string]int) *Tables {
	t.Helper()
	all, err := New(prefer)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// sets are the names of three members, of which those of the third are not known.
func sets() []*Names {
	return []*Names{NewNames([]string{"a", "b", "c"}), NewNames([]string{"b", "c", "d"}), nil}
}

func TestG02Owners(t *testing.T) {
	table := newTables(t, map[string]int{"c": 1, "a": 2, "d": 0}).Put(Key{}, sets(), true, 0)
	for name, want := range map[string]int{"a": 0, "b": Contested, "c": 1, "d": 1} {
		if owner := table.Owner(name); owner != want {
			t.Errorf("the owner of %s is %d, want %d", name, owner, want)
		}
	}
	if table.Owner("e") != Nobody || len(table.Having("e")) > 0 {
		t.Error("somebody has e")
	}
	if having, unknown := table.Having("b"), table.Unknown(); !slices.Equal(having, []int{0, 1}) || !slices.Equal(unknown, []int{2}) {
		t.Errorf("%v have b, unknown are %v", having, unknown)
	}
}

// Equal tables are one, and what nobody has is not counted. The oldest go if there are too many
// names.
func TestTablesAreShared(t *testing.T) {
	all := newTables(t, nil)
	for i := range 100 {
		all.Put(Key{Scope: fmt.Sprint(i)}, sets(), true, 0)
		all.Put(Key{Scope: "0"}, sets(), true, 0) // again
	}
	if all.names != 4 || all.of.Len() != 100 {
		t.Errorf("%d clients have %d names", all.of.Len(), all.names)
	}
	if all.Clear(); all.names != 0 {
		t.Errorf("%d names are left", all.names)
	}
	all.most = 5
	for i := range 3 {
		all.Put(Key{Scope: fmt.Sprint(i)}, []*Names{NewNames([]string{fmt.Sprint(i), "x"})}, true, 0)
	}
	if _, _, ok := all.Find(Key{Scope: "0"}); ok || all.of.Len() != 2 || all.names != 4 {
		t.Errorf("%d clients have %d names", all.of.Len(), all.names)
	}
}

// A table is read again in time, by one, and is not used when it is old or after a change.
func TestG02TablesAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := newTables(t, nil)
		ada := Key{Scope: "s", Principal: "ada", Kind: policy.Tool}
		bob, other := ada, ada
		bob.Principal, other.Kind = "bob", policy.Prompt
		find := func(at Key, wantDue, wantOK bool) {
			t.Helper()
			if _, due, ok := all.Find(at); due != wantDue || ok != wantOK {
				t.Errorf("Find(%v) = %v, %v, want %v, %v", at, due, ok, wantDue, wantOK)
			}
		}
		find(ada, false, false)
		all.Put(ada, sets(), true, all.Begin())
		all.Put(bob, sets(), false, all.Begin())
		find(ada, false, true)
		time.Sleep(UnsureAge)
		find(ada, false, true)
		find(bob, true, true)
		find(bob, false, true)
		time.Sleep(MaxAge / 2)
		find(ada, true, true)
		find(ada, false, true)
		time.Sleep(MaxAge / 2)
		find(ada, false, false)

		all.Put(ada, sets(), true, all.Begin())
		all.Put(bob, sets(), true, all.Begin())
		all.Put(other, sets(), true, all.Begin())
		changes := all.Begin()
		all.Forget("s", policy.Tool)
		find(ada, false, false)
		find(bob, false, false)
		find(other, false, true)
		all.Put(ada, sets(), true, changes)
		time.Sleep(UnsureAge)
		find(ada, true, true)
		all.Clear()
		find(other, false, false)
		if KeyOf(&mcp.Request{Principal: "ada", Profile: mcp.Profile{Scope: "s"}}, policy.Tool) != ada {
			t.Error("the key of a request is another one")
		}
	})
}

// BenchmarkFind finds who has a name.
func BenchmarkFind(b *testing.B) {
	for _, n := range []int{1, 100, 10_000} {
		b.Run(fmt.Sprintf("names=%d", n), func(b *testing.B) {
			var names []string
			for i := range n {
				names = append(names, fmt.Sprint("name", i))
			}
			all, at := newTables(b, nil), Key{Scope: "files/0123456789abcdef01234567", Principal: mcp.Anonymous, Kind: policy.Tool}
			all.Put(at, []*Names{NewNames(names), nil}, true, 0)
			b.ReportAllocs()
			for b.Loop() {
				if t, _, ok := all.Find(at); !ok || t.Owner("name0") != 0 {
					b.Fatal("name0 has no owner")
				}
			}
		})
	}
}

// A table of lists that were read before a change replaces none of after it.
func TestG02OlderListsReplaceNoNewerTable(t *testing.T) {
	all, at := newTables(t, nil), Key{Scope: "s", Kind: policy.Tool}
	x, none := NewNames([]string{"x"}), NewNames(nil)
	before := all.Begin()
	all.Forget("s", policy.Tool)
	all.Put(at, []*Names{none, x}, true, all.Begin())
	all.Put(at, []*Names{x, x}, true, before)
	if f, _, ok := all.Find(at); !ok || f.Owner("x") != 1 {
		t.Errorf("Find() = %v, want that x is of the second member alone", ok)
	}
}
