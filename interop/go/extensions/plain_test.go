package extensions

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/interop/internal/rig"
	"github.com/mcpbridge/mcpbridge/interop/internal/steer"
	"github.com/mcpbridge/mcpbridge/interop/internal/tap"
	"github.com/mcpbridge/mcpbridge/interop/remote"
)

// A plainClient is a client under remote control that calls tools as if there were no tasks.
type plainClient struct {
	argv                              []string
	transport, revision, capabilities string
	elicits                           bool
	cancels                           bool // it tells that it gives up a call
}

var plainClients = map[string]*plainClient{
	"typescript-1.9.0":  {node("node/remote.mjs", "sdk-1.9.0"), "sse", "2024-11-05", `{"sampling": {}}`, false, true},
	"typescript-1.32.2": {node("node/remote.mjs", "sdk-1.32.2"), "http", legacyRevision, `{"elicitation": {}, "sampling": {}}`, true, true},
	"mcpgo":             {[]string{peer("bin/client-mcpgo"), "-legacy"}, "http", legacyRevision, `{"elicitation": {}}`, true, false},
}

// A watchedServer is a server of 2026-07-28 that a test sees the requests to.
type watchedServer struct {
	url  string                       // of mcpbridge's endpoint
	sent func(method string) []string // the params of the requests that mcpbridge has sent
}

