package group

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// aTask is a task as a member has it, and, with its id, as its clients have it.
const aTask = `{"resultType":"%k", "taskId":"t~:1" ,"status":"working","eventSource":{"input":{"taskId":"t~:1"},"n":1},"n":1.0,"of":"t~:1"}`

func taskOf(kind, id string) string {
	text := strings.Replace(aTask, "%k", kind, 1)
	return strings.Replace(text, `"taskId":"t~:1"`, `"taskId":"`+id+`"`, 2)
}

// withTasks returns a member that makes tasks and knows them.
func withTasks(name string) *fake {
	f := newFake(name, "make")
	f.serve = func(_ context.Context, req *mcp.Request, _ mcp.Caller) (*mcp.Result, error) {
		kind := spec.ResultTask
		if spec.OnTask(req.Method) {
			if id, _ := wire.GetString(req.Params, memberTaskID); id != "t~:1" {
				return nil, wire.Errorf(spec.CodeInvalidParams, "%s knows no task %s", name, id)
			}
			kind = spec.ResultComplete
		}
		res := mcp.NewResult([]byte(taskOf(kind, "t~:1")), nil)
		res.Era = spec.Modern
		return res, nil
	}
	return f
}

func TestG12TasksBelongToTheirMember(t *testing.T) {
	files, docs := withTasks("files"), withTasks("docs")
	r := newRig(t, nil, files, docs)
	for _, f := range []*fake{files, docs} {
		id := r.sealing.seal(sealedTask, f.name, "t~:1")
		got, err := r.call(t.Context(), request(spec.MethodToolsCall, `{"name":"`+f.name+`__make"}`))
		if want := taskOf(spec.ResultTask, id); err != nil || got != want {
			t.Fatalf("the task of %s is %s, %v\nwant %s", f.name, got, err, want)
		}
		for _, method := range []string{spec.MethodTaskGet, spec.MethodTaskUpdate, spec.MethodTaskCancel} {
			got, err := r.call(t.Context(), request(method, `{ "taskId":"`+id+`","inputResponses":{"taskId":"x"}}`))
			if want := taskOf(spec.ResultComplete, id); err != nil || got != want {
				t.Errorf("%s = %s, %v\nwant %s", method, got, err, want)
			}
			if sent := f.last(t); string(sent.Params) != `{ "taskId":"t~:1","inputResponses":{"taskId":"x"}}` || sent.Method != method {
				t.Errorf("%s: %s got %s %s", method, f.name, sent.Method, sent.Params)
			}
		}
	}
	files.change(func(f *fake) { f.gone = true })
	_, err := r.call(t.Context(), request(spec.MethodTaskGet, `{"taskId":"`+r.sealing.seal(sealedTask, "files", "t~:1")+`"}`))
	wantError(t, "of a member that is away", err, spec.CodeInternal, `"files"`)
}

// An id that the group has not handed out is one of no task, and no member hears of it.
func TestG12NoOtherTasks(t *testing.T) {
	files, docs := withTasks("files"), withTasks("docs")
	r := newRig(t, nil, files, docs)
	other := newRig(t, func(o *Options) { o.Name = "others" }, withTasks("files"))
	id := r.sealing.seal(sealedTask, "files", "t~:1")
	for _, method := range []string{spec.MethodTaskGet, spec.MethodTaskUpdate, spec.MethodTaskCancel} {
		for what, bad := range map[string]string{
			"the member's own": "t~:1", "of another group": other.sealing.seal(sealedTask, "files", "t~:1"), "a state": r.sealing.seal(sealedState, "files", "t~:1"), "a cursor": r.sealing.seal(sealedCursor, "", "files:t~:1"),
			"of a member's binding": r.opts.Sealer.Bind("files:t~:1", string(wire.AppendString(wire.Quote("files"), "anonymous"))),
			"of another member":     strings.Replace(id, "files", "docs", 1), "in another case": strings.ToUpper(id), "longer": id + "x", "shorter": id[:len(id)-1], "empty": "", "twice": r.sealing.seal(sealedTask, "files", id),
			"percent": strings.ReplaceAll(id, ":", "%3A"), "wide": strings.ReplaceAll(id, ":", "："), "with a space": " " + id,
		} {
			_, err := r.call(t.Context(), request(method, `{"taskId":`+string(wire.Quote(bad))+`}`))
			wantError(t, method+" "+what, err, spec.CodeInvalidParams, "Task not found")
			if errors.As(err, new(*mcp.Refusal)) {
				t.Errorf("%s %s: %v has the status of a refusal", method, what, err)
			}
		}
		for params, text := range map[string]string{
			`{"taskId":"` + id + `","TaskId":"t~:1"}`: "case-sensitive", `{"TASKID":"` + id + `"}`: "case-sensitive", `{}`: "missing", `{"taskId":7}`: "missing", `{"taskId":null}`: "missing",
		} {
			_, err := r.call(t.Context(), request(method, params))
			wantError(t, params, err, spec.CodeInvalidParams, text)
		}
	}
	asked := slices.Concat(files.requests(), docs.requests()) // of what is sealed twice, which is the group's, of a task that files does not have
	if want := []string{spec.MethodTaskGet, spec.MethodTaskUpdate, spec.MethodTaskGet, spec.MethodTaskCancel, spec.MethodTaskGet}; !slices.Equal(asked, want) {
		t.Errorf("the members were asked %q, want %q", asked, want)
	}
}

