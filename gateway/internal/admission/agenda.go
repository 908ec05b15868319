package admission

import (
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
)

// An entry is an open stream or connection.
type entry struct {
	id    *mcp.Identity
	end   func(reason error)
	until time.Time // when the credential ends it; zero for never

	// Guarded by Expirer.mu.
	at    time.Time // of the next check, or the end
	index int       // in the agenda; -1 while it is checked
	done  bool      // it was ended or forgotten
}

func (e *entry) expired(now time.Time) bool {
	return !e.until.IsZero() && !e.until.After(now)
}

// An agenda is a heap of entries, with the earliest at the front.
type agenda []*entry

func (a agenda) Len() int           { return len(a) }
func (a agenda) Less(i, j int) bool { return a[i].at.Before(a[j].at) }

func (a agenda) Swap(i, j int) {
	a[i], a[j] = a[j], a[i]
	a[i].index, a[j].index = i, j
}

// Push implements [heap.Interface].
func (a *agenda) Push(x any) {
	e := x.(*entry)
	e.index = len(*a)
	*a = append(*a, e)
}

// Pop implements [heap.Interface].
func (a *agenda) Pop() any {
	last := len(*a) - 1
	e := (*a)[last]
	(*a)[last] = nil
	*a = (*a)[:last]
	e.index = -1
	return e
}
