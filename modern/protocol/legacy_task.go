package protocol

import (
	"time"

	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A LegacyTask is what a task of 2025-11-25 has that is not the server's. Texts are JSON; nil ones
// stand for nothing.
type LegacyTask struct {
	ID, Status string
	TTL        []byte // ms, or null
	Interval   []byte // ms
	Message    []byte // replaces the server's statusMessage
	Made       []byte // stands in for times that the server does not give
}

// Append appends a task of a server, as clients of 2025-11-25 read it, without what it came to, and
// what it asks. Members that neither revision defines pass.
//
// Spec: 2025-11-25, schema, Task; tasks extension 2026-07-28, Task.
func (l *LegacyTask) Append(dst, task []byte) []byte {
	given := func(name string, or []byte) []byte {
		if v := wire.Get(task, name); v != nil && !wire.IsNull(v) {
			return v
		}
		return or
	}
	message := l.Message
	if message == nil {
		message = given("statusMessage", nil)
	}
	meta := wire.Without(wire.Get(task, "_meta"), spec.MetaServerInfo, spec.MetaSubscriptionID, spec.MetaRelatedTask)
	return wire.AppendEdited(dst, task,
		wire.Edit{Name: "taskId", Value: wire.Quote(l.ID)},
		wire.Edit{Name: "status", Value: wire.Quote(l.Status)},
		wire.Edit{Name: "createdAt", Value: given("createdAt", l.Made)},
		wire.Edit{Name: "lastUpdatedAt", Value: given("lastUpdatedAt", l.Made)},
		wire.Edit{Name: "statusMessage", Value: message},
		wire.Edit{Name: "ttl", Value: l.TTL},
		wire.Edit{Name: "pollInterval", Value: l.Interval},
		wire.Edit{Name: "_meta", Value: meta},
		wire.Edit{Name: "resultType"}, wire.Edit{Name: "ttlMs"}, wire.Edit{Name: "pollIntervalMs"}, wire.Edit{Name: "cacheScope"},
		wire.Edit{Name: "result"}, wire.Edit{Name: "error"}, wire.Edit{Name: "inputRequests"})
}

// RelatedTo returns the edit of a _meta that says to which task a message belongs.
//
// Spec: 2025-11-25, basic/utilities/tasks, Related Task Metadata.
func RelatedTo(id string) wire.Edit {
	return wire.Edit{Name: spec.MetaRelatedTask, Value: wire.AppendEdited(nil, nil, wire.Edit{Name: "taskId", Value: wire.Quote(id)})}
}

// Timestamp returns a time as tasks have it.
func Timestamp(t time.Time) []byte { return wire.Quote(t.UTC().Format("2006-01-02T15:04:05.000Z")) }
