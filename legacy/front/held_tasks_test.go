package front

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/legacytest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/settings"
)

// Sessions of 2025-11-25 are told of tasks if the server has some, and the mode is on; no others are.
func TestT06WhoIsToldOfTasks(t *testing.T) {
	for _, tt := range []struct {
		mode     settings.TaskMode
		revision string
		told     bool
		support  string // what a tool is said to support; marked are those of a group
		marked   bool
	}{
		{settings.TasksOn, "2025-11-25", true, "optional", false}, {settings.TasksAuto, "2025-11-25", false, "", false}, {settings.TasksOn, "2025-06-18", false, "", false},
		{settings.TasksAuto, "2025-11-25", true, "required", true}, {settings.TasksAuto, "2025-06-18", false, "", true},
	} {
		st := newRig(t, func(o *Options) { o.Settings.Tasks.Mode, o.MarksTools = tt.mode, tt.marked })
		st.describe = func() (*mcp.Description, error) {
			return &mcp.Description{Capabilities: []byte(`{"tools":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}`)}, nil
		}
		st.handle = func(_ context.Context, req *mcp.Request, _ mcp.Caller) (string, error) {
			if req.HoldsTasks != tt.told || (req.Aside != nil) != (tt.told && req.Method != "tools/list") {
				t.Errorf("%s: HoldsTasks %v", req.Method, req.HoldsTasks)
			}
			return `{"tools":[{"name":"x","inputSchema":{"type":"object"},"execution":{"taskSupport":"required"}}],"resultType":"complete"}`, nil
		}
		answer := st.Send(t, "POST", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"`+tt.revision+`","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`)
		if told := strings.Contains(answer.Body, `"tasks":{"cancel":{},"requests":{"tools":{"call":{}}}}`); told != tt.told || strings.Contains(answer.Body, "io.modelcontextprotocol/tasks") {
			t.Errorf("%s, %s: initialize = %s", tt.mode, tt.revision, answer.Body)
		}
		g := st.Enter(t, tt.revision)
		if list := g.Call(t, "tools/list", `{}`); strings.Contains(list.Body, `"execution"`) != tt.told || !strings.Contains(list.Body, tt.support) {
			t.Errorf("%s, %s, marked %v: tools/list = %s", tt.mode, tt.revision, tt.marked, list.Body)
		}
		if get := g.Call(t, "tasks/get", `{"taskId":"t"}`); (get.Code() == -32601) == tt.told {
			t.Errorf("%s, %s: tasks/get = %s", tt.mode, tt.revision, get.Body)
		}
	}
}

// holdingRig returns a rig whose sessions are told of tasks.
func holdingRig(t *testing.T) *rig {
	st := newRig(t, func(o *Options) { o.Settings.Tasks.Mode = settings.TasksOn })
	st.describe = func() (*mcp.Description, error) {
		return &mcp.Description{Capabilities: []byte(`{"tools":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}`)}, nil
	}
	return st
}

// Who asks beside requests hears that nobody can be asked while there is no GET stream, and once the
// session has ended, also if it is being asked.
func TestT25AskingEndsWithTheSession(t *testing.T) {
	st := holdingRig(t)
	asides := make(chan mcp.Caller, 1)
	st.handle = func(_ context.Context, req *mcp.Request, _ mcp.Caller) (string, error) {
		asides <- req.Aside
		return `{}`, nil
	}
	var aside mcp.Caller
	ask := func() error {
		_, err := aside.RequestInput(t.Context(), twoQuestions[:1])
		return err
	}
	g := st.Enter(t, "2025-11-25")
	g.Call(t, "tasks/get", `{"taskId":"t"}`)
	aside = <-asides
	if err := ask(); !errors.Is(err, mcp.ErrCannotAsk) {
		t.Errorf("without a GET stream RequestInput = %v, want %v", err, mcp.ErrCannotAsk)
	}
	f := g.Listen(t)
	done := make(chan error)
	go func() { done <- ask() }()
	if got, _ := f.Next(); !strings.Contains(got, `"method":"elicitation/create"`) {
		t.Errorf("event = %s, want the question", got)
	}
	st.Send(t, "DELETE", "", "Mcp-Session-Id", g.ID)
	for _, err := range []error{<-done, ask()} {
		if !errors.Is(err, mcp.ErrCannotAsk) {
			t.Errorf("once the session has ended RequestInput = %v, want %v", err, mcp.ErrCannotAsk)
		}
	}
	connected := func() *legacytest.Line {
		l := legacytest.NewLine(t, st.front.OpenConn)
		l.Send(legacytest.Initialize("2025-11-25"))
		l.Next()
		l.Send(`{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"taskId":"t"}}`)
		l.Next()
		aside = <-asides
		return l
	}
	connected().Close()
	if err := ask(); !errors.Is(err, mcp.ErrCannotAsk) {
		t.Errorf("of a connection that has ended RequestInput = %v, want %v", err, mcp.ErrCannotAsk)
	}
	l := connected()
	go func() { done <- ask() }()
	if got := l.Next(); !strings.Contains(got, `"method":"elicitation/create"`) {
		t.Errorf("sent %s, want the question", got)
	}
	l.Close()
	if err := <-done; !errors.Is(err, mcp.ErrCannotAsk) {
		t.Errorf("once the connection has ended RequestInput = %v, want %v", err, mcp.ErrCannotAsk)
	}
}

// A client that lost the connection of tasks/result has its messages and the result when it comes back.
func TestT23ResultsAreResumed(t *testing.T) {
	st := holdingRig(t)
	release := make(chan struct{})
	st.handle = func(ctx context.Context, _ *mcp.Request, x mcp.Caller) (string, error) {
		for _, message := range []string{"one", "two"} {
			if err := x.Notify(ctx, mcp.Notification{Method: "notifications/tasks/status", Params: []byte(`{"taskId":"t","statusMessage":"` + message + `"}`)}); err != nil {
				return "", err
			}
			<-release
		}
		return `{"content":[{"type":"text","text":"done"}],"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t"}}}`, nil
	}
	g := st.Enter(t, "2025-11-25")
	f := legacytest.Read(t, st.Open(t, "POST", `{"jsonrpc":"2.0","id":1,"method":"tasks/result","params":{"taskId":"t"}}`, "Mcp-Session-Id", g.ID))
	f.Want(`{"jsonrpc":"2.0","method":"notifications/tasks/status","params":{"taskId":"t","statusMessage":"one"}}`)
	f.Response.Body.Close()
	close(release)
	again := legacytest.Read(t, st.Open(t, "GET", "", "Mcp-Session-Id", g.ID, "Last-Event-ID", f.Last))
	again.Want(`{"jsonrpc":"2.0","method":"notifications/tasks/status","params":{"taskId":"t","statusMessage":"two"}}`)
	again.Want(`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"done"}],"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t"}}}}`)
	again.Ends()
}
