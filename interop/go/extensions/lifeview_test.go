package extensions

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A taskView is a task of either era, as a client is shown it.
type taskView struct {
	ResultType, TaskID, Status, StatusMessage string
	CreatedAt, LastUpdatedAt                  string
	TTL, TTLMs, PollInterval, PollIntervalMs  json.RawMessage
	InputRequests                             map[string]questionView
	Result                                    *outcomeView
	Error                                     *struct {
		Code    int
		Message string
	}
	Meta map[string]json.RawMessage `json:"_meta"`
}

// String tells all but ids, keys, times and what servers choose.
func (t *taskView) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", t.ResultType, t.Status)
	if t.StatusMessage != "" {
		fmt.Fprintf(&b, " (%s)", t.StatusMessage)
	}
	for name, has := range inOrder("created", t.CreatedAt != "", "updated", t.LastUpdatedAt != "", "ttl", t.TTL != nil, "ttlMs", t.TTLMs != nil) {
		if has {
			b.WriteString(" " + name)
		}
	}
	fmt.Fprintf(&b, " %s%s", t.PollInterval, t.PollIntervalMs)
	if len(t.InputRequests) > 0 {
		var asked []string
		for _, q := range t.InputRequests {
			asked = append(asked, q.String())
		}
		slices.Sort(asked)
		fmt.Fprintf(&b, " asks %s", strings.Join(asked, ", "))
	}
	if t.Result != nil {
		fmt.Fprintf(&b, " result %s", t.Result)
	}
	if t.Error != nil {
		fmt.Fprintf(&b, " error %d %s", t.Error.Code, t.Error.Message)
	}
	if _, ok := t.Meta["io.modelcontextprotocol/related-task"]; ok {
		b.WriteString(" related")
	}
	return b.String()
}

// inOrder iterates over pairs of names and values.
func inOrder(pairs ...any) func(yield func(string, bool) bool) {
	return func(yield func(string, bool) bool) {
		for pair := range slices.Chunk(pairs, 2) {
			if !yield(pair[0].(string), pair[1].(bool)) {
				return
			}
		}
	}
}

// An outcomeView is what a tool said.
type outcomeView struct {
	Content []struct{ Type, Text string }
	IsError bool
	Meta    map[string]json.RawMessage `json:"_meta"`
}

func (o *outcomeView) String() string {
	text := fmt.Sprintf("%v", o.Content)
	if o.IsError {
		text += " isError"
	}
	if related, ok := o.Meta["io.modelcontextprotocol/related-task"]; ok {
		text += " of " + string(related)
	}
	return text
}

// A questionView is an elicitation.
type questionView struct {
	Method string
	Params struct {
		Message, Mode   string
		RequestedSchema struct{ Properties map[string]json.RawMessage }
		Task            json.RawMessage
		Meta            map[string]json.RawMessage `json:"_meta"`
	}
}

func (q questionView) String() string {
	related := string(q.Params.Meta["io.modelcontextprotocol/related-task"])
	return fmt.Sprintf("%s %q %s %v %s%s", q.Method, q.Params.Message, q.Params.Mode, slices.Sorted(maps.Keys(q.Params.RequestedSchema.Properties)), q.Params.Task, related)
}

// answer is the right answer to the question.
func (q questionView) answer(action string) json.RawMessage {
	if action != "accept" {
		return json.RawMessage(fmt.Sprintf(`{"action": %q}`, action))
	}
	values := map[string]string{"name": `"Ada"`, "confirm": `true`}
	var content []string
	for name := range q.Params.RequestedSchema.Properties {
		content = append(content, fmt.Sprintf("%q: %s", name, values[name]))
	}
	return json.RawMessage(`{"action": "accept", "content": {` + strings.Join(content, ", ") + `}}`)
}
