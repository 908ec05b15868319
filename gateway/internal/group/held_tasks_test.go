package group

import (
	"context"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/backtest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// holds returns a request of a client of 2025-11-25 that holds tasks, which may be told of them aside.
func holds(method, params string, aside mcp.Caller) *mcp.Request {
	req := request(method, params)
	req.Era, req.Revision, req.Session, req.HoldsTasks, req.Aside = spec.Legacy, spec.Rev20251125, "s", true, aside
	return req
}

// withHeldTasks returns a member of an era with a tool that makes tasks which clients of 2025-11-25
// hold, and asks of each.
func withHeldTasks(name string, era spec.Era) *fake {
	f := newFake(name)
	f.era, f.capabilities = era, `{"tools":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}`
	f.pages[spec.MethodToolsList] = [][]string{{`{"name":"make","execution":{"taskSupport":"required"}}`, `{"name":"read"}`}}
	related := func(id string) string {
		return `"_meta":{"x":1,"` + spec.MetaRelatedTask + `":{"taskId":"` + id + `"}}`
	}
	f.serve = func(ctx context.Context, req *mcp.Request, c mcp.Caller) (*mcp.Result, error) {
		body := ""
		switch req.Method {
		case spec.MethodToolsCall:
			body = `{"task":{"taskId":"job","status":"working","taskID":"job"},` + related("job") + `}`
		case spec.MethodTaskGet, spec.MethodTaskCancel:
			body = `{"taskId":"job","status":"working"}`
		case spec.MethodTaskResult:
			body = `{"content":[],` + related("job") + `}`
			for _, to := range []mcp.Caller{c, req.Aside} {
				if err := to.Notify(ctx, mcp.Notification{Method: spec.NotifyTaskStatus, Params: []byte(`{"taskId":"job","status":"working"}`)}); err != nil {
					return nil, err
				}
				if _, err := to.RequestInput(ctx, []mcp.InputRequest{{Method: spec.MethodElicit, Params: []byte(`{"message":"which?",` + related("job") + `}`)}}); err != nil {
					return nil, err
				}
			}
		default:
			return nil, nil
		}
		if id, _ := wire.GetString(req.Params, memberTaskID); spec.OnHeldTask(req.Method) && id != "job" {
			return nil, wire.Errorf(spec.CodeInvalidParams, "%s knows no task %s", name, id)
		}
		res := mcp.NewResult([]byte(body), nil)
		if res.Era = spec.Legacy; req.Method == spec.MethodTaskResult {
			res.Era = era
		}
		return res, nil
	}
	return f
}

// Clients of 2025-11-25 know the tasks that they hold by ids of the group, wherever one stands: in what
// a call comes to, in its answers, in questions and changes that they are told of aside, in requests.
func TestG12HeldTasks(t *testing.T) {
	for _, era := range []spec.Era{spec.Legacy, spec.Modern} {
		files := withHeldTasks("files", era)
		r := newRig(t, nil, files, withHeldTasks("docs", era))
		id := r.sealing.seal(sealedTask, "files", "job")
		named := func(text string) string { return strings.ReplaceAll(text, `"taskId":"job"`, `"taskId":"`+id+`"`) }
		client, aside := new(holder), new(holder)
		call := func(method, params, want string) {
			t.Helper()
			res, err := r.Serve(t.Context(), holds(method, params, aside), client)
			if got, err := backtest.Body(res, err); err != nil || got != want {
				t.Errorf("%v: %s = %s, %v\nwant %s", era, method, got, err, want)
			}
		}
		meta := `"_meta":{"x":1,"` + spec.MetaRelatedTask + `":{"taskId":"job"}}`
		call(spec.MethodToolsCall, `{"name":"files__make","task":{}}`, named(`{"task":{"taskId":"job","status":"working","taskID":"job"},`+meta+`}`))
		call(spec.MethodTaskGet, `{"taskId":"`+id+`"}`, named(`{"taskId":"job","status":"working"}`))
		call(spec.MethodTaskCancel, `{"taskId":"`+id+`"}`, named(`{"taskId":"job","status":"working"}`))
		call(spec.MethodTaskResult, `{"taskId":"`+id+`"}`, named(`{"content":[],`+meta+`}`))
		for _, told := range []*holder{client, aside} {
			want := []string{named(`{"taskId":"job","status":"working"}`), named(`{"message":"files: which?",` + meta + `}`)}
			if len(told.texts) != 2 || told.texts[0] != want[0] || told.texts[1] != want[1] {
				t.Errorf("%v: the client was told %q, want %q", era, told.texts, want)
			}
		}
		// What a request is said to belong to is named as its member knows it, and is left out if it is another's.
		for task, want := range map[string]string{id: `{"name":"make","_meta":{"x":1,"` + spec.MetaRelatedTask + `":{"taskId":"job"}}}`, r.sealing.seal(sealedTask, "docs", "job"): `{"name":"make","_meta":{"x":1}}`, "job": `{"name":"make","_meta":{"x":1}}`} {
			_, err := r.Serve(t.Context(), holds(spec.MethodToolsCall, `{"name":"files__make","_meta":{"x":1,"`+spec.MetaRelatedTask+`":{"taskId":"`+task+`"}}}`, aside), client)
			if got := string(files.last(t).Params); err != nil || got != want {
				t.Errorf("%v: files got %s, %v, want %s", era, got, err, want)
			}
		}
		gone := r.sealing.seal(sealedTask, "files", "gone")
		for _, bad := range []string{"job", id + "x", gone} {
			want := "Task not found"
			if bad == gone && era == spec.Modern { // whose ids are the gateway's, and so are the errors
				want = "files knows no task gone"
			}
			for _, method := range []string{spec.MethodTaskGet, spec.MethodTaskResult, spec.MethodTaskCancel} {
				_, err := r.Serve(t.Context(), holds(method, `{"taskId":"`+bad+`"}`, aside), client)
				wantError(t, method, err, spec.CodeInvalidParams, want)
			}
		}
	}
}

// A holder keeps what a client is told and asked.
type holder struct{ texts []string }

// Notify implements [mcp.Caller].
func (h *holder) Notify(_ context.Context, n mcp.Notification) error {
	h.texts = append(h.texts, string(n.Params))
	return nil
}

// RequestInput implements [mcp.Caller].
func (h *holder) RequestInput(_ context.Context, qs []mcp.InputRequest) ([]mcp.InputResponse, error) {
	h.texts = append(h.texts, string(qs[0].Params))
	return make([]mcp.InputResponse, 1), nil
}

// A tool is said to make tasks to clients that hold them, of members that have some: as legacy members
// say, and of a modern one each tool. Others are told as before, from the same answers.
func TestG12ToolsThatMakeTasks(t *testing.T) {
	files, docs, notes := withHeldTasks("files", spec.Legacy), withHeldTasks("docs", spec.Modern), withHeldTasks("notes", spec.Modern)
	notes.capabilities = `{"tools":{}}`
	r := newRig(t, nil, files, docs, notes)
	item := func(name, support string) string {
		if support != "" {
			support = `,"execution":{"taskSupport":"` + support + `"}`
		}
		return `{"name":"` + name + `"` + support + `}`
	}
	const req, opt = "required", "optional"
	held := []string{item("files__make", req), item("files__read", ""), item("docs__make", opt), item("docs__read", opt), item("notes__make", ""), item("notes__read", "")}
	others := []string{item("files__make", ""), item("files__read", ""), item("docs__make", req), item("docs__read", ""), item("notes__make", req), item("notes__read", "")}
	for range 2 {
		for _, tt := range []struct {
			req  *mcp.Request
			want []string
		}{{holds(spec.MethodToolsList, "", nil), held}, {request(spec.MethodToolsList, ""), others}} {
			if got, want := listing(t, r, tt.req), `{"tools":[`+strings.Join(tt.want, ",")+`]`; !strings.HasPrefix(got, want) {
				t.Errorf("held %v: listed %s, want %s", tt.req.HoldsTasks, got, want)
			}
		}
	}
}
