package group

import (
	"context"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/backtest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// questions are what members ask, and how clients see it that files asks.
var questions = []struct{ method, params, seen string }{
	{spec.MethodElicit, `{"mode":"form", "message":"Which \"one\"?" ,"requestedSchema":{"type":"object","properties":{}}}`, `{"mode":"form", "message":"files: Which \"one\"?" ,"requestedSchema":{"type":"object","properties":{}}}`},
	{spec.MethodElicit, `{"mode":"url","url":"https://x","message":"Log in"}`, `{"mode":"url","url":"https://x","message":"files: Log in"}`},
	{spec.MethodElicit, `{"mode":"form"}`, `{"mode":"form"}`},
	{spec.MethodSample, `{"messages":[{"role":"user","content":{"type":"text","text":"Say"}},{"role":"user","content":{"type":"text","text":"b"}}],"maxTokens":9}`,
		`{"messages":[{"role":"user","content":{"type":"text","text":"files: Say"}},{"role":"user","content":{"type":"text","text":"b"}}],"maxTokens":9}`},
	{spec.MethodSample, `{"messages":[{"role":"user","content":[{"type":"image","data":""}, {"type":"text","text":"Say"},{"type":"text","text":"b"}]}]}`,
		`{"messages":[{"role":"user","content":[{"type":"image","data":""}, {"type":"text","text":"files: Say"},{"type":"text","text":"b"}]}]}`},
	{spec.MethodSample, `{"messages":[{"role":"user","content":{"type":"image","data":""}}]}`, `{"messages":[{"role":"user","content":{"type":"image","data":""}}]}`},
	{spec.MethodSample, `{"messages":[]}`, `{"messages":[]}`},
	{spec.MethodRootsList, ``, ``},
	{spec.MethodRootsList, `{"message":"x"}`, `{"message":"x"}`},
}

// What a member asks during a call reaches the client of that call with the member's name, and
// the answer comes back to the member.
func TestG15QuestionsNameTheirMember(t *testing.T) {
	for _, silent := range []bool{false, true} {
		files := newFake("files", "read")
		r := newRig(t, func(o *Options) { o.Unattributed = silent }, files, newFake("docs"))
		for _, q := range questions {
			asked := mcp.InputRequest{Method: q.method, Params: []byte(q.params)}
			var got []mcp.InputResponse
			files.serve = func(ctx context.Context, _ *mcp.Request, c mcp.Caller) (*mcp.Result, error) {
				var err error
				got, err = c.RequestInput(ctx, []mcp.InputRequest{asked, {Method: spec.MethodRootsList}})
				if err != nil {
					return nil, err
				}
				return nil, nil
			}
			client := &backtest.Caller{Ask: func(_ context.Context, qs []mcp.InputRequest) ([]mcp.InputResponse, error) {
				return []mcp.InputResponse{{Result: []byte(`{"action":"accept"}`)}, {Result: []byte(`{"roots":[]}`)}}, nil
			}}
			res, err := r.Serve(t.Context(), request(spec.MethodToolsCall, `{"name":"files__read"}`), client)
			if body(t, res, err); len(got) != 2 || string(got[0].Result) != `{"action":"accept"}` {
				t.Errorf("%s: the member got %v", q.params, got)
			}
			seen := q.seen
			if silent {
				seen = q.params
			}
			if a := client.Asked(); len(a) != 1 || len(a[0]) != 2 || string(a[0][0].Params) != seen || a[0][0].Method != q.method || a[0][0].Server != "files" || a[0][1].Server != "files" {
				t.Errorf("%s: the client was asked %s, want %s", q.params, a, seen)
			}
			if string(asked.Params) != q.params {
				t.Errorf("the member's own params became %s", asked.Params)
			}
		}
	}
}

// A modern member asks by its result, which says so, too. The client sends its answers back with
// the state, to that member alone.
func TestG15ResultsThatAsk(t *testing.T) {
	for _, silent := range []bool{false, true} {
		files, docs := newFake("files", "read", "other"), newFake("docs", "read")
		files.pages[spec.MethodResourcesList] = [][]string{resourceItems("file:///a")}
		r := newRig(t, func(o *Options) { o.Unattributed = silent }, files, docs)
		var asks, seen []string
		for i, q := range questions {
			if q.params == "" {
				continue
			}
			key := string(rune('a' + i))
			asks = append(asks, `"`+key+`":{"method":"`+q.method+`", "params":`+q.params+`}`)
			if silent {
				seen = append(seen, asks[len(asks)-1])
			} else {
				seen = append(seen, `"`+key+`":{"method":"`+q.method+`", "params":`+q.seen+`}`)
			}
		}
		files.serve = func(_ context.Context, req *mcp.Request, _ mcp.Caller) (*mcp.Result, error) {
			if strings.Contains(string(req.Params), "inputResponses") {
				return nil, nil
			}
			if spec.Lists(req.Method) {
				return nil, nil
			}
			res := mcp.NewResult([]byte(`{"resultType":"input_required","inputRequests":{`+strings.Join(asks, ",")+`},"requestState":"s:~1","_meta":{"x":1}}`), nil)
			res.Era = spec.Modern
			return res, nil
		}
		for method, params := range map[string]string{spec.MethodToolsCall: `"name":"files__read"`, spec.MethodPromptsGet: `"name":"files__read"`, spec.MethodResourcesRead: `"uri":"file:///a"`} {
			got, err := r.call(t.Context(), request(method, `{`+params+`}`))
			state := r.sealing.seal(sealedState, "files", "s:~1")
			want := `{"resultType":"input_required","inputRequests":{` + strings.Join(seen, ",") + `},"requestState":"` + state + `","_meta":{"x":1,"dev.mcpbridge/server":"files"}}`
			if err != nil || got != want {
				t.Fatalf("%s = %s, %v\nwant %s", method, got, err, want)
			}
			if _, err = r.call(t.Context(), request(method, `{`+params+`,"requestState":"`+state+`","inputResponses":{}}`)); err != nil {
				t.Errorf("%s with answers: %v", method, err)
			}
			if sent := string(files.last(t).Params); !strings.Contains(sent, `"requestState":"s:~1","inputResponses":{}`) {
				t.Errorf("the member got %s", sent)
			}
		}
	}
}

// Two members ask at once, each its own client.
func TestG15MembersAskAtOnce(t *testing.T) {
	files, docs := newFake("files", "read"), newFake("docs", "read")
	r := newRig(t, nil, files, docs)
	both := make(chan struct{}, 2)
	for _, f := range []*fake{files, docs} {
		f.serve = func(ctx context.Context, _ *mcp.Request, c mcp.Caller) (*mcp.Result, error) {
			as, err := c.RequestInput(ctx, []mcp.InputRequest{{Method: spec.MethodElicit, Params: []byte(`{"message":"?"}`)}})
			if err != nil {
				return nil, err
			}
			return f.result(`{"content":` + string(as[0].Result) + `}`), nil
		}
	}
	client := &backtest.Caller{Ask: func(_ context.Context, qs []mcp.InputRequest) ([]mcp.InputResponse, error) {
		both <- struct{}{}
		for len(both) < 2 { // neither is answered before both ask
			select {
			case <-t.Context().Done():
				return nil, t.Context().Err()
			default:
			}
		}
		return []mcp.InputResponse{{Result: qs[0].Params}}, nil
	}}
	type outcome struct{ want, got string }
	done := make(chan outcome)
	for _, f := range []*fake{files, docs} {
		go func() { // ends with the call
			res, err := r.Serve(t.Context(), request(spec.MethodToolsCall, `{"name":"`+f.name+`__read"}`), client)
			text, _ := backtest.Body(res, err)
			done <- outcome{`{"message":"` + f.name + `: ?"}`, text}
		}()
	}
	for range 2 {
		if o := <-done; !strings.Contains(o.got, o.want) {
			t.Errorf("an answer is %s, want %s", o.got, o.want)
		}
	}
}

func TestG15LoggersHaveTheirMember(t *testing.T) {
	files := newFake("files", "read")
	r := newRig(t, nil, files, newFake("docs"))
	notes := []struct{ method, params, want string }{
		{spec.NotifyMessage, `{"level":"info", "logger":"db" ,"data":{"logger":"x"}}`, `{"level":"info", "logger":"files/db" ,"data":{"logger":"x"}}`},
		{spec.NotifyMessage, `{"level":"info","data":"x"}`, `{"level":"info","data":"x","logger":"files"}`},
		{spec.NotifyMessage, `{"logger":null}`, `{"logger":"files"}`},
		{spec.NotifyProgress, `{"progressToken":7,"progress":1,"message":"m"}`, `{"progressToken":7,"progress":1,"message":"m"}`},
		{"notifications/x", `{"logger":"db"}`, `{"logger":"db"}`},
	}
	files.serve = func(ctx context.Context, _ *mcp.Request, c mcp.Caller) (*mcp.Result, error) {
		for _, n := range notes {
			if err := c.Notify(ctx, mcp.Notification{Method: n.method, Params: []byte(n.params)}); err != nil {
				return nil, err
			}
		}
		return nil, nil
	}
	var client backtest.Caller
	res, err := r.Serve(t.Context(), request(spec.MethodToolsCall, `{"name":"files__read"}`), &client)
	body(t, res, err)
	for i, heard := range client.Heard() {
		if want := notes[i].method + " " + notes[i].want; heard != want {
			t.Errorf("the client heard %s, want %s", heard, want)
		}
	}
}
