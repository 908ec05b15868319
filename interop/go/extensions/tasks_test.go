package extensions

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"
)

// taskClients are the programs that play with tasks of 2026-07-28.
var taskClients = map[string][]string{
	"fastmcp":   fastmcp("python/fastmcp_client.py"),
	"ext-tasks": node("node/tasks.mjs"),
}

func init() {
	if rmcp := peer("bin/client-rmcp"); exists(rmcp) { // interop/build makes it where there is cargo
		taskClients["rmcp"] = []string{rmcp}
	}
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// A taskErrand is what such a program is told.
type taskErrand struct {
	target
	Label    string `json:"label"`
	Legacy   bool   `json:"legacy,omitempty"`   // tasks of 2025-11-25, for a client that knows both
	Asks     bool   `json:"asks,omitempty"`     // also what asks, for clients of 2025-11-25
	Silent   bool   `json:"silent,omitempty"`   // not what asks, for ext-tasks
	Research bool   `json:"research,omitempty"` // the tool of server-everything
	Quiz     int    `json:"quiz,omitempty"`     // so many tasks of that tool at once
	Resume   string `json:"resume,omitempty"`
	Session  string `json:"session,omitempty"` // of 2025-11-25, to go on with it
}

// What it finds.
type (
	taskFindings struct {
		Offered map[string]json.RawMessage // the server's extensions
		// Plain is of a tool that never runs as a task, Transparent of one that did
		// without the caller's knowledge, if the client can do that.
		Plain       taskOutcome
		Transparent string
		Looked      struct {
			Status         string
			PollIntervalMs int
			SameID         bool
		}
		Slow  taskOutcome
		OwnID bool // the server gave the task the id that the client knows
		// Confirm asked once, Two twice at once.
		Confirm, Two                        taskOutcome
		Failing, Broken, Cancelled, Unknown taskOutcome
		Left                                string      // the id of a task that runs on
		Session                             string      // that it belongs to
		Ambiguous                           taskOutcome // asked in the middle; of server-everything
	}
	taskOutcome struct {
		Status, Text string
		IsError      bool
		Code         int
		Message      string
		Asked        []string
		Entered      int            // how often the tool was run
		Fetched      map[string]any // what tasks/result has, for a client that does not ask it by itself
	}
)

// wantTasks are the findings on python/fastmcp_server.py.
func wantTasks(client string) *taskFindings {
	w := &taskFindings{
		Offered:   map[string]json.RawMessage{"io.modelcontextprotocol/tasks": []byte(`{}`), "io.modelcontextprotocol/ui": []byte(`{}`)},
		Plain:     taskOutcome{Status: "completed", Text: "Hello, World!"},
		Slow:      taskOutcome{Status: "completed", Text: "computed slow in 1 s"},
		OwnID:     true,
		Confirm:   taskOutcome{Status: "completed", Text: "deleted a.txt", Asked: []string{"Delete a.txt?"}},
		Two:       taskOutcome{Status: "completed", Text: "name Ada, confirmed True", Asked: []string{"Is that right?", "What is its name?"}},
		Failing:   taskOutcome{Status: "completed", Text: "the job failed", IsError: true},
		Broken:    taskOutcome{Status: "failed", Code: -32603, Message: "the job broke the protocol"},
		Cancelled: taskOutcome{Status: "cancelled"},
		Unknown:   taskOutcome{Code: -32602},
	}
	w.Looked.Status, w.Looked.PollIntervalMs, w.Looked.SameID = "working", 200, true
	if client == "fastmcp" {
		w.Transparent = "computed unseen in 0.2 s"
	}
	return w
}

// TestT01Tasks takes clients that know the extension io.modelcontextprotocol/tasks to a
// server that has it, directly and through mcpbridge, over HTTP and over pipes. A task
// that a client leaves behind is found by its next connection, and was run once.
func TestT01Tasks(t *testing.T) {
	command := fastmcp("python/fastmcp_server.py")
	url := start(t, func(_, port string) (env, argv []string) {
		return nil, append(command, "--transport", "http", "--port", port)
	})
	bridge := serve(t, atURL("web", url), atCommand("pipe", command))
	for _, spot := range []struct {
		name  string
		to    target
		stays bool // the server outlives the client
	}{
		{"directly", target{URL: url}, true},
		{"serve and HTTP", target{URL: bridge + "web"}, true},
		{"serve and a pipe", target{URL: bridge + "pipe"}, true},
		{"wrap and HTTP", target{Argv: wrap(url)}, true},
		{"wrap and a pipe", target{Argv: wrap(append([]string{"--"}, command...)...)}, false},
	} {
		for client, argv := range taskClients {
			t.Run(spot.name+", "+client, func(t *testing.T) {
				t.Parallel()
				errand := taskErrand{target: spot.to, Label: t.Name()}
				left := playTasks(t, client, argv, errand)
				if errand.Resume = left; spot.stays {
					resumeTask(t, argv, errand)
				}
			})
		}
	}
}

// playTasks compares what a client finds, and returns the id of the task that it left.
func playTasks(t *testing.T, client string, argv []string, errand taskErrand) string {
	t.Helper()
	got, want := new(taskFindings), wantTasks(client)
	ask(t, argv, errand, got)
	left := got.Left
	got.Left, got.Session = "", ""
	same(t, got, want)
	if left == "" {
		t.Fatal("the client left no task behind")
	}
	return left
}

func resumeTask(t *testing.T, argv []string, errand taskErrand) {
	t.Helper()
	var got taskOutcome
	ask(t, argv, errand, &got)
	same(t, &got, &taskOutcome{Status: "completed", Text: fmt.Sprintf("computed %s in 2 s", errand.Label), Entered: 1})
}
