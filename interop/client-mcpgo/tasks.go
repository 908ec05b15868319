package main

//lint:file-ignore SA1019 the tasks of 2025-11-25 are in sessions, which 2026-07-28 has no more

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcpbridge/mcpbridge/interop/remote"
)

// A taskErrand is what a client is told that plays with the tasks of a server like
// node/tasks-server.mjs.
type taskErrand struct {
	URL    string
	Argv   []string
	Label  string // of what is run
	Asks   bool   // the server asks
	Resume string // a task that an earlier run left, to look for that
}

type (
	taskFindings struct {
		Offered     *mcp.TasksCapability `json:"offered"`
		Plain       taskOutcome          `json:"plain"`
		Transparent string               `json:"transparent"`
		Looked      taskLook             `json:"looked"`
		Slow        taskOutcome          `json:"slow"`
		OwnID       bool                 `json:"ownId"`
		Confirm     *taskOutcome         `json:"confirm,omitempty"`
		Two         *taskOutcome         `json:"two,omitempty"`
		Failing     taskOutcome          `json:"failing"`
		Broken      taskOutcome          `json:"broken"`
		Cancelled   taskOutcome          `json:"cancelled"`
		Unknown     taskOutcome          `json:"unknown"`
		Left        string               `json:"left"`
	}
	taskLook struct {
		Status         string `json:"status"`
		PollIntervalMs int64  `json:"pollIntervalMs"`
		SameID         bool   `json:"sameId"`
	}
	taskOutcome struct {
		Status  string   `json:"status,omitempty"`
		Text    string   `json:"text,omitempty"`
		IsError bool     `json:"isError,omitempty"`
		Code    int      `json:"code,omitempty"`
		Message string   `json:"message,omitempty"`
		Asked   []string `json:"asked,omitempty"`
		Entered int      `json:"entered,omitempty"`
	}
)

// A player plays with tasks. The SDK's CallTool takes no task for an answer: that one request
// goes around it.
type player struct {
	c    *client.Client
	last int64 // the id of the last request that went around the SDK

	mu    sync.Mutex // guards the field below
	asked []string   // since the last taken
}

// playTasks reads an errand, and prints what it found, as JSON.
func playTasks(ctx context.Context, in io.Reader, out io.Writer) error {
	var told taskErrand
	if err := json.NewDecoder(in).Decode(&told); err != nil {
		return err
	}
	to := remote.Target{Transport: "http", URL: told.URL, Argv: told.Argv}
	if told.URL == "" {
		to.Transport = "stdio"
	}
	t, err := newTransport(&to)
	if err != nil {
		return err
	}
	p := &player{last: 1 << 30}
	p.c = client.NewClient(t, client.WithLegacyProtocolOnly(), client.WithElicitationHandler(p))
	if err := p.c.Start(ctx); err != nil {
		return err
	}
	defer p.c.Close()
	hello, err := p.c.Initialize(ctx, mcp.InitializeRequest{})
	if err != nil {
		return err
	}
	var found any
	if told.Resume != "" {
		found, err = p.resume(ctx, &told)
	} else {
		found, err = p.play(ctx, hello, &told)
	}
	return errors.Join(err, json.NewEncoder(out).Encode(found))
}

func (p *player) play(ctx context.Context, hello *mcp.InitializeResult, told *taskErrand) (*taskFindings, error) {
	f := &taskFindings{Offered: hello.Capabilities.Tasks}
	var errs []error
	must := func(err error) { errs = append(errs, err) }
	run := func(tool string, arguments map[string]any) taskOutcome {
		o, err := p.run(ctx, tool, arguments)
		must(err)
		return o
	}
	var err error
	f.Plain.Status = "completed"
	f.Plain.Text, err = p.call(ctx, "greet", map[string]any{"name": "World"})
	must(err)
	f.Transparent, err = p.call(ctx, "slow_compute", map[string]any{"seconds": 0.2, "label": "unseen"})
	must(err)
	must(p.slow(ctx, f))
	must(p.own(ctx, f))
	if told.Asks {
		confirm, two := run("confirm_delete", map[string]any{"filename": "a.txt"}), run("multi_input", map[string]any{})
		f.Confirm, f.Two = &confirm, &two
	}
	f.Failing, f.Broken = run("failing_job", map[string]any{}), run("protocol_error_job", map[string]any{})
	must(p.cancel(ctx, f))
	f.Left, err = p.create(ctx, "slow_compute", map[string]any{"seconds": 2, "label": told.Label})
	return f, errors.Join(append(errs, err)...)
}

// slow looks at a task that takes a second, and waits for it.
func (p *player) slow(ctx context.Context, f *taskFindings) error {
	id, err := p.create(ctx, "slow_compute", map[string]any{"seconds": 1, "label": "slow"})
	if err != nil {
		return err
	}
	looked, err := p.c.GetTask(ctx, mcp.GetTaskRequest{Params: mcp.GetTaskParams{TaskId: id}})
	if err != nil {
		return err
	}
	status := strings.ReplaceAll(string(looked.Status), "completed", "working") // a busy machine looks when it has completed
	f.Looked = taskLook{Status: status, SameID: looked.TaskId == id}
	if looked.PollInterval != nil {
		f.Looked.PollIntervalMs = *looked.PollInterval
	}
	f.Slow, err = p.end(ctx, id)
	return err
}

// own asks a task for its id.
func (p *player) own(ctx context.Context, f *taskFindings) error {
	id, err := p.create(ctx, "own_id", map[string]any{})
	if err != nil {
		return err
	}
	said, err := p.end(ctx, id)
	f.OwnID = said.Text == id
	return err
}

