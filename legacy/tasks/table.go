package tasks

import (
	"sync"
)

// A Table contains the tasks of a session, by their ids at its server. It is safe for concurrent
// use; the zero value is ready to use.
type Table[T comparable] struct {
	mu   sync.Mutex // guards byID; a leaf
	byID map[string]T
}

// Add adds a task.
func (t *Table[T]) Add(id string, task T) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byID == nil {
		t.byID = make(map[string]T)
	}
	t.byID[id] = task
}

// Remove removes a task, unless another one has the same id by now.
func (t *Table[T]) Remove(id string, task T) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byID[id] == task {
		delete(t.byID, id)
	}
}

// Find returns the task with an id; zero if there is none.
func (t *Table[T]) Find(id string) T {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.byID[id]
}
