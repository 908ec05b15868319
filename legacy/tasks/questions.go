package tasks

import (
	"context"
	"slices"
	"strconv"
	"sync"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/wake"
)

// questions are the input requests of a task that wait for their responses. Safe for concurrent use.
type questions struct {
	changed func() // called when what is open has changed

	// mu guards the fields below. It is a leaf.
	mu      sync.Mutex
	keys    int // that were used: none is used twice
	open    []*question
	ended   error       // why no more are accepted; nil until then
	missing []byte      // the capability that a refused one needed; nil if none was refused
	asked   wake.Signal // there is one more; nil until somebody waits for that
}

// awaited returns what is sent when there is one more question.
func (qs *questions) awaited() wake.Signal {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	if qs.asked == nil {
		qs.asked = wake.NewSignal()
	}
	return qs.asked
}

// A question is an input request that waits for its response.
type question struct {
	key      string
	request  mcp.InputRequest
	response chan mcp.InputResponse // capacity 1
}

// ask waits for the response to an input request. When ctx ends, it takes it back.
func (qs *questions) ask(ctx context.Context, r mcp.InputRequest) (mcp.InputResponse, error) {
	q := &question{request: r, response: make(chan mcp.InputResponse, 1)}
	qs.mu.Lock()
	if qs.ended != nil {
		qs.mu.Unlock()
		return mcp.Unanswered(r.Method, qs.ended), nil
	}
	qs.keys++
	q.key = "q" + strconv.Itoa(qs.keys)
	qs.open = append(qs.open, q)
	qs.asked.Send()
	qs.mu.Unlock()
	qs.changed()
	defer qs.changed()
	select {
	case a := <-q.response:
		return a, nil
	case <-ctx.Done():
		qs.remove(q)
		return mcp.InputResponse{}, context.Cause(ctx)
	}
}

// remove removes an open question, and reports whether it was one.
func (qs *questions) remove(q *question) bool {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	i := slices.Index(qs.open, q)
	if i >= 0 {
		qs.open = slices.Delete(qs.open, i, i+1)
	}
	return i >= 0
}

// answer passes the client's response to the question of a key. One that is unknown, or whose
// response can't be one, is left as it is.
func (qs *questions) answer(key string, response []byte) {
	qs.mu.Lock()
	i := slices.IndexFunc(qs.open, func(q *question) bool { return q.key == key })
	if i < 0 || !mcp.WellFormed(qs.open[i].request.Method, response) {
		qs.mu.Unlock()
		return
	}
	q := qs.open[i]
	qs.open = slices.Delete(qs.open, i, i+1)
	qs.mu.Unlock()
	q.response <- mcp.InputResponse{Result: slices.Clone(response)}
}

// cancel answers the open questions, as if the client had no answer to them.
func (qs *questions) cancel(cause error) {
	qs.mu.Lock()
	open := qs.open
	qs.open = nil
	qs.mu.Unlock()
	for _, q := range open {
		q.response <- mcp.Unanswered(q.request.Method, cause)
	}
}

// end is cancel, also of questions that come later.
func (qs *questions) end(cause error) {
	qs.mu.Lock()
	if qs.ended == nil {
		qs.ended = cause
	}
	qs.mu.Unlock()
	qs.cancel(cause)
}

// refuse stores the capability that a question needs which the client did not declare.
func (qs *questions) refuse(need []byte) {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	if qs.missing == nil {
		qs.missing = need
	}
}

func (qs *questions) lacked() []byte {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	return qs.missing
}

// text returns the open questions as inputRequests has them; nil if there are none.
//
// Spec: tasks extension 2026-07-28, Input Required.
func (qs *questions) text() []byte {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	if len(qs.open) == 0 {
		return nil
	}
	dst := []byte{'{'}
	for i, q := range qs.open {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = mcp.AppendInput(dst, q.key, q.request)
	}
	return append(dst, '}')
}