// watchTasks starts the servers, and an mcpbridge that tells legacy clients of their tasks.
func watchTasks(t *testing.T) map[string]*watchedServer {
	t.Helper()
	between, err := tap.New(strings.TrimSuffix(start(t, newServers["fastmcp"].web), "/mcp"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(between.Close)
	servers := map[string]*watchedServer{"fastmcp": {sent: func(method string) []string {
		params, _ := passedOf(between, method)
		return params
	}}}
	lines := []string{newServers["fastmcp"].settings(atURL("fastmcp", between.URL("/mcp")), ", tasks: on")}
	if s := newServers["rmcp"]; s != nil {
		log := filepath.Join(t.TempDir(), "sent")
		servers["rmcp"] = &watchedServer{sent: func(method string) []string { return paramsIn(t, log, method) }}
		lines = append(lines, s.settings(atCommand("rmcp", []string{"sh", "-c", `tee "$0" | "$1"`, log, s.pipe[0]}), ", tasks: on"))
	}
	bridge := serve(t, lines...)
	for name, s := range servers {
		s.url = bridge + name
	}
	return servers
}

// paramsIn returns the params of the requests with a method in a file, of which the last line may not
// be whole.
func paramsIn(t *testing.T, file, method string) (params []string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var m struct {
			Method string
			Params json.RawMessage
		}
		if json.Unmarshal([]byte(line), &m) == nil && m.Method == method {
			params = append(params, string(m.Params))
		}
	}
	return params
}

// A plainRun is a client at a server.
type plainRun struct {
	*steer.Client
	*plainClient
	t  *testing.T
	at *watchedServer
}

// TestT24PlainCallsBesideTasks takes clients of 2024-11-05 and 2025-11-25 that call tools plainly to
// servers of 2026-07-28 under tasks: on. Tools that run as tasks alone are run for them, with their
// questions, errors and cancellations, and no client hears of a task that it did not ask for.
func TestT24PlainCallsBesideTasks(t *testing.T) {
	for server, at := range watchTasks(t) {
		t.Run(server, func(t *testing.T) {
			t.Parallel() // the clients of one server come one after the other
			for name, client := range plainClients {
				t.Run(name, func(t *testing.T) {
					c, err := steer.Start(client.argv...)
					if err != nil {
						t.Fatal(err)
					}
					r := &plainRun{c, client, t, at}
					r.play(server == "fastmcp")
				})
			}
		})
	}
}

func (r *plainRun) play(models bool) {
	killed := false
	defer func() {
		if !killed {
			_, _ = r.Request(context.Background(), remote.Close, nil) // it ends anyway
			_ = r.End()
		}
		if r.t.Failed() {
			r.t.Logf("the client wrote:\n%s", r.Log())
		}
	}()
	r.enter()
	r.results()
	if r.elicits {
		r.questions()
	} else {
		r.want(r.call("confirm_delete", `{"filename": "a.txt"}`), "error: ", "elicitation")
	}
	if models && strings.Contains(r.capabilities, "sampling") {
		r.Expect(map[string]json.RawMessage{"sampling/createMessage": json.RawMessage(`{"role": "assistant", "model": "m", "content": {"type": "text", "text": "yes"}}`)})
		r.want(r.call("ask_model", `{"prompt": "really?"}`), `"text":"the model said yes"`)
	}
	if r.cancels && (models || r.elicits) {
		r.gone(func(of steer.Running) { _ = r.Send(&remote.Command{Method: remote.Cancel, Of: of.ID}) }) // a client that has ended fails what follows
	}
	if killed = models && r.transport == "sse"; killed { // its session ends with its connection
		r.gone(func(steer.Running) { r.Kill() })
	}
}

// enter opens a session, which is told of tasks in 2025-11-25 alone, and so are its tools.
func (r *plainRun) enter() {
	r.t.Helper()
	to := remote.Target{Transport: r.transport, URL: r.at.url, Capabilities: json.RawMessage(r.capabilities)}
	if r.transport == "sse" {
		to.URL = strings.Replace(to.URL, "/mcp/", "/sse/", 1)
	}
	hello := r.ask("initialize", to)
	r.want(hello, `"protocolVersion":"`+r.revision+`"`)
	told := r.revision == legacyRevision
	if is := strings.Contains(hello, `"tasks":{"cancel":{},"requests":{"tools":{"call":{}}}}`); is != told || strings.Contains(hello, "io.modelcontextprotocol/tasks") {
		r.t.Errorf("the client of %s is told %s", r.revision, hello)
	}
	tools := r.ask("tools/list", map[string]any{})
	if is := strings.Contains(tools, `"taskSupport":"optional"`); is != told || strings.Contains(tools, `"required"}`) {
		r.t.Errorf("the client of %s sees the tools %s", r.revision, tools)
	}
}

// results has tools run that have a result, or an error. A client that was not told of tasks may
// ask for one.
func (r *plainRun) results() {
	r.t.Helper()
	r.want(r.call("greet", `{"name": "World"}`), `"text":"Hello, World!"`)
	r.want(r.call("slow_compute", `{"seconds": 0.1, "label": "plain"}`), `"text":"computed plain in 0.1 s"`)
	r.want(r.call("own_id", `{}`), `"content":[{`, `"text":"`)
	r.want(r.call("failing_job", `{}`), `"text":"the job failed"`, `"isError":true`)
	r.want(r.call("protocol_error_job", `{}`), "error: ", brokenText)
	if r.revision != legacyRevision {
		r.want(r.ask("tools/call", json.RawMessage(`{"name": "own_id", "arguments": {}, "task": {"ttl": 60000}}`)), `"content":[{`, `"text":"`)
	}
	for _, params := range r.at.sent("tools/call") {
		if strings.Contains(params, `"task":`) {
			r.t.Errorf("the server got %s, want no task", params)
		}
	}
}

// questions has tools ask in the middle: they say nothing of a task, which the client does not hold.
func (r *plainRun) questions() {
	r.t.Helper()
	const elicit = "elicitation/create"
	r.Expect(map[string]json.RawMessage{elicit: json.RawMessage(`{"action": "accept", "content": {"confirm": true, "name": "Ada"}}`)})
	r.want(r.call("confirm_delete", `{"filename": "a.txt"}`), `"text":"deleted a.txt"`)
	r.want(r.call("multi_input", `{}`), `"text":"name Ada, confirmed True"`)
	asked := r.Asked.Collect(3)
	if text := fmt.Sprint(asked); len(asked) != 3 || strings.Contains(text, "related-task") || !strings.Contains(text, "Delete a.txt?") {
		r.t.Errorf("the client was asked %s, want three questions, of no task", text)
	}
	r.Expect(map[string]json.RawMessage{elicit: json.RawMessage(`{"action": "decline"}`)})
	r.want(r.call("confirm_delete", `{"filename": "b.txt"}`), `"text":"kept b.txt"`)
}

// gone has the client go in the middle of a call, whose task is cancelled at the server, once.
func (r *plainRun) gone(goes func(of steer.Running)) {
	r.t.Helper()
	before, looks := len(r.at.sent("tasks/cancel")), len(r.at.sent("tasks/get"))
	call := `{"name": "slow_job", "arguments": {"seconds": 600}}`
	if r.elicits {
		r.Decide(func(steer.Question) {}) // it thinks
		call = `{"name": "confirm_delete", "arguments": {"filename": "c.txt"}}`
	}
	running, err := r.Begin("tools/call", json.RawMessage(call), false)
	if err != nil {
		r.t.Fatal(err)
	}
	if r.elicits {
		if _, asked := r.Asked.Take(2 * time.Minute); !asked {
			r.t.Fatal("the client was not asked")
		}
	}
	rig.Until(r.t, 2*time.Minute, "mcpbridge looks at the task", func() string {
		if n := len(r.at.sent("tasks/get")); n == looks {
			return "it does not"
		}
		return ""
	})
	goes(running)
	rig.Until(r.t, 2*time.Minute, "the task is cancelled", func() string {
		if n := len(r.at.sent("tasks/cancel")) - before; n != 1 {
			return fmt.Sprintf("it is cancelled %d times", n)
		}
		return ""
	})
}

// call returns the result of a tool, or the error.
func (r *plainRun) call(tool, arguments string) string {
	r.t.Helper()
	return r.ask("tools/call", json.RawMessage(fmt.Sprintf(`{"name": %q, "arguments": %s}`, tool, arguments)))
}

// ask returns the answer to a request as text, an error behind "error: ".
func (r *plainRun) ask(method string, params any) string {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), 3*time.Minute)
	defer cancel()
	res, err := r.Request(ctx, method, params)
	if err != nil {
		return "error: " + err.Error()
	}
	text, err := json.Marshal(res)
	if err != nil {
		r.t.Fatal(err)
	}
	return string(text)
}

