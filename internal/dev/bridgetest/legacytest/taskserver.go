package legacytest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// RelatedTask is a member of results that belong to the task of a TaskServer.
const RelatedTask = `"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t1"}}`

// A TaskServer has a tool, "t", that must run as a task, which goes through stages.
type TaskServer struct {
	*Server
	Stages    []string      // members of the task, as each tasks/get finds it, the last for good
	Result    string        // of tasks/result
	Begin     func()        // runs when tasks/result is called; may be nil
	Cancelled chan string   // gets the params of tasks/cancel
	Unasked   bool          // tasks are made also of calls that ask for none
	Called    func()        // runs when the tool is called; may be nil
	Interval  int           // ms: pollInterval; zero means 1000
	Slow      time.Duration // of tasks/get
	SlowCall  time.Duration // of the call, which is answered also if it is cancelled

	SlowCancel time.Duration // of tasks/cancel

	mu      sync.Mutex // guards what follows
	looks   int
	pages   int
	methods []string
	params  json.RawMessage // of the call
}

// Play has a play the server.
func (ts *TaskServer) Play(a *Server) {
	ts.Server, ts.Cancelled = a, make(chan string, 1)
	a.Capabilities = `{"tools":{"listChanged":true},"tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}}`
	a.Call = ts.call
	a.On = map[string]func(wire.Message) string{
		"tools/list":   ts.list,
		"tasks/get":    ts.get,
		"tasks/result": ts.result,
		"tasks/cancel": func(m wire.Message) string {
			ts.Cancelled <- string(m.Params)
			time.Sleep(ts.SlowCancel)
			return `{}`
		},
	}
}

func (ts *TaskServer) call(c *ServerCall) string {
	if ts.Called != nil {
		ts.Called()
	}
	time.Sleep(ts.SlowCall)
	ts.mu.Lock()
	defer ts.mu.Unlock()
	ts.methods = append(ts.methods, c.Message.Method)
	ts.params = c.Message.Params
	if wire.Get(c.Message.Params, "task") == nil && !ts.Unasked {
		return `{"isError":true,"content":[{"type":"text","text":"requires task augmentation"}]}`
	}
	created := fmt.Sprintf(`{"task":{"taskId":"t1","status":"working","pollInterval":%d}}`, ts.interval())
	select {
	case <-c.Cancelled: // it is made all the same
		ts.methods = append(ts.methods, "notifications/cancelled")
		c.answer(c.Message.ID, created)
	default:
	}
	return created
}

func (ts *TaskServer) list(m wire.Message) string {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	ts.pages++
	if wire.Get(m.Params, "cursor") == nil {
		return `{"tools":[{"name":"plain"}],"nextCursor":"2"}`
	}
	return `{"tools":[{"name":"t","execution":{"taskSupport":"required"}},{"name":"either","execution":{"taskSupport":"optional"}}]}`
}

func (ts *TaskServer) get(m wire.Message) string {
	time.Sleep(ts.Slow)
	ts.mu.Lock()
	defer ts.mu.Unlock()
	ts.methods = append(ts.methods, m.Method)
	st := ts.Stages[min(ts.looks, len(ts.Stages)-1)]
	ts.looks++
	if strings.HasPrefix(st, `{`) {
		return st
	}
	return fmt.Sprintf(`{"taskId":"t1","pollInterval":%d,%s}`, ts.interval(), st)
}

func (ts *TaskServer) interval() int { return cmp.Or(ts.Interval, 1000) }

// SetStages has further looks find other stages.
func (ts *TaskServer) SetStages(stages ...string) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	ts.Stages, ts.looks = stages, 0
}

func (ts *TaskServer) result(m wire.Message) string {
	ts.mu.Lock()
	ts.methods = append(ts.methods, m.Method)
	ts.mu.Unlock()
	if ts.Begin != nil {
		ts.Begin()
	}
	return ts.Result
}

// Count returns how many requests of a method that is the task's came.
func (ts *TaskServer) Count(method string) (n int) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	for _, m := range ts.methods {
		if m == method {
			n++
		}
	}
	return n
}

// Pages returns how many pages of tools were read.
func (ts *TaskServer) Pages() int {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	return ts.pages
}

// CallParams returns the params of the last call.
func (ts *TaskServer) CallParams() json.RawMessage {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	return slices.Clone(ts.params)
}

// ForgetCalls forgets what has come so far.
func (ts *TaskServer) ForgetCalls() {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	ts.methods = nil
}