// What a member says of a task that it has is the client's to read, whatever the code.
func TestG12WhatMembersSayOfTheirTasks(t *testing.T) {
	for _, era := range []spec.Era{spec.Legacy, spec.Modern} {
		files := withTasks("files")
		files.era = era
		knows, known := files.serve, true
		files.serve = func(ctx context.Context, req *mcp.Request, c mcp.Caller) (*mcp.Result, error) {
			if req.Method == spec.MethodTaskUpdate || !known {
				return nil, wire.Errorf(spec.CodeInvalidParams, "files wants another answer")
			}
			return knows(ctx, req, c)
		}
		r := newRig(t, nil, files)
		update := request(spec.MethodTaskUpdate, `{"taskId":"`+r.sealing.seal(sealedTask, "files", "t~:1")+`","inputResponses":{}}`)
		_, err := r.call(t.Context(), update)
		wantError(t, "a task of files", err, spec.CodeInvalidParams, "another answer")
		known = false
		_, err = r.call(t.Context(), update)
		if want := map[spec.Era]string{spec.Modern: "Task not found", spec.Legacy: "another answer"}[era]; true { // of a legacy member it is the gateway that answers
			wantError(t, "no task of files", err, spec.CodeInvalidParams, want)
		}
	}
}

// The state of a call belongs to its member and its group.
func TestG12NoOtherStates(t *testing.T) {
	files, docs := newFake("files", "read"), newFake("docs", "read")
	files.pages[spec.MethodResourcesList] = [][]string{resourceItems("x:/a")}
	r := newRig(t, nil, files, docs)
	other := newRig(t, func(o *Options) { o.Name = "others" }, newFake("docs"))
	good := r.sealing.seal(sealedState, "docs", "s")
	for what, state := range map[string]string{
		"the member's own": `"s"`, "of another member": string(wire.Quote(r.sealing.seal(sealedState, "files", "s"))), "of another group": string(wire.Quote(other.sealing.seal(sealedState, "docs", "s"))),
		"a task": string(wire.Quote(r.sealing.seal(sealedTask, "docs", "s"))), "of the member's endpoint": string(wire.Quote(r.opts.Sealer.Bind("docs:s", `"docs""anonymous"`))),
		"moved": string(wire.Quote(strings.Replace(r.sealing.seal(sealedState, "files", "s"), "files", "docs", 1))), "null": `null`, "a number": `7`, "empty": `""`, "an object": `{"x":` + string(wire.Quote(good)) + `}`,
	} {
		for method, params := range map[string]string{spec.MethodToolsCall: `"name":"docs__read"`, spec.MethodPromptsGet: `"name":"docs__read"`, spec.MethodResourcesRead: `"uri":"x:/a"`} {
			if method == spec.MethodResourcesRead && what == "of another member" {
				continue // a URI is anybody's: it goes to who began
			}
			_, err := r.call(t.Context(), request(method, `{`+params+`,"requestState":`+state+`,"inputResponses":{}}`))
			wantError(t, method+" "+what, err, spec.CodeInvalidParams, "requestState is not valid")
		}
	}
	_, err := r.call(t.Context(), request(spec.MethodToolsCall, `{"name":"docs__read","RequestState":"s"}`))
	wantError(t, "in another case", err, spec.CodeInvalidParams, "case-sensitive")
	_, err = r.call(t.Context(), request(spec.MethodToolsCall, `{"name":"docs__read","requestState":`+string(wire.Quote(good))+`,"RequestState":"s"}`))
	wantError(t, "two states", err, spec.CodeInvalidParams, "case-sensitive")
	if asked := slices.Concat(files.requests(), docs.requests()); len(asked) > 0 {
		t.Errorf("the members were asked %q", asked)
	}
	if _, err := r.call(t.Context(), request(spec.MethodToolsCall, `{"name":"docs__read","requestStat\u0065":`+string(wire.Quote(good))+`}`)); err != nil {
		t.Errorf("written with an escape: %v", err)
	}
	if sent := string(docs.last(t).Params); sent != `{"name":"read","requestStat\u0065":"s"}` {
		t.Errorf("docs got %s", sent)
	}
}

// Tasks that have to do with a call are named as the member knows them, and others are left out.
func TestG12RelatedTasks(t *testing.T) {
	files, docs := newFake("files", "read"), newFake("docs", "read")
	r := newRig(t, nil, files, docs)
	ids := `["` + r.sealing.seal(sealedTask, "docs", "a") + `","b","` + r.sealing.seal(sealedTask, "files", "c") + `",7,"` + r.sealing.seal(sealedState, "docs", "d") + `","` + r.sealing.seal(sealedTask, "docs", "e") + `"]`
	for _, key := range []string{`io.modelcontextprotocol/relatedTaskIds`, `io.modelcontextprotocol\/related\u0054askIds`} {
		_, err := r.call(t.Context(), request(spec.MethodToolsCall, `{"_meta":{"x":1,"`+key+`":`+ids+`},"name":"docs__read"}`))
		if want := `{"_meta":{"x":1,"` + key + `":["a","e"]},"name":"read"}`; err != nil || string(docs.last(t).Params) != want {
			t.Errorf("docs got %s, %v, want %s", docs.last(t).Params, err, want)
		}
	}
}
