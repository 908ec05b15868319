package upstream

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/status"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// Live returns how many of the tasks are not over. It implements [status.TaskTable], as do the next two.
func (t *Tasks) Live() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.alive
}

// TellTasks returns the tasks that are not over.
func (t *Tasks) TellTasks() status.Tasks {
	out := status.Tasks{List: []status.Task{}}
	for _, task := range t.listed() {
		switch told, live := task.tell(); {
		case !live:
		case len(out.List) == status.MaxTasks:
			out.Left++
		default:
			out.List = append(out.List, told)
		}
	}
	return out
}

// CancelTask cancels the task with a key.
func (t *Tasks) CancelTask(ctx context.Context, key string) (status.Task, error) {
	for _, task := range t.listed() {
		if keyOf(task.ID) != key {
			continue
		}
		told, live := task.tell()
		source, can := task.source.(interface {
			Cancel(ctx context.Context) (TaskState, error)
		})
		if !live || !can {
			break
		}
		if _, err := source.Cancel(ctx); err != nil {
			return told, errors.New("the task was not cancelled: " + transport.Cause(err).Error())
		}
		return told, nil
	}
	return status.Task{}, errors.New("there is no such task any more: it is over, or its time is up")
}

// listed returns the tasks that are held, those that were made first in front.
func (t *Tasks) listed() []*Task {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.SortedFunc(slices.Values(t.ends), func(a, b *Task) int {
		return cmp.Or(a.made.Compare(b.made), cmp.Compare(a.ID, b.ID))
	})
}

// tell returns what is told of a task, and whether it is not over.
func (t *Task) tell() (told status.Task, live bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	told = status.Task{Key: keyOf(t.ID), Principal: string(t.owner), Tool: mcp.Shorten(t.tool), Status: t.last.Status,
		Made: t.made, Until: t.end, Looked: t.lookedAt, Followers: len(t.followers)}
	for _, q := range wire.Members(wire.Get(t.last.Text, "inputRequests")) {
		if method, ok := wire.GetString(q, "method"); ok && !slices.Contains(told.Asks, method) {
			told.Asks = append(told.Asks, mcp.Shorten(method))
		}
	}
	return told, t.counted
}

// keyOf returns what a task is called where its id must not be shown, which grants access.
func keyOf(id string) string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:8])
}
