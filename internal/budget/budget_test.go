package budget

import (
	"fmt"
	"sync"
	"testing"
)

func TestTakeAndGive(t *testing.T) {
	b := New(16 * block)
	a := b.Account("ada")
	if !a.Take(3*block+1) || b.Used() != 4*block {
		t.Fatalf("Used() = %d after three blocks and a byte, want four blocks", b.Used())
	}
	if a.Take(20 * block) {
		t.Error("Take of more than there is = true")
	}
	a.Give(3*block + 1)
	if got := b.Used(); got > b.spare {
		t.Errorf("Used() = %d after all was given back, want at most %d", got, b.spare)
	}
}

// An account that takes and gives no more than it may keep borrows once. What it may keep
// depends on the budget.
func TestSpareIsKept(t *testing.T) {
	for _, tt := range []struct {
		bytes, spare int64
	}{{1 << 20, minSpare}, {128 << 20, 8 * block}, {4 << 30, maxSpare}} {
		b := New(tt.bytes)
		if b.spare != tt.spare {
			t.Fatalf("New(%d): %d bytes are kept, want %d", tt.bytes, b.spare, tt.spare)
		}
		a := b.Account("ada")
		a.Take(b.spare)
		a.Give(b.spare)
		if got := b.Used(); got != b.spare {
			t.Errorf("New(%d): %d bytes kept of %d taken and given, want all", tt.bytes, got, b.spare)
		}
		a.Take(b.spare + 1)
		a.Give(b.spare + 1)
		if got := b.Used(); got > b.spare/2+block {
			t.Errorf("New(%d): %d bytes kept of more, want half of %d", tt.bytes, got, b.spare)
		}
	}
}

// One owner can't use up the memory that others need.
func TestShortBudgetIsShared(t *testing.T) {
	b := New(64 * block)
	mallory := b.Account("mallory")
	taken := 0
	for mallory.Take(block) {
		taken++
	}
	if taken > 32 {
		t.Errorf("one owner took %d of 64 blocks, want at most half", taken)
	}
	if !b.Account("ada").Take(4 * block) {
		t.Error("another got nothing")
	}
	for mallory.Take(block) {
		t.Fatal("who has more than a share got still more")
	}
}

// Accounts of former owners are removed.
func TestOwnersAreForgotten(t *testing.T) {
	b := New(1 << 30)
	for n := range 10 * manyBorrowers {
		a := b.Account(fmt.Sprint(n))
		if !a.Take(100) {
			t.Fatal("refused")
		}
		defer func() {
			if a.Give(100); n == 0 { // the last
				left := 0
				b.by.Range(func(_, _ any) bool { left++; return true })
				if left > manyBorrowers || b.Used() > manyBorrowers*b.spare {
					t.Errorf("%d accounts and %d bytes left, want those of %d at most", left, b.Used(), manyBorrowers)
				}
			}
		}()
	}
}

// If some owners take all they can get, further owners still get memory.
func TestSomethingIsLeftForTheNext(t *testing.T) {
	b := New(1024 * block)
	for n := range 5 {
		a := b.Account(fmt.Sprint("greedy", n))
		if !a.Take(block) {
			t.Fatalf("greedy owner %d got nothing", n)
		}
		for a.Take(block) {
			continue
		}
	}
	for n := range 20 {
		if !b.Account(fmt.Sprint("modest", n)).Take(block / 2) {
			t.Fatalf("modest owner %d got nothing", n)
		}
	}
}

// Concurrent calls of Take and Give neither lose nor add bytes.
func TestConcurrentUse(t *testing.T) {
	b := New(8 * block)
	var wg sync.WaitGroup
	for n := range 8 {
		wg.Go(func() {
			for i := range 10_000 {
				a := b.Account(fmt.Sprint(n % 3))
				size := int64(1 + i*37%(2*block))
				if a.Take(size) {
					a.Give(size)
				}
			}
		})
	}
	wg.Wait()
	if got := b.Used(); got < 0 || got > 3*b.spare {
		t.Errorf("Used() = %d after all was given back, want from 0 to %d", got, 3*b.spare)
	}
}

func BenchmarkTakeGive(b *testing.B) {
	budget := New(1 << 30)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			a := budget.Account("anonymous")
			if !a.Take(4 << 10) {
				b.Fatal("refused")
			}
			a.Give(4 << 10)
		}
	})
}

// Before a Take fails, free is called, unless the Take would fail in any case.
func TestShortBudgetAsksForMore(t *testing.T) {
	b := New(16 * block)
	comfort := b.Account("comfort")
	kept, asked := int64(0), 0
	for ; comfort.Take(block); kept += block {
		continue
	}
	b.OnShort(func(n int64) bool {
		asked++
		if kept < n {
			return false
		}
		comfort.Give(kept)
		kept = 0
		return true
	})
	a := b.Account("ada")
	if !a.Take(6*block) || asked != 1 || kept != 0 {
		t.Errorf("Take with %d bytes left to others, asked %d times: want them given back at once", kept, asked)
	}
	if a.Take(6*block) || asked != 2 {
		t.Errorf("Take of more than a share was granted, or %d calls, want 2", asked)
	}
}
