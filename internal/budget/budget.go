package budget

import (
	"sync"
	"sync/atomic"
)

const (
	// block is the unit, in bytes, in which an account borrows.
	block = 64 << 10
	// minSpare and maxSpare bound how much unused memory an account may keep.
	minSpare, maxSpare = 2 * block, 16 * block
	// spareParts is the divisor of the budget that gives that amount: what all accounts
	// that keep some have of it is at most a quarter, unless the budget is very small.
	spareParts = 4 * manyBorrowers
	// manyBorrowers is the number of accounts with borrowed memory beyond which unused
	// accounts keep none.
	manyBorrowers = 64
)

// A Budget is an amount of memory that accounts borrow from. Its methods are safe for
// concurrent use.
type Budget struct {
	// Set by New, read-only after.
	spare int64 // how much unused memory an account may keep

	by   sync.Map    // owner -> *Account
	many atomic.Bool // borrowers is more than manyBorrowers
	free func(n int64) bool

	// mu guards the fields below, and Account.lent.
	mu        sync.Mutex
	max       int64
	lent      int64
	borrowers int // accounts with borrowed memory
}

// New returns a Budget of the given size.
func New(bytes int64) *Budget {
	return &Budget{max: bytes, spare: min(max(bytes/spareParts, minSpare), maxSpare)}
}

// Bound sets the size. Of a smaller one accounts keep what they have, and get no more until
// there is some left.
func (b *Budget) Bound(bytes int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.max = bytes
}

// OnShort sets a function that is called before a Take fails. free gives back n bytes of
// other accounts, or returns false. It may be called concurrently, on the goroutines that
// call Take, and must not call Take itself. Call OnShort before the first Take.
func (b *Budget) OnShort(free func(n int64) bool) { b.free = free }

// Account returns the account of an owner, which must be comparable. Do not keep it
// between uses: an account without borrowed memory is removed.
func (b *Budget) Account(owner any) *Account {
	if a := b.Find(owner); a != nil {
		return a
	}
	a, _ := b.by.LoadOrStore(owner, &Account{b: b, owner: owner})
	return a.(*Account)
}

// Find returns the account of an owner if there is one, or nil. It does not keep owner,
// which Account does: the caller need not allocate it.
func (b *Budget) Find(owner any) *Account {
	a, _ := b.by.Load(owner)
	account, _ := a.(*Account)
	return account
}

// Used returns how many bytes all accounts have borrowed, including unused ones.
func (b *Budget) Used() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.lent
}

// missingLocked returns how many bytes are missing for a to borrow n more. An account may
// not have more than what is left for all others: the first one gets at most half, and
// each further one at most half of the rest.
func (b *Budget) missingLocked(a *Account, n int64) int64 {
	left := b.max - b.lent - n
	return max(a.lent+n-left, 0)
}

// An Account takes memory from a Budget for one owner. Its methods are safe for
// concurrent use.
type Account struct {
	b      *Budget
	owner  any
	credit atomic.Int64 // borrowed and not in use
	lent   int64        // guarded by Budget.mu
}

// Take takes n bytes, and reports false if they are not available.
func (a *Account) Take(n int64) bool {
	for {
		c := a.credit.Load()
		if c < n {
			missing := a.borrow(n)
			if missing > 0 && a.b.free != nil && a.b.free(missing+a.b.spare) {
				missing = a.borrow(n)
			}
			return missing == 0
		}
		if a.credit.CompareAndSwap(c, c-n) {
			return true
		}
	}
}

// Give gives back n bytes that were taken.
func (a *Account) Give(n int64) {
	if c := a.credit.Add(n); c > a.b.spare || a.b.many.Load() {
		a.repay()
	}
}

// borrow borrows blocks for n bytes, and adds the rest of the blocks to the credit. It
// returns how many bytes are missing for that.
func (a *Account) borrow(n int64) (missing int64) {
	more := (n + block - 1) / block * block
	a.b.mu.Lock()
	defer a.b.mu.Unlock()
	if missing = a.b.missingLocked(a, more); missing > 0 {
		if a.lent == 0 {
			a.b.by.CompareAndDelete(a.owner, a)
		}
		return missing
	}
	if a.lent == 0 {
		a.b.borrowers++
		a.b.many.Store(a.b.borrowers > manyBorrowers)
	}
	a.lent += more
	a.b.lent += more
	a.credit.Add(more - n)
	return 0
}

// repay returns unneeded credit: all but half of spare, or all of it if the account uses
// nothing and there are many borrowers.
func (a *Account) repay() {
	a.b.mu.Lock()
	defer a.b.mu.Unlock()
	for {
		c := a.credit.Load()
		back := (c - a.b.spare/2) / block * block
		if c == a.lent && a.b.borrowers > manyBorrowers {
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
		a.b.borrowers--
		a.b.many.Store(a.b.borrowers > manyBorrowers)
		a.b.by.CompareAndDelete(a.owner, a)
	}
}
