package extensions

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/interop/internal/tap"
)

// taskIDs are calls with the id of a task in them, wherever a client can put one, in the forms
// of the two eras. ID stands for it.
var taskIDs = map[bool][]struct{ method, params string }{
	false: {
		{"tools/call", `"name": "tally", "arguments": {"label": "ID", "of": ["ID"]}, "_meta": {"io.modelcontextprotocol/relatedTaskIds": ["ID", "x/ID"], META}`},
		{"tasks/get", `"taskId": "ID", "_meta": {META}`},
		{"tasks/update", `"taskId": "ID", "inputResponses": {"ID": {"action": "decline"}}, "_meta": {META}`},
		{"tasks/cancel", `"taskId": "ID", "_meta": {META}`},
	},
	true: {
		{"tools/call", `"name": "tally", "arguments": {"label": "ID", "of": ["ID"]}, "_meta": {"io.modelcontextprotocol/related-task": {"taskId": "ID"}}`},
		{"tasks/get", `"taskId": "ID"`},
		{"tasks/cancel", `"taskId": "ID"`},
		{"tasks/list", `"_meta": {"io.modelcontextprotocol/related-task": {"taskId": "ID"}}`},
	},
}

const taskMeta = `"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientInfo": {"name": "interop", "version": "1"}, ` +
	`"io.modelcontextprotocol/clientCapabilities": {"extensions": {"io.modelcontextprotocol/tasks": {}}}`

// TestT01TaskIDsByteForByte has a client make a task on a server of its own era, and put its id
// wherever it can: what arrives at the server is what the client sent, byte for byte but for
// spaces, and the client has for an answer what the server sent.
func TestT01TaskIDsByteForByte(t *testing.T) {
	sameTaskIDs(t, false, newServers["fastmcp"])
}

// TestT04TaskIDsByteForByte does so with tasks of 2025-11-25. A server on the TypeScript SDK would
// answer what names a task on that task's tasks/result alone.
func TestT04TaskIDsByteForByte(t *testing.T) {
	sameTaskIDs(t, true, oldServers["mcpgo"])
}

func sameTaskIDs(t *testing.T, legacy bool, s *taskServer) {
	t.Helper()
	url := start(t, s.web)
	between, err := tap.New(strings.TrimSuffix(url, "/mcp"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(between.Close)
	c := newWireClient(t, serve(t, s.settings(atURL("tapped", between.URL("/mcp")), ""))+"tapped", legacy)
	id := c.makeTask()
	for _, call := range taskIDs[legacy] {
		t.Run(call.method, func(t *testing.T) {
			between.Forget()
			params := strings.NewReplacer("ID", id, "META", taskMeta).Replace(call.params)
			answer := c.send(call.method, params, id)
			up, down := passedOf(between, call.method)
			if want := compact(`{` + params + `}`); !slices.Contains(up, want) {
				t.Errorf("%s arrived as %s\nwant %s", call.method, up, want)
			}
			if !slices.Contains(down, compact(string(answer))) {
				t.Errorf("the client got %s\nthe server sent %s", answer, down)
			}
		})
	}
}

// passedOf returns the params of the requests with a method that passed, and all results.
func passedOf(between *tap.Tap, method string) (params, results []string) {
	for _, p := range between.Passed() {
		var m struct {
			Method         string
			Params, Result json.RawMessage
		}
		if json.Unmarshal([]byte(p.Text), &m) != nil {
			continue
		}
		if p.Up && m.Method == method {
			params = append(params, compact(string(m.Params)))
		} else if m.Result != nil {
			results = append(results, compact(string(m.Result)))
		}
	}
	return params, results
}

// compact returns JSON without spaces between its tokens, as it is otherwise.
func compact(text string) string {
	var b bytes.Buffer
	_ = json.Compact(&b, []byte(text)) // what is no JSON is compared with nothing
	return b.String()
}

// makeTask makes a task that takes a while, and returns its id.
func (c *wireClient) makeTask() string {
	c.t.Helper()
	params := `"name": "slow_compute", "arguments": {"seconds": 600, "label": "` + c.t.Name() + `"}, `
	path := []any{"taskId"}
	if c.legacy {
		params, path = params+`"task": {"ttl": 600000}`, []any{"task", "taskId"}
	} else {
		params += `"_meta": {` + taskMeta + `}`
	}
	var id string
	if err := json.Unmarshal(member(c.t, c.send("tools/call", params, "slow_compute"), path...), &id); err != nil || id == "" {
		c.t.Fatalf("the id of the task is %q, %v", id, err)
	}
	return id
}

// send sends a request with params as they are, and returns its result as it is. id is of the
// task that it is about.
func (c *wireClient) send(method, params, id string) json.RawMessage {
	c.t.Helper()
	header := make(map[string][]string)
	if !c.legacy {
		if strings.HasPrefix(params, `"name": "tally"`) {
			id = "tally"
		}
		header["Mcp-Protocol-Version"], header["Mcp-Method"], header["Mcp-Name"] = []string{modernRevision}, []string{method}, []string{id}
	}
	answer := c.post(fmt.Sprintf(`{"jsonrpc": "2.0", "id": 7, "method": %q, "params": {%s}}`, method, params), header)
	var m struct{ Result json.RawMessage }
	if err := json.Unmarshal(answer, &m); err != nil || m.Result == nil {
		c.t.Fatalf("%s was answered by %s: %v", method, answer, err)
	}
	return m.Result
}
