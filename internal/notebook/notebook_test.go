package notebook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mcpbridge/mcpbridge/internal/transport"
)

func TestHandshake(t *testing.T) {
	for _, tt := range []struct{ offered, settled string }{
		{"2025-11-25", "2025-11-25"},
		{"2025-06-18", "2025-06-18"},
		{"2025-03-26", "2025-03-26"},
		{"2024-11-05", "2024-11-05"},
		{"2026-07-28", "2025-11-25"},
		{"2024-10-07", "2025-11-25"},
		{"x", "2025-11-25"},
	} {
		c := connect(t, New(Options{Version: "1.2"}))
		got := c.call("initialize", fmt.Sprintf(`{"protocolVersion":%q,"capabilities":{},"clientInfo":{"name":"t","version":"0"}}`, tt.offered))
		var r map[string]json.RawMessage
		if err := json.Unmarshal([]byte(got), &r); err != nil {
			t.Fatal(err)
		}
		want(t, "revision for "+tt.offered, string(r["protocolVersion"]), `"`+tt.settled+`"`)
		want(t, "capabilities", string(r["capabilities"]), `{"tools":{"listChanged":true},"prompts":{},"resources":{"subscribe":true,"listChanged":true},"logging":{},"completions":{}}`)
		want(t, "serverInfo", string(r["serverInfo"]), `{"name":"notebook","title":"Notebook","version":"1.2"}`)
		if err := c.close(); err != nil {
			t.Errorf("Serve = %v, want nil", err)
		}
	}
}

