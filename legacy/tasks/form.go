package tasks

import (
	"strconv"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A form is what a task of 2026 has that one of 2025 lacks, or has otherwise.
type form struct {
	id      string
	made    string // used where the server names no time
	ttl     int64  // ms
	message string // used where the server has no statusMessage
}

// append appends a task of a server, with its status and open questions, as clients of 2026-07-28
// read it, without its end. Members that the form does not know pass.
//
// Spec: tasks extension 2026-07-28, Task.
func (f *form) append(dst []byte, task []byte, status string, questions []byte) []byte {
	dst = wire.AppendString(append(dst, `{"taskId":`...), f.id)
	dst = wire.AppendString(append(dst, `,"status":`...), status)
	var created, updated, said bool
	for k, v := range wire.Members(task) {
		switch {
		case k.Is("taskId"), k.Is("status"), k.Is("ttl"), k.Is("pollInterval"), k.Is("resultType"), k.Is("ttlMs"), k.Is("pollIntervalMs"),
			k.Is("result"), k.Is("error"), k.Is("inputRequests"):
			continue
		case wire.IsNull(v) && (k.Is("createdAt") || k.Is("lastUpdatedAt") || k.Is("statusMessage")):
			continue
		case k.Is("_meta"):
			if v = wire.Without(v, spec.MetaRelatedTask); v == nil {
				continue
			}
		}
		created, updated, said = created || k.Is("createdAt"), updated || k.Is("lastUpdatedAt"), said || k.Is("statusMessage")
		dst = append(append(append(append(dst, ','), k...), ':'), v...)
	}
	for _, m := range []struct {
		there bool
		name  string
		value string
	}{{created, "createdAt", f.made}, {updated, "lastUpdatedAt", f.made}, {said || f.message == "", "statusMessage", f.message}} {
		if !m.there {
			dst = append(wire.AppendString(append(dst, ','), m.name), ':')
			dst = wire.AppendString(dst, m.value)
		}
	}
	dst = strconv.AppendInt(append(dst, `,"ttlMs":`...), f.ttl, 10)
	if ms, ok := upstream.Milliseconds(wire.Get(task, "pollInterval")); ok {
		dst = strconv.AppendInt(append(dst, `,"pollIntervalMs":`...), ms, 10)
	}
	if questions != nil {
		dst = append(append(dst, `,"inputRequests":`...), questions...)
	}
	return append(dst, '}')
}

// Body returns what a client is told of a task: its state, and what it came to. kind is the type of
// a result; empty in a notification.
func Body(s *upstream.TaskState, kind string) []byte {
	dst := make([]byte, 0, len(s.Text)+len(s.Result)+64)
	dst = append(dst, '{')
	if kind != "" {
		dst = append(wire.AppendString(append(dst, `"resultType":`...), kind), ',')
	}
	dst = append(dst, s.Text[1:len(s.Text)-1]...)
	switch e, failed := s.Err.(*wire.Error); {
	case failed:
		dst = append(append(dst, `,"error":`...), errorText(e)...)
	case s.Result != nil:
		dst = append(append(dst, `,"result":`...), s.Result...)
	}
	return append(dst, '}')
}

func errorText(e *wire.Error) []byte {
	return wire.AppendEdited(nil, nil,
		wire.Edit{Name: "code", Value: strconv.AppendInt(nil, e.Code, 10)},
		wire.Edit{Name: "message", Value: wire.Quote(e.Message)},
		wire.Edit{Name: "data", Value: e.Data})
}

// LifeOf returns for how long a task is held: as long as its server keeps it, and no longer than
// the gateway does.
func LifeOf(task []byte, most time.Duration) time.Duration {
	ms, ok := upstream.Milliseconds(wire.Get(task, "ttl"))
	if !ok || ms == 0 || ms >= most.Milliseconds() {
		return most
	}
	return time.Duration(ms) * time.Millisecond
}