// cancel cancels a task twice, and looks for one that nobody has.
func (p *player) cancel(ctx context.Context, f *taskFindings) error {
	id, err := p.create(ctx, "slow_compute", map[string]any{"seconds": 600, "label": "endless"})
	if err != nil {
		return err
	}
	cancel := mcp.CancelTaskRequest{Params: mcp.CancelTaskParams{TaskId: id}}
	ended, err := p.c.CancelTask(ctx, cancel)
	if err != nil {
		return err
	}
	f.Cancelled.Status = string(ended.Status)
	later, err := p.c.GetTask(ctx, mcp.GetTaskRequest{Params: mcp.GetTaskParams{TaskId: id}})
	if err != nil {
		return err
	}
	f.Cancelled.Text = string(later.Status)
	_, err = p.c.CancelTask(ctx, cancel)
	f.Cancelled.Code = codeOf(err)
	_, err = p.c.GetTask(ctx, mcp.GetTaskRequest{Params: mcp.GetTaskParams{TaskId: "nobody-has-this"}})
	f.Unknown.Code = codeOf(err)
	return nil
}

// resume waits for a task that another connection made, and says how often it was run.
func (p *player) resume(ctx context.Context, told *taskErrand) (*taskOutcome, error) {
	o, err := p.end(ctx, told.Resume)
	if err != nil {
		return nil, err
	}
	text, err := p.call(ctx, "tally", map[string]any{"label": told.Label})
	if err == nil {
		o.Entered, err = strconv.Atoi(text)
	}
	return &o, err
}

// call calls a tool and returns its text.
func (p *player) call(ctx context.Context, tool string, arguments map[string]any) (string, error) {
	res, err := p.c.CallTool(ctx, mcp.CallToolRequest{Params: mcp.CallToolParams{Name: tool, Arguments: arguments}})
	if err != nil {
		return "", err
	}
	return textOf(res.Content), nil
}

// create makes a task and returns its id.
func (p *player) create(ctx context.Context, tool string, arguments map[string]any) (string, error) {
	ttl := int64(600_000)
	p.last++
	res, err := p.c.GetTransport().SendRequest(ctx, transport.JSONRPCRequest{JSONRPC: "2.0", ID: mcp.NewRequestId(p.last), Method: "tools/call",
		Params: mcp.CallToolParams{Name: tool, Arguments: arguments, Task: &mcp.TaskParams{TTL: &ttl}}})
	if err == nil && res.Error != nil {
		err = res.Error.AsError()
	}
	var made mcp.CreateTaskResult
	if err == nil {
		err = json.Unmarshal(res.Result, &made)
	}
	if err == nil && made.Task.TaskId == "" {
		err = fmt.Errorf("no task came of it, but %s", res.Result)
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", tool, err)
	}
	return made.Task.TaskId, nil
}

// run has a tool run as a task to its end.
func (p *player) run(ctx context.Context, tool string, arguments map[string]any) (taskOutcome, error) {
	id, err := p.create(ctx, tool, arguments)
	if err != nil {
		return taskOutcome{}, err
	}
	return p.end(ctx, id)
}

// end looks until a task is over or asks, and says what came of it.
func (p *player) end(ctx context.Context, id string) (taskOutcome, error) {
	get := mcp.GetTaskRequest{Params: mcp.GetTaskParams{TaskId: id}}
	task, err := p.c.GetTask(ctx, get)
	for ; err == nil && task.Status == mcp.TaskStatusWorking; task, err = p.c.GetTask(ctx, get) {
		time.Sleep(50 * time.Millisecond)
	}
	if err != nil {
		return taskOutcome{}, err
	}
	res, err := p.c.TaskResult(ctx, mcp.TaskResultRequest{Params: mcp.TaskResultParams{TaskId: id}})
	if task.Status == mcp.TaskStatusInputRequired {
		if over, err := p.c.GetTask(ctx, get); err == nil {
			task = over
		}
	}
	o := taskOutcome{Status: string(task.Status)}
	if err != nil {
		o.Code, o.Message = codeOf(err), strings.ReplaceAll(err.Error(), id, "ID")
	} else {
		o.Text, o.IsError = textOf(res.Content), res.IsError
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	slices.Sort(p.asked)
	o.Asked, p.asked = p.asked, nil
	return o, nil
}

// Elicit implements [client.ElicitationHandler].
func (p *player) Elicit(_ context.Context, r mcp.ElicitationRequest) (*mcp.ElicitationResult, error) {
	p.mu.Lock()
	p.asked = append(p.asked, r.Params.Message)
	p.mu.Unlock()
	schema, _ := r.Params.RequestedSchema.(map[string]any)
	properties, _ := schema["properties"].(map[string]any)
	content := make(map[string]any)
	for name := range properties {
		content[name] = map[string]any{"confirm": true, "name": "Ada"}[name]
	}
	return &mcp.ElicitationResult{ElicitationResponse: mcp.ElicitationResponse{Action: mcp.ElicitationResponseActionAccept, Content: content}}, nil
}

func textOf(content []mcp.Content) string {
	if len(content) == 0 {
		return ""
	}
	text, _ := content[0].(mcp.TextContent) // empty if it is another
	return text.Text
}

// codeOf returns the code of an error that the SDK has an error for, else 0.
func codeOf(err error) int {
	for code, known := range map[int]error{mcp.INVALID_REQUEST: mcp.ErrInvalidRequest, mcp.METHOD_NOT_FOUND: mcp.ErrMethodNotFound,
		mcp.INVALID_PARAMS: mcp.ErrInvalidParams, mcp.INTERNAL_ERROR: mcp.ErrInternalError} {
		if errors.Is(err, known) {
			return code
		}
	}
	return 0
}
