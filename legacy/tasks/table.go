package tasks

import "sync"

// A Table contains the running tasks of a session, each with its owner. It is safe for
// concurrent use; the zero value is ready to use.
type Table[O any] struct {
	mu   sync.Mutex // guards byID; a leaf
	byID map[string]owned[O]
}

type owned[O any] struct {
	task  *Task
	owner O
}

// Add adds a task.
func (t *Table[O]) Add(task *Task, owner O) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byID == nil {
		t.byID = make(map[string]owned[O])
	}
	t.byID[task.id] = owned[O]{task, owner}
}

// Remove removes a task, unless another one has the same id by now.
func (t *Table[O]) Remove(task *Task) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byID[task.id].task == task {
		delete(t.byID, task.id)
	}
}

// Find returns the task with an id and its owner; nil if there is none.
func (t *Table[O]) Find(id string) (*Task, O) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.byID[id]
	return e.task, e.owner
}
