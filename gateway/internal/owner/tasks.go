package owner

import (
	"crypto/sha256"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/mcpbridge/mcpbridge/internal/budget"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
)

const (
	// maxOwned limits the stored tasks of one server, and maxOwnedEach those of one
	// principal.
	maxOwned     = 100_000
	maxOwnedEach = 50_000
	// ownedSize is the approximate memory for one task, in bytes.
	ownedSize = 512
)

// A taskKey is the digest of a task's id, which may be of any length, and grants access to
// the task (CWE-770, CWE-312).
type taskKey [sha256.Size]byte

func keyOfTask(id string) taskKey { return sha256.Sum256([]byte(id)) }

// tasks stores the principals of the tasks of one server, within limits: at the server's
// limit it forgets the least recently used task, and at a principal's limit the principal's
// own. It is safe for concurrent use.
type tasks struct {
	max, each int // read-only, like the next two
	// account returns the account for the memory of a share's tasks.
	account func(mcp.Share) *budget.Account
	// full is called for each task that is forgotten at a limit, or not stored. mu is held.
	full func()

	// mu guards the fields below. It is held for map work, and while an account is used.
	mu    sync.Mutex
	known *simplelru.LRU[taskKey, *task]
	by    map[mcp.Principal]*simplelru.LRU[taskKey, struct{}] // their tasks; none is empty
}

type task struct {
	owner mcp.Principal
	paid  *budget.Account
	noted time.Time
}

func newTasks(max, each int, account func(mcp.Share) *budget.Account, full func()) (*tasks, error) {
	// The LRU never evicts by itself: one more would fit.
	known, err := simplelru.NewLRU[taskKey, *task](max+1, nil)
	if err != nil {
		return nil, err
	}
	return &tasks{max: max, each: each, account: account, full: full, known: known,
		by: make(map[mcp.Principal]*simplelru.LRU[taskKey, struct{}])}, nil
}

// note stores that a task belongs to a share's principal.
func (o *tasks) note(share mcp.Share, id string) {
	key, paid := keyOfTask(id), o.account(share)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.removeLocked(key) // the server may use an id again
	if mine := o.by[share.Principal]; mine != nil && mine.Len() >= o.each {
		o.forgetOldestLocked(mine)
	}
	if o.known.Len() >= o.max {
		oldest, _, _ := o.known.GetOldest()
		o.removeLocked(oldest)
		o.full()
	}
	if o.payLocked(paid, share.Principal) {
		o.addLocked(key, &task{share.Principal, paid, time.Now()})
	}
}

// payLocked reserves the memory for one task. If there is not enough, it forgets the
// owner's oldest task.
func (o *tasks) payLocked(from *budget.Account, owner mcp.Principal) bool {
	if from.Take(ownedSize) {
		return true
	}
	mine := o.by[owner]
	if mine == nil {
		o.full()
		return false
	}
	o.forgetOldestLocked(mine)
	return from.Take(ownedSize)
}

// ownedByOther reports whether a task is known to belong to another principal. A task of p's
// own counts as used.
func (o *tasks) ownedByOther(p mcp.Principal, id string) bool {
	key := keyOfTask(id)
	o.mu.Lock()
	defer o.mu.Unlock()
	t, known := o.known.Peek(key)
	if !known {
		return false
	}
	if t.owner != p {
		return true
	}
	o.known.Get(key)
	o.by[p].Get(key)
	return false
}

// knows reports whether it is known whose a task is.
func (o *tasks) knows(id string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.known.Contains(keyOfTask(id))
}

// ownerOf returns whose a task is.
func (o *tasks) ownerOf(key taskKey) (owner mcp.Principal, known bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	t, known := o.known.Peek(key)
	if !known {
		return "", false
	}
	return t.owner, true
}

// since returns the tasks that were noted after a time.
func (o *tasks) since(at time.Time) (keys []taskKey) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, key := range o.known.Keys() {
		if t, _ := o.known.Peek(key); t.noted.After(at) {
			keys = append(keys, key)
		}
	}
	return keys
}

func (o *tasks) addLocked(key taskKey, t *task) {
	o.known.Add(key, t)
	mine := o.by[t.owner]
	if mine == nil {
		mine, _ = simplelru.NewLRU[taskKey, struct{}](o.each+1, nil) // the size is positive
		o.by[t.owner] = mine
	}
	mine.Add(key, struct{}{})
}

func (o *tasks) forgetOldestLocked(mine *simplelru.LRU[taskKey, struct{}]) {
	oldest, _, _ := mine.GetOldest()
	o.removeLocked(oldest)
	o.full()
}

func (o *tasks) removeLocked(key taskKey) {
	t, known := o.known.Peek(key)
	if !known {
		return
	}
	o.known.Remove(key)
	mine := o.by[t.owner]
	if mine.Remove(key); mine.Len() == 0 {
		delete(o.by, t.owner)
	}
	t.paid.Give(ownedSize)
}

// close forgets all tasks.
func (o *tasks) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for key, _, ok := o.known.GetOldest(); ok; key, _, ok = o.known.GetOldest() {
		o.removeLocked(key)
	}
}