func (r *plainRun) want(got string, parts ...string) {
	r.t.Helper()
	for _, part := range parts {
		if !strings.Contains(got, part) {
			r.t.Errorf("the client was shown %s, want %s in it", got, part)
		}
	}
}

// TestT25UndeclaredQuestions has a client of 2025-11-25 hold a task that asks what the client can't
// answer: it reads that the task failed, and why, and the task is cancelled at its server.
func TestT25UndeclaredQuestions(t *testing.T) {
	for server, at := range watchTasks(t) {
		t.Run(server, func(t *testing.T) {
			t.Parallel()
			c := newWireClient(t, at.url, true)
			made := c.send("tools/call", `"name": "confirm_delete", "arguments": {"filename": "a.txt"}, "task": {}`, "")
			id := string(member(t, made, "task", "taskId"))
			for _, wants := range []struct {
				method string
				parts  []string
			}{
				{"tasks/result", []string{`"code":-32603`, "use a client that declares the capability elicitation.form"}},
				{"tasks/get", []string{`"status":"failed"`, "requires elicitation/create"}},
			} {
				got := string(c.post(`{"jsonrpc": "2.0", "id": 7, "method": "`+wants.method+`", "params": {"taskId": `+id+`}}`, make(map[string][]string)))
				for _, part := range wants.parts {
					if !strings.Contains(got, part) {
						t.Errorf("%s is answered %s, want %s in it", wants.method, got, part)
					}
				}
			}
			rig.Until(t, 2*time.Minute, "the task is cancelled", func() string {
				if n := len(at.sent("tasks/cancel")); n != 1 {
					return fmt.Sprintf("it is cancelled %d times", n)
				}
				return ""
			})
		})
	}
}
