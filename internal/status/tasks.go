package status

import (
	"context"
	"time"
)

// MaxTasks is how many tasks of a server are listed.
const MaxTasks = 200

// Tasks are tasks of one server that are not over, those that were made first in front.
type Tasks struct {
	List []Task `json:"list"`
	Left int    `json:"left,omitempty"` // not listed
}

// A Task is one that the gateway holds for a client of the other era.
type Task struct {
	// Key names the task at the admin address. It is no id, which would grant access.
	Key       string    `json:"key"`
	Principal string    `json:"principal,omitempty"`
	Tool      string    `json:"tool,omitempty"`
	Status    string    `json:"status"`         // as the last look has found it
	Asks      []string  `json:"asks,omitempty"` // the methods of its open questions, as far as they are known
	Made      time.Time `json:"made"`
	Until     time.Time `json:"until"` // when its time is up
	Looked    time.Time `json:"looked,omitzero"`
	Followers int       `json:"followers"` // who wait for what becomes of it
}

// A TaskTable has the tasks of a server.
type TaskTable interface {
	// Live returns how many there are, and TellTasks what they are. They do not block.
	Live() int
	TellTasks() Tasks
	// CancelTask cancels the task with a key, as its client can. It returns the task. An error is for people.
	CancelTask(ctx context.Context, key string) (Task, error)
}
