package budget

import (
	"sync"
	"sync/atomic"
)

const (
	// block is what an account borrows at least, in bytes.
	block = 64 << 10
	// spare is how much an account keeps that it does not use.
	spare = 2 * block
	// crowd is the number of accounts past which those that use nothing keep nothing.
	crowd = 64
)

// A Budget is an amount of memory that accounts draw on. Its methods are safe for
// concurrent use.
type Budget struct {
	max     int64       // read-only
	by      sync.Map    // owner -> *Account
	crowded atomic.Bool // there are more than crowd accounts in debt
	free    func(n int64) bool

	// mu guards the fields below, and Account.lent. It is held for arithmetic only.
	mu   sync.Mutex
	lent int64
	debt int // accounts that have borrowed something
}

// New returns a Budget of so many bytes.
func New(bytes int64) *Budget { return &Budget{max: bytes} }

// OnShort has free called before a Take fails: it gives n bytes back to the Budget that
// others can do without, or none and returns false. It may be called for several at a
// time, by whoever takes, and must not take itself. OnShort is for before the first Take.
func (b *Budget) OnShort(free func(n int64) bool) { b.free = free }

// Account returns the account of an owner, which is comparable. It is to be asked for anew by each who draws
// on it: one that owes nothing is forgotten.
func (b *Budget) Account(owner any) *Account {
	if a, ok := b.by.Load(owner); ok {
		return a.(*Account)
	}
	a, _ := b.by.LoadOrStore(owner, &Account{b: b, owner: owner})
	return a.(*Account)
}

// Used returns how many bytes accounts have borrowed, used or not.
func (b *Budget) Used() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.lent
}

// lacksLocked returns how many bytes are missing for a to borrow n more: none may have
// more than what is left then. One alone gets half, and each that follows half of what
// those before left.
func (b *Budget) lacksLocked(a *Account, n int64) int64 {
	left := b.max - b.lent - n
	return max(a.lent+n-left, 0)
}

// An Account draws on a Budget for one owner. Its methods are safe for concurrent use.
type Account struct {
	b      *Budget
	owner  any
	credit atomic.Int64 // borrowed and not in use
	lent   int64        // guarded by Budget.mu
}

// Take takes n bytes, and reports false if they can't be had.
func (a *Account) Take(n int64) bool {
	for {
		c := a.credit.Load()
		if c < n {
			lacks := a.borrow(n)
			if lacks > 0 && a.b.free != nil && a.b.free(lacks+spare) {
				lacks = a.borrow(n)
			}
			return lacks == 0
		}
		if a.credit.CompareAndSwap(c, c-n) {
			return true
		}
	}
}

// Give gives back n bytes that were taken.
func (a *Account) Give(n int64) {
	if c := a.credit.Add(n); c > spare || a.b.crowded.Load() {
		a.repay()
	}
}

// borrow takes n bytes of new credit, and keeps what is left of its blocks. It returns
// how many bytes are missing for that.
func (a *Account) borrow(n int64) (lacks int64) {
	more := (n + block - 1) / block * block
	a.b.mu.Lock()
	defer a.b.mu.Unlock()
	if lacks = a.b.lacksLocked(a, more); lacks > 0 {
		if a.lent == 0 {
			a.b.by.CompareAndDelete(a.owner, a)
		}
		return lacks
	}
	if a.lent == 0 {
		a.b.debt++
		a.b.crowded.Store(a.b.debt > crowd)
	}
	a.lent += more
	a.b.lent += more
	a.credit.Add(more - n)
	return 0
}

// repay gives back the credit that is not needed: all but a block, and all of an account
// that uses nothing where there are many.
func (a *Account) repay() {
	a.b.mu.Lock()
	defer a.b.mu.Unlock()
	for {
		c := a.credit.Load()
		back := (c - block) / block * block
		if c == a.lent && a.b.debt > crowd {
			back = c
		}
		if back <= 0 {
			return
		}
		if a.credit.CompareAndSwap(c, c-back) {
			a.repaidLocked(back)
			return
		}
	}
}

func (a *Account) repaidLocked(n int64) {
	a.lent -= n
	a.b.lent -= n
	if a.lent == 0 {
		a.b.debt--
		a.b.crowded.Store(a.b.debt > crowd)
		a.b.by.CompareAndDelete(a.owner, a)
	}
}
