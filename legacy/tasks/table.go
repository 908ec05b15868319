package tasks

import "sync"

// A Table holds the tasks of a session that are under way, each with its owner. Safe for
// concurrent use; the zero value is ready to use.
type Table[O any] struct {
	mu   sync.Mutex // guards byID; a leaf
	byID map[string]owned[O]
}

type owned[O any] struct {
	task  *Task
	owner O
}

// Add takes a task in.
func (t *Table[O]) Add(task *Task, owner O) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byID == nil {
		t.byID = make(map[string]owned[O])
	}
	t.byID[task.id] = owned[O]{task, owner}
}

// Remove forgets a task, unless another has taken its name.
func (t *Table[O]) Remove(task *Task) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byID[task.id].task == task {
		delete(t.byID, task.id)
	}
}

// Find returns the task of a name and its owner; nil if there is none.
func (t *Table[O]) Find(id string) (*Task, O) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.byID[id]
	return e.task, e.owner
}