func TestStrictness(t *testing.T) {
	c := connect(t, New(Options{}))
	defer c.close()
	want(t, "ping before initialize", c.call("ping", `{}`), `{}`)
	for _, method := range []string{"tools/list", "resources/read", "nonsense"} {
		c.wantCode(method, `{}`, -32600)
	}
	c.wantCode("initialize", `{}`, -32602)
	c.wantCode("initialize", `{"protocolVersion":"2025-11-25","capabilities":[],"clientInfo":{}}`, -32602)
	c.call("initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"0"}}`)
	c.wantCode("initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{}}`, -32600)
	c.wantCode("nonsense", `{}`, -32601)
	c.wantCode("server/discover", `{}`, -32601)
	c.wantCode("tools/call", `{}`, -32602)
	c.wantCode("tools/call", `{"name":"search","arguments":{"query":"x"}}`, -32602)
	c.wantCode("tools/call", `{"name":"edit_note","arguments":[]}`, -32602)
	c.wantCode("tools/list", `{"cursor":"x"}`, -32602)
	c.wantCode("resources/list", `{"cursor":"x"}`, -32602)
	c.wantCode("logging/setLevel", `{"level":"loud"}`, -32602)
	c.wantCode("resources/subscribe", `{"uri":7}`, -32602)
	c.wantCode("resources/subscribe", `{"uri":"file:///etc/passwd"}`, -32002)
}

func TestUnreadableMessages(t *testing.T) {
	c := open(t, New(Options{}))
	defer c.close()
	for _, tt := range []struct{ in, want string }{
		{`{"jsonrpc":"2.0",`, `"id":null,"error":{"code":-32700,`},
		{`[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, `"id":null,"error":{"code":-32600,`},
		{`{"jsonrpc":"1.0","id":"x","method":"ping"}`, `"id":"x","error":{"code":-32600,`},
	} {
		c.send(tt.in)
		if got := c.read(); !strings.Contains(got, tt.want) {
			t.Errorf("answer to %s = %s, want %s", tt.in, got, tt.want)
		}
	}
	c.send(`{"jsonrpc":"2.0","method":"notifications/unknown"}`)
	c.send(`{"jsonrpc":"2.0","id":7,"result":{}}`)
	c.send(`{"jsonrpc":"2.0","id":"9007199254740993","method":"ping"}`)
	want(t, "answer after messages that have none", c.read(), `{"jsonrpc":"2.0","id":"9007199254740993","result":{}}`)
}

func TestNotes(t *testing.T) {
	c := open(t, New(Options{}))
	defer c.close()
	want(t, "list", c.call("resources/list", `{}`),
		`{"resources":[{"uri":"note://journal","name":"journal","mimeType":"text/plain"},{"uri":"note://todo","name":"todo","mimeType":"text/plain"}]}`)
	want(t, "templates", c.call("resources/templates/list", `{}`),
		`{"resourceTemplates":[{"uriTemplate":"note://{name}","name":"note","description":"A note by its name.","mimeType":"text/plain"}]}`)
	want(t, "read", c.call("resources/read", `{"uri":"note://todo"}`),
		`{"contents":[{"uri":"note://todo","mimeType":"text/plain","text":"buy milk"}]}`)
	want(t, "edit", c.edit("todo", "buy bread"), `{"content":[{"type":"text","text":"saved"}]}`)
	want(t, "read after edit", c.call("resources/read", `{"uri":"note://todo"}`),
		`{"contents":[{"uri":"note://todo","mimeType":"text/plain","text":"buy bread"}]}`)
	for _, uri := range []string{"note://nope", "file:///todo", "todo"} {
		failure := c.wantCode("resources/read", fmt.Sprintf(`{"uri":%q}`, uri), -32002)
		if !strings.Contains(failure, fmt.Sprintf(`"data":{"uri":%q}`, uri)) {
			t.Errorf("error %s, want data.uri %s", failure, uri)
		}
	}
}

func TestBadToolInput(t *testing.T) {
	c := open(t, New(Options{}))
	defer c.close()
	for _, args := range []string{
		`{}`, `{"name":"todo"}`, `{"name":1,"text":"x"}`, `{"name":"","text":"x"}`,
		`{"name":"a b","text":"x"}`, `{"name":"a\n","text":"x"}`, `{"Name":"a","text":"x"}`,
	} {
		got := c.call("tools/call", `{"name":"edit_note","arguments":`+args+`}`)
		if !strings.HasSuffix(got, `"isError":true}`) {
			t.Errorf("edit_note %s = %s, want isError", args, got)
		}
	}
	if got := c.call("resources/list", `{}`); strings.Count(got, "uri") != 2 {
		t.Errorf("notes after bad edits = %s, want the two", got)
	}
}

func TestResourcesPages(t *testing.T) {
	notes := map[string]string{}
	var names []string
	for i := range 2*pageSize + 1 {
		names = append(names, fmt.Sprintf("n%03d", i))
		notes[names[i]] = ""
	}
	c := open(t, New(Options{Notes: notes}))
	defer c.close()
	var got []string
	params := `{}`
	for pages := 1; ; pages++ {
		var r resourcesResult
		if err := json.Unmarshal([]byte(c.call("resources/list", params)), &r); err != nil {
			t.Fatal(err)
		}
		for _, res := range r.Resources {
			got = append(got, res.Name)
		}
		if r.NextCursor == "" {
			if pages != 3 {
				t.Errorf("%d pages, want 3", pages)
			}
			break
		}
		params = fmt.Sprintf(`{"cursor":%q}`, r.NextCursor)
	}
	if !slices.Equal(got, names) {
		t.Errorf("pages name %v, want %v", got, names)
	}
}

func TestUpdatesReachSubscribersOnly(t *testing.T) {
	nb := New(Options{})
	editor, reader, other, former := open(t, nb), open(t, nb), open(t, nb), open(t, nb)
	reader.call("resources/subscribe", `{"uri":"note://todo"}`)
	other.call("resources/subscribe", `{"uri":"note://todo/draft"}`)
	former.call("resources/subscribe", `{"uri":"note://todo"}`)
	former.call("resources/unsubscribe", `{"uri":"note://todo"}`)
	editor.edit("todo", "x")
	want(t, "update", reader.read(), `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"note://todo"}}`)
	// A new note notifies all clients once, which shows that nothing came before.
	editor.edit("new", "x")
	for name, c := range map[string]*client{"reader": reader, "other": other, "former": former} {
		want(t, "next for "+name, c.read(), `{"jsonrpc":"2.0","method":"notifications/resources/list_changed"}`)
	}
	for _, c := range []*client{editor, reader, other, former} {
		if err := c.close(); err != nil {
			t.Errorf("Serve = %v, want nil", err)
		}
	}
	if len(nb.subscribers) != 0 { // Serve has returned
		t.Errorf("%d sessions left, want none", len(nb.subscribers))
	}
}

func TestEnableSearch(t *testing.T) {
	nb := New(Options{})
	c, watcher := open(t, nb), open(t, nb)
	defer c.close()
	defer watcher.close()
	if got := c.call("tools/list", `{}`); strings.Contains(got, `"search"`) {
		t.Errorf("tools before = %s, want no search", got)
	}
	const live = `{"content":[{"type":"text","text":"search is live"}]}`
	want(t, "enable_search", c.call("tools/call", `{"name":"enable_search"}`), live)
	want(t, "notification", watcher.read(), `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
	if got := watcher.call("tools/list", `{}`); !strings.Contains(got, `"name":"search"`) {
		t.Errorf("tools after = %s, want search", got)
	}
	want(t, "search", watcher.call("tools/call", `{"name":"search","arguments":{"query":"day"}}`),
		`{"content":[{"type":"text","text":"journal"}],"structuredContent":{"result":["journal"]}}`)
	want(t, "search without hits", watcher.call("tools/call", `{"name":"search","arguments":{"query":"?"}}`),
		`{"content":[],"structuredContent":{"result":[]}}`)
	// The list does not change a second time.
	watcher.heard = nil
	want(t, "enable_search again", c.call("tools/call", `{"name":"enable_search"}`), live)
	watcher.call("ping", `{}`)
	if len(watcher.heard) != 0 {
		t.Errorf("heard %q, want nothing", watcher.heard)
	}
}

func TestProgress(t *testing.T) {
	c := open(t, New(Options{}))
	defer c.close()
	c.call("tools/call", `{"name":"enable_search"}`)
	for _, token := range []string{`0`, `"t"`, `9007199254740993`} {
		c.heard = nil
		c.call("tools/call", `{"name":"search","arguments":{"query":"x"},"_meta":{"progressToken":`+token+`}}`)
		got := slices.DeleteFunc(c.heard, func(m string) bool { return strings.Contains(m, "list_changed") })
		wanted := []string{
			`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":` + token + `,"progress":1,"total":2,"message":"looked at journal"}}`,
			`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":` + token + `,"progress":2,"total":2,"message":"looked at todo"}}`,
		}
		if !slices.Equal(got, wanted) {
			t.Errorf("progress = %q, want %q", got, wanted)
		}
	}
}

func TestLogLevel(t *testing.T) {
	c := open(t, New(Options{}))
	defer c.close()
	const saved = `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","logger":"notebook","data":"saved note todo"}}`
	for _, tt := range []struct {
		level string
		want  []string
	}{
		{"", nil}, {"warning", nil}, {"info", []string{saved}}, {"debug", []string{saved}},
	} {
		c.heard = nil
		if tt.level != "" {
			c.call("logging/setLevel", fmt.Sprintf(`{"level":%q}`, tt.level))
		}
		if c.edit("todo", "x"); !slices.Equal(c.heard, tt.want) {
			t.Errorf("messages at level %q = %q, want %q", tt.level, c.heard, tt.want)
		}
	}
}

func TestPrompt(t *testing.T) {
	c := open(t, New(Options{}))
	defer c.close()
	want(t, "list", c.call("prompts/list", `{}`),
		`{"prompts":[{"name":"summarize","description":"Ask for a summary of a note.","arguments":[{"name":"name","description":"The note's name","required":true}]}]}`)
	want(t, "get", c.call("prompts/get", `{"name":"summarize","arguments":{"name":"todo"}}`),
		`{"description":"Ask for a summary of a note.","messages":[{"role":"user","content":{"type":"text","text":"Summarize the note \"todo\" in one sentence:\n\nbuy milk"}}]}`)
	c.wantCode("prompts/get", `{"name":"nope"}`, -32602)
	c.wantCode("prompts/get", `{"name":"summarize"}`, -32602)
	c.wantCode("prompts/get", `{"name":"summarize","arguments":{"name":"nope"}}`, -32602)
}

func TestCompletion(t *testing.T) {
	c := open(t, New(Options{Notes: map[string]string{"todo": "", "tomorrow": "", "journal": ""}}))
	defer c.close()
	for _, ref := range []string{`{"type":"ref/prompt","name":"summarize"}`, `{"type":"ref/resource","uri":"note://{name}"}`} {
		want(t, "completion", c.call("completion/complete", `{"ref":`+ref+`,"argument":{"name":"name","value":"to"}}`),
			`{"completion":{"values":["todo","tomorrow"],"total":2,"hasMore":false}}`)
		c.wantCode("completion/complete", `{"ref":`+ref+`,"argument":{"name":"other","value":""}}`, -32602)
	}
	c.wantCode("completion/complete", `{"ref":{"type":"ref/prompt","name":"x"},"argument":{"name":"name","value":""}}`, -32602)
	c.wantCode("completion/complete", `{}`, -32602)
}

func TestCompletionIsCut(t *testing.T) {
	notes := map[string]string{}
	for i := range maxCompletions + 1 {
		notes[fmt.Sprint("n", i)] = ""
	}
	c := open(t, New(Options{Notes: notes}))
	defer c.close()
	got := c.call("completion/complete", `{"ref":{"type":"ref/prompt","name":"summarize"},"argument":{"name":"name","value":""}}`)
	if !strings.HasSuffix(got, `"total":101,"hasMore":true}}`) || strings.Count(got, `"n`) != maxCompletions {
		t.Errorf("completion = %s, want 100 of 101", got)
	}
}

// Before notifications/initialized a client receives only responses.
func TestNoChangeBeforeInitialized(t *testing.T) {
	nb := New(Options{})
	c, editor := connect(t, nb), open(t, nb)
	defer c.close()
	defer editor.close()
	c.call("ping", `{}`) // answered: the session has begun
	editor.edit("new", "x")
	c.call("initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"0"}}`)
	c.call("ping", `{}`)
	if len(c.heard) != 0 {
		t.Errorf("heard %q before initialized, want nothing", c.heard)
	}
	c.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	want(t, "first after initialized", c.read(), `{"jsonrpc":"2.0","method":"notifications/resources/list_changed"}`)
}

// A session that does not read does not delay others, and ends.
func TestStuckSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nb := New(Options{})
		stuck, editor := open(t, nb), open(t, nb)
		stuck.call("resources/subscribe", `{"uri":"note://todo"}`)
		for i := range 1000 {
			editor.edit("todo", fmt.Sprint(i))
			synctest.Wait() // so that the stuck session's pipe fills
		}
		nb.mu.Lock()
		for s := range nb.subscribers {
			s.pending.mu.Lock()
			if n := len(s.pending.order); n > 1 {
				t.Errorf("%d changes are pending for one session, want one for its one topic", n)
			}
			s.pending.mu.Unlock()
		}
		nb.mu.Unlock()
		if err := <-stuck.ended; !errors.Is(err, transport.ErrWriteTimeout) {
			t.Errorf("Serve of a stuck session = %v, want ErrWriteTimeout", err)
		}
		want(t, "edit afterwards", editor.edit("todo", "x"), `{"content":[{"type":"text","text":"saved"}]}`)
		stuck.conn.Close()
		editor.close()
	})
}

// A client that sends without reading responses blocks only itself.
func TestFloodingSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, New(Options{}))
		var err error
		for i := 0; err == nil && i < 10_000; i++ {
			err = c.conn.Write(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":"ping"}`, i))
		}
		if err == nil {
			t.Error("the server accepted 10,000 requests of a client that reads nothing")
		}
		if err := <-c.ended; !errors.Is(err, transport.ErrWriteTimeout) {
			t.Errorf("Serve = %v, want ErrWriteTimeout", err)
		}
		c.conn.Close()
	})
}

func TestServeEndsWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		ours, theirs := transport.NewPipe()
		ended := make(chan error)
		go func() { ended <- New(Options{}).Serve(ctx, theirs) }() // ends with ctx
		synctest.Wait()
		shutdown := errors.New("shutting down")
		cancel(shutdown)
		if err := <-ended; err != shutdown {
			t.Errorf("Serve = %v, want %v", err, shutdown)
		}
		ours.Close()
	})
}

func TestSubscriptionsBounded(t *testing.T) {
	c := open(t, New(Options{}))
	defer c.close()
	for i := range maxSubscriptions {
		c.call("resources/subscribe", fmt.Sprintf(`{"uri":"note://%d"}`, i))
	}
	c.wantCode("resources/subscribe", `{"uri":"note://more"}`, -32603)
	c.call("resources/subscribe", `{"uri":"note://0"}`)
}
